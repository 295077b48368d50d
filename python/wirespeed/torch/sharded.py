"""What iterable datasets over S3 share: the split among consumers, and the saved position.

The position of a consumer is a dictionary of integers, strings and lists. It is brought up to date
before a sample is handed out, so that it is always that after the last sample somebody has.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from wirespeed import Client
from wirespeed.torch.objects import ObjectList
from wirespeed.torch.sampling import (
    EpochNumber,
    Share,
    State,
    check_rank,
    check_state,
    distributed_rank,
    epoch_order,
    share_of,
    this_share,
)


class ShardedDataset(IterableDataset[Any]):
    """What iterable datasets over S3 share: units split among ranks and workers, a saved position.

    `objects` are the units: objects or shards. ``set_epoch(n)`` before each pass over a DataLoader
    gives another order if ``shuffle=True``, as with torch's DistributedSampler; it reaches
    persistent workers too.

    ``state_dict()`` is the position after the last sample that was yielded in this process;
    ``load_state_dict()`` makes the next iteration begin there. With DataLoader workers the
    position is in the workers: use `ResumableDataLoader`, or torchdata's StatefulDataLoader.

    The rank comes from `rank` and `world_size`, else from torch.distributed if that is initialised
    when iterating, or when the dataset is pickled for a worker.
    """

    kind = ""
    """Which dataset a saved position belongs to."""

    def __init__(
        self,
        uris: Iterable[str],
        *,
        shuffle: bool,
        seed: int,
        rank: int | None,
        world_size: int | None,
        drop_uneven: bool,
        client: Client | None,
    ) -> None:
        self.objects = uris if isinstance(uris, ObjectList) else ObjectList(uris)
        self._shuffle = shuffle
        self._seed = seed
        self._ranked = check_rank(rank, world_size)
        self._drop_uneven = drop_uneven
        self._client = client
        self._epoch = EpochNumber()
        self._settings = {
            "version": 1,
            "kind": self.kind,
            "objects": self.objects.fingerprint,
            "shuffle": shuffle,
            "seed": seed,
            "drop_uneven": drop_uneven,
        }
        # By worker; without workers there is worker 0.
        self._to_resume: dict[int, State] = {}
        self._first_worker = 0
        self._state: State | None = None

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next iterations are: another order, if shuffled."""
        self._epoch.set(epoch)

    def state_dict(self) -> State:
        """The position after the last sample that this process was given."""
        return _copied(self._state or self._starting_state(self._share()))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Lets the next iteration in this process begin where `state` was taken.

        Raises `ValueError` if it belongs to other objects or settings; when the iteration begins,
        also if the number of ranks or workers has changed.
        """
        info = get_worker_info()
        self.resume_workers({info.id if info else 0: state}, 0)

    def resume_workers(self, states: Mapping[int, Mapping[str, Any]], first_worker: int) -> None:
        """Positions for a DataLoader's workers, by number; `first_worker` is whose turn it is."""
        for state in states.values():
            check_state(state, self._settings)
        self._to_resume = {worker: dict(state) for worker, state in states.items()}
        self._first_worker = first_worker
        self._state = None

    @property
    def has_position(self) -> bool:
        """Whether the next iteration begins at a position that was loaded."""
        return bool(self._to_resume)

    def forget_resumed(self) -> None:
        """Iterations from now on begin at the beginning."""
        self._to_resume = {}
        self._first_worker = 0

    def __iter__(self) -> Iterator[Any]:
        # Not a generator: the position counts from this call on, not from the first sample.
        share = self._share()
        self._state = state = self._starting_state(share)
        check_state(state, {"share": [share.index, share.count]})
        self.forget_resumed()
        order = epoch_order(
            len(self.objects), shuffle=self._shuffle, seed=self._seed, epoch=state["epoch"]
        )
        units = share_of(order, share, drop_uneven=self._drop_uneven)
        return self._iterate(units, share, state)

    def _iterate(self, units: Sequence[int], share: Share, state: State) -> Iterator[Any]:
        """The samples of `units` from the position `state` on, which is kept up to date."""
        raise NotImplementedError

    def _start(self) -> State:
        """What a position has beside the settings, at the beginning."""
        raise NotImplementedError

    def _share(self) -> Share:
        return this_share(self._ranked, self._first_worker)

    def _starting_state(self, share: Share) -> State:
        if share.worker in self._to_resume:
            return _copied(self._to_resume[share.worker])
        # A worker that had not come to its first batch is in the same epoch as the others.
        resumed = next(iter(self._to_resume.values()), None)
        epoch = self._epoch.get() if resumed is None else resumed["epoch"]
        place: State = {"epoch": epoch, "share": [share.index, share.count]}
        return self._settings | place | self._start()

    def __getstate__(self) -> dict[str, Any]:
        # A spawned worker knows nothing of torch.distributed.
        return self.__dict__ | {"_ranked": self._ranked or distributed_rank()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _copied(state: State) -> State:
    """A position that stays while the original moves on; what its lists hold is never changed."""
    return {name: value[:] if isinstance(value, list) else value for name, value in state.items()}
