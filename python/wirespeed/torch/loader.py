"""A DataLoader whose position can be saved, on every version of torch.

Each batch travels with the position of the dataset that made it, in the worker that made it. So the
loader's position is that of the batches which it has handed out, not of those that its workers have
fetched ahead; and a loader made anew begins with the very next batch.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch.utils.data import DataLoader, get_worker_info

from wirespeed.torch.sampling import State
from wirespeed.torch.sharded import ShardedDataset


class _Stamped:
    """A collate function that adds the dataset's position to each batch."""

    def __init__(self, collate: Callable[[Any], Any], dataset: ShardedDataset) -> None:
        self._collate = collate
        self._dataset = dataset

    def __call__(self, samples: Any) -> tuple[Any, str]:
        info = get_worker_info()
        dataset = self._dataset if info is None else info.dataset
        # As text: a pinning loader would walk through every list of it.
        return self._collate(samples), json.dumps(dataset.state_dict())


class ResumableDataLoader(DataLoader[Any]):
    """``DataLoader(dataset, ...)`` with ``state_dict()`` and ``load_state_dict()``.

    For `S3IterableDataset` and `S3TarDataset`; takes all arguments of a DataLoader. Resumed with
    the same arguments it yields exactly the batches that were still to come. They come in the same
    order as well, until the first worker runs out of samples; from then on batches of different
    workers may be interleaved otherwise.

    The position is a dictionary that JSON and `torch.save` take; each rank saves its own.
    """

    def __init__(self, dataset: ShardedDataset, *arguments: Any, **keywords: Any) -> None:
        if not isinstance(dataset, ShardedDataset):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                "ResumableDataLoader is for S3IterableDataset and S3TarDataset, not for"
                f" {type(dataset).__name__}; a map-style dataset's position is its sampler's"
            )
        super().__init__(dataset, *arguments, **keywords)
        self._sharded = dataset
        self._workers: dict[int, State] = {}
        self._next_worker = 0
        self.collate_fn = _Stamped(self.collate_fn, dataset)

    def state_dict(self) -> State:
        """The position after the last batch that was handed out."""
        return {
            "version": 1,
            "num_workers": self.num_workers,
            "next_worker": self._next_worker,
            "workers": {str(worker): state for worker, state in self._workers.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Lets the next iteration begin where `state` was taken.

        Raises `ValueError` if it belongs to another number of workers, or to other objects or
        settings.
        """
        if state.get("version") != 1 or state.get("num_workers") != self.num_workers:
            raise ValueError(
                f"this position is of a loader with num_workers={state.get('num_workers')!r},"
                f" this one has {self.num_workers}"
            )
        workers = {int(worker): dict(one) for worker, one in state["workers"].items()}
        self._sharded.resume_workers(workers, state["next_worker"])
        self._workers, self._next_worker = workers, state["next_worker"]
        # Persistent workers have the dataset as it was: let the next iteration start new ones.
        self._iterator = None

    def __iter__(self) -> Iterator[Any]:
        resumed = self._sharded.has_position
        batches = super().__iter__()
        # The workers have their copies by now.
        self._sharded.forget_resumed()
        if not resumed:
            self._workers, self._next_worker = {}, 0
        return self._unstamped(batches)

    def _unstamped(self, batches: Iterator[tuple[Any, str]]) -> Iterator[Any]:
        for batch, stamp in batches:
            state = json.loads(stamp)
            count = max(self.num_workers, 1)
            worker = state["share"][0] % count
            self._workers[worker] = state
            self._next_worker = (worker + 1) % count
            yield batch
