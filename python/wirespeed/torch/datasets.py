"""Datasets with an object a sample: map-style and iterable-style.

Both are made of URIs, of a prefix or of a manifest (see `ObjectList`), give each object to
`transform` and yield what it makes of it. They pickle, without secrets, so they work with forked
and spawned DataLoader workers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from os import PathLike
from typing import Any, NamedTuple, Self, TypedDict, Unpack, overload

from torch.utils.data import Dataset

from wirespeed import Buffer, Client
from wirespeed.torch.fetching import Wanted, Window, fetch_in_order
from wirespeed.torch.objects import ObjectList, client_or_default
from wirespeed.torch.sampling import Share, State
from wirespeed.torch.sharded import ShardedDataset

MIB = 1 << 20
DEFAULT_WINDOW = Window(objects=64, nbytes=64 * MIB)


class S3Object(NamedTuple):
    """An object and its bytes: `data` supports the buffer protocol, ``len`` and ``bytes()``."""

    uri: str
    data: Buffer


Transform = Callable[[S3Object], Any]


class MapOptions(TypedDict, total=False):
    """Keywords of `S3MapDataset`."""

    transform: Transform | None
    client: Client | None


class S3MapDataset(Dataset[Any]):
    """Objects by their number: ``dataset[5]``, or several in one call: ``dataset[[5, 9, 2]]``.

    A sample is an `S3Object`, or what `transform` returns for one. torch 2 fetches a whole batch
    by one call (``__getitems__``); for torch 1.13 give the DataLoader
    ``sampler=BatchSampler(...)`` and ``batch_size=None``, and it does too. Shuffling and sharding
    are the sampler's: `torch.utils.data.DistributedSampler`.
    """

    def __init__(self, uris: Iterable[str], **options: Unpack[MapOptions]) -> None:
        self.objects = uris if isinstance(uris, ObjectList) else ObjectList(uris)
        self._transform = options.get("transform")
        self._client = options.get("client")

    @classmethod
    def from_prefix(
        cls,
        prefix: str,
        *,
        suffix: str | tuple[str, ...] | None = None,
        **options: Unpack[MapOptions],
    ) -> Self:
        """All objects whose URI begins with `prefix` (and ends with `suffix`); lists them now."""
        found = ObjectList.from_prefix(prefix, suffix=suffix, client=options.get("client"))
        return cls(found, **options)

    @classmethod
    def from_objects(cls, uris: str | Iterable[str], **options: Unpack[MapOptions]) -> Self:
        """These objects, or this one; as the constructor."""
        return cls([uris] if isinstance(uris, str) else uris, **options)

    @classmethod
    def from_manifest(cls, manifest: str | PathLike[str], **options: Unpack[MapOptions]) -> Self:
        """The objects whose URIs stand in a text file, one a line; a path or an ``s3://`` URI."""
        found = ObjectList.from_manifest(manifest, client=options.get("client"))
        return cls(found, **options)

    def __len__(self) -> int:
        return len(self.objects)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: Sequence[int]) -> list[Any]: ...
    def __getitem__(self, index: int | Sequence[int]) -> Any:
        if isinstance(index, Sequence):
            return self.__getitems__(index)
        uri = self.objects[index]
        return self._sample(uri, client_or_default(self._client).get(uri))

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Several samples by one call into the engine."""
        uris = [self.objects[index] for index in indices]
        buffers = client_or_default(self._client).get_many(uris)
        return [self._sample(uri, data) for uri, data in zip(uris, buffers, strict=True)]

    def _sample(self, uri: str, data: Buffer) -> Any:
        found = S3Object(uri, data)
        return found if self._transform is None else self._transform(found)


class IterableOptions(TypedDict, total=False):
    """Keywords of `S3IterableDataset`."""

    transform: Transform | None
    shuffle: bool
    seed: int
    rank: int | None
    world_size: int | None
    drop_uneven: bool
    window: Window
    client: Client | None


class S3IterableDataset(ShardedDataset):
    """Objects one after the other, fetched ahead, split among ranks and DataLoader workers.

    A sample is an `S3Object`, or what `transform` returns for one. `shuffle` is over all objects,
    by `seed` and ``set_epoch()``. Of N consumers (ranks x workers) each has every N-th object, so
    none comes twice and none is missing; if the count does not divide, some consumers have one
    more, and ``drop_uneven=True`` leaves the last few out instead.

    `window` bounds what is fetched ahead: at most two windows of objects are in memory. The default
    is 64 objects, and 64 MiB where the sizes are known (from a prefix they are).
    """

    kind = "objects"

    def __init__(self, uris: Iterable[str], **options: Unpack[IterableOptions]) -> None:
        super().__init__(
            uris,
            shuffle=options.get("shuffle", False),
            seed=options.get("seed", 0),
            rank=options.get("rank"),
            world_size=options.get("world_size"),
            drop_uneven=options.get("drop_uneven", False),
            client=options.get("client"),
        )
        self._transform = options.get("transform")
        self._window = options.get("window", DEFAULT_WINDOW)

    @classmethod
    def from_prefix(
        cls,
        prefix: str,
        *,
        suffix: str | tuple[str, ...] | None = None,
        **options: Unpack[IterableOptions],
    ) -> Self:
        """All objects whose URI begins with `prefix` (and ends with `suffix`); lists them now."""
        found = ObjectList.from_prefix(prefix, suffix=suffix, client=options.get("client"))
        return cls(found, **options)

    @classmethod
    def from_objects(cls, uris: str | Iterable[str], **options: Unpack[IterableOptions]) -> Self:
        """These objects, or this one; as the constructor."""
        return cls([uris] if isinstance(uris, str) else uris, **options)

    @classmethod
    def from_manifest(
        cls, manifest: str | PathLike[str], **options: Unpack[IterableOptions]
    ) -> Self:
        """The objects whose URIs stand in a text file, one a line; a path or an ``s3://`` URI."""
        found = ObjectList.from_manifest(manifest, client=options.get("client"))
        return cls(found, **options)

    def _start(self) -> State:
        return {"samples": 0}

    def _iterate(self, units: Sequence[int], share: Share, state: State) -> Iterator[Any]:
        done: int = state["samples"]

        def wanted(index: int) -> Wanted:
            unit = units[done + index]
            return Wanted(self.objects[unit], size=self.objects.size(unit))

        client = client_or_default(self._client)
        arriving = fetch_in_order(client, len(units) - done, wanted, self._window)
        with closing(arriving):
            for index, data in enumerate(arriving, done):
                sample = S3Object(self.objects[units[index]], data)
                made = sample if self._transform is None else self._transform(sample)
                state["samples"] = index + 1
                yield made
