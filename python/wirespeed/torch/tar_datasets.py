"""Datasets over tar shards in WebDataset's layout: streamed in order, or by number with an index.

A shard is streamed once, from beginning to end, and never stored: samples are slices of the
stream's parts. The next shard's stream opens while the last bytes of the current one are used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypedDict, Unpack, overload

from torch.utils.data import Dataset

from wirespeed import Client
from wirespeed.errors import ConfigError
from wirespeed.torch.datasets import DEFAULT_WINDOW, MIB
from wirespeed.torch.errors import CorruptDataError
from wirespeed.torch.fetching import Wanted, fetch_in_order
from wirespeed.torch.objects import SCHEME, ObjectList, client_or_default
from wirespeed.torch.sampling import Draws, Share, State
from wirespeed.torch.sharded import ShardedDataset
from wirespeed.torch.tar import Bytes, Sample, read_members, read_samples

if TYPE_CHECKING:
    from wirespeed._wirespeed import Stream

TarSample = dict[str, Any]
"""``__key__`` (the basename), ``__url__`` (the shard), and an entry for each extension."""

Transform = Callable[[TarSample], Any]

_RANGE_NOT_SATISFIABLE = 416


class TarOptions(TypedDict, total=False):
    """Keywords of `S3TarDataset`."""

    transform: Transform | None
    as_bytes: bool
    shuffle: bool
    shuffle_buffer: int
    seed: int
    rank: int | None
    world_size: int | None
    drop_uneven: bool
    window: int
    client: Client | None


_Found = tuple[str, Sample]


class Shard(NamedTuple):
    """A shard as an index knows it: the version of it that the places are of."""

    uri: str
    size: int
    etag: str | None


class _Place(NamedTuple):
    """Where a sample is: which of this consumer's shards, and the bytes of it."""

    unit: int
    start: int
    end: int


class S3TarDataset(ShardedDataset):
    """The samples of tar shards, one after the other (WebDataset's layout).

    Files with one basename that follow each other are a sample: ``{"__key__": "0001", "__url__":
    "s3://bucket/shard-0.tar", "jpg": ..., "cls": ...}``, or what `transform` makes of that. A
    value is a `Buffer` over the stream's memory, or `bytes` where a member crossed two parts of
    the stream; ``as_bytes=True`` makes them all `bytes`.

    ``shuffle=True`` shuffles the shards (`seed`, ``set_epoch()``); `shuffle_buffer` is how many
    samples are held to draw the next one from, at random. Held samples are copied, so that a small
    one does not keep the whole part of the stream alive.

    Shards are split among ranks and DataLoader workers, every N-th to each of N consumers: have at
    least N, and a multiple of it for an even load. No sample comes twice and none is missing;
    ``drop_uneven=True`` leaves out the last shards of the order where their count does not divide.

    The saved position holds the place of every sample in the shuffle buffer, so a resumed dataset
    goes on with the very next sample: it reads the buffer's samples again (a ranged GET each), and
    streams the current shard from where it was.

    `window` is how many bytes of a shard are fetched ahead.
    """

    kind = "tar"

    def __init__(self, shards: Iterable[str], **options: Unpack[TarOptions]) -> None:
        super().__init__(
            shards,
            shuffle=options.get("shuffle", False),
            seed=options.get("seed", 0),
            rank=options.get("rank"),
            world_size=options.get("world_size"),
            drop_uneven=options.get("drop_uneven", False),
            client=options.get("client"),
        )
        self._transform = options.get("transform")
        self._as_bytes = options.get("as_bytes", False)
        self._window = options.get("window", 64 * MIB)
        self._buffer_size = options.get("shuffle_buffer", 0)
        if self._buffer_size < 0 or self._window < 1:
            raise ValueError("shuffle_buffer is 0 or more samples, window 1 byte or more")
        self._settings["shuffle_buffer"] = self._buffer_size

    @classmethod
    def from_prefix(
        cls,
        prefix: str,
        *,
        suffix: str | tuple[str, ...] | None = ".tar",
        **options: Unpack[TarOptions],
    ) -> Self:
        """All shards whose URI begins with `prefix` and ends with `suffix`; lists them now."""
        found = ObjectList.from_prefix(prefix, suffix=suffix, client=options.get("client"))
        return cls(found, **options)

    @classmethod
    def from_manifest(cls, manifest: str | PathLike[str], **options: Unpack[TarOptions]) -> Self:
        """The shards whose URIs stand in a text file, one a line; a path or an ``s3://`` URI."""
        found = ObjectList.from_manifest(manifest, client=options.get("client"))
        return cls(found, **options)

    def _start(self) -> State:
        return {"shard": 0, "offset": 0, "draws": 0, "held": []}

    def _iterate(self, units: Sequence[int], share: Share, state: State) -> Iterator[Any]:
        samples = self._in_order(units, state)
        if self._buffer_size:
            draws = Draws(self._seed, state["epoch"], share, state["draws"])
            samples = self._shuffled(samples, units, state, draws)
        with closing(samples):
            for uri, sample in samples:
                made = _as_dict(uri, sample, self._as_bytes)
                yield made if self._transform is None else self._transform(made)

    def _in_order(self, units: Sequence[int], state: State) -> Generator[_Found, None, None]:
        """The samples from the position on; moves it past each before handing it out."""
        shards = _Shards(client_or_default(self._client), self.objects, units, self._window)
        with closing(shards):
            while state["shard"] < len(units):
                uri, parts, size = shards.open(state["shard"], state["offset"])
                members = read_members(parts, uri, offset=state["offset"], size=size)
                for sample in read_samples(members, uri):
                    state["offset"] = sample.end
                    yield uri, sample
                state["shard"] += 1
                state["offset"] = 0

    def _shuffled(
        self,
        samples: Generator[_Found, None, None],
        units: Sequence[int],
        state: State,
        draws: Draws,
    ) -> Generator[_Found, None, None]:
        places: list[_Place] = [_Place(*place) for place in state["held"]]
        state["held"] = places
        held = list(self._read_again(units, places))
        with closing(samples):
            for uri, sample in samples:
                sample.fields = {name: bytes(data) for name, data in sample.fields.items()}
                held.append((uri, sample))
                places.append(_Place(state["shard"], sample.start, sample.end))
                if len(held) > self._buffer_size:
                    yield self._draw(held, places, state, draws)
        while held:
            yield self._draw(held, places, state, draws)

    def _draw(
        self,
        held: list[_Found],
        places: list[_Place],
        state: State,
        draws: Draws,
    ) -> _Found:
        chosen = draws.below(len(held))
        state["draws"] = draws.made
        held[chosen], held[-1] = held[-1], held[chosen]
        places[chosen], places[-1] = places[-1], places[chosen]
        places.pop()
        return held.pop()

    def _read_again(self, units: Sequence[int], places: Sequence[_Place]) -> Iterator[_Found]:
        client = client_or_default(self._client)
        wanted = [
            Wanted(
                self.objects[units[place.unit]], (place.start, place.end), place.end - place.start
            )
            for place in places
        ]
        arriving = fetch_in_order(client, len(wanted), wanted.__getitem__, DEFAULT_WINDOW)
        with closing(arriving):
            for one, place, data in zip(wanted, places, arriving, strict=True):
                sample = _only_sample(one.uri, place.start, data)
                sample.fields = {name: bytes(field) for name, field in sample.fields.items()}
                yield one.uri, sample


class _Shards:
    """The streams of a consumer's shards: one in use, and near its end the next one as well."""

    def __init__(
        self, client: Client, uris: Sequence[str], units: Sequence[int], window: int
    ) -> None:
        self._client = client
        self._uris = uris
        self._units = units
        self._window = window
        self._current: Stream | None = None
        self._next: tuple[int, Stream] | None = None

    def open(self, shard: int, offset: int) -> tuple[str, Iterator[Bytes], int]:
        """(URI, parts, bytes to come) of a shard from `offset` on."""
        if self._current is not None:
            self._current.close()
        ahead, self._next = self._next, None
        if ahead is not None and ahead[0] == shard and offset == 0:
            self._current = ahead[1]
        else:
            self._current = self._stream(shard, offset)
        stream = self._current
        return self._uris[self._units[shard]], self._parts(shard, stream), stream.length

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
        if self._next is not None:
            self._next[1].close()

    def _parts(self, shard: int, stream: Stream) -> Iterator[Bytes]:
        left = stream.length
        for part in stream:
            left -= len(part)
            if left <= self._window and self._next is None and shard + 1 < len(self._units):
                self._next = (shard + 1, self._stream(shard + 1, 0))
            yield part

    def _stream(self, shard: int, offset: int) -> Stream:
        uri = self._uris[self._units[shard]]
        whole = None if offset == 0 else (offset, None)
        return self._client.stream(uri, range=whole, window=self._window)


class TarIndex:
    """Where each sample of some shards is: (shard, first byte, end). Made once, then saved.

    Building streams the shards once, and notes each one's size and ETag: a shard that is another by
    the time it is read is an error. Saved as JSON, in a local file or an object.
    """

    def __init__(self, shards: Sequence[Shard], samples: Sequence[tuple[int, int, int]]) -> None:
        self.shards = list(shards)
        self.samples = [_Place(*sample) for sample in samples]
        for place in self.samples:
            if not (
                0 <= place.unit < len(self.shards)
                and 0 <= place.start < place.end <= self.shards[place.unit].size
            ):
                raise ValueError(f"{place} is not a place in one of {len(self.shards)} shards")

    @classmethod
    def build(cls, shards: Iterable[str], *, client: Client | None = None) -> Self:
        """Reads the shards, and notes where their samples are."""
        found: list[Shard] = []
        samples: list[tuple[int, int, int]] = []
        for unit, uri in enumerate(shards):
            with client_or_default(client).stream(uri) as stream:
                found.append(Shard(uri, stream.info.size, stream.info.etag))
                for sample in read_samples(read_members(stream, uri, size=stream.length), uri):
                    samples.append((unit, sample.start, sample.end))
        return cls(found, samples)

    @classmethod
    def load(cls, where: str | PathLike[str], *, client: Client | None = None) -> Self:
        """An index that `save` has written, to a path or an ``s3://`` URI."""
        name = fspath(where)
        if name.startswith(SCHEME):
            text = client_or_default(client).get(name, as_bytes=True)
        else:
            text = Path(name).read_bytes()
        try:
            found = json.loads(text)
            if found["version"] != 1:
                raise ValueError(f"version {found['version']!r} is not known here")
            return cls([_shard(*fields) for fields in found["shards"]], found["samples"])
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptDataError(name, f"not an index of tar shards: {error}") from error

    def save(self, where: str | PathLike[str], *, client: Client | None = None) -> None:
        """Writes the index to a path or an ``s3://`` URI."""
        name = fspath(where)
        text = json.dumps({"version": 1, "shards": self.shards, "samples": self.samples}).encode()
        if name.startswith(SCHEME):
            client_or_default(client).put(name, text)
        else:
            Path(name).write_bytes(text)

    def __len__(self) -> int:
        return len(self.samples)


class TarMapOptions(TypedDict, total=False):
    """Keywords of `S3TarMapDataset`."""

    transform: Transform | None
    as_bytes: bool
    client: Client | None


class S3TarMapDataset(Dataset[Any]):
    """The samples of tar shards by their number, each one ranged GET: any order, any sampler.

    Samples are those of `S3TarDataset`. As with `S3MapDataset`, several are one call into the
    engine. A shard that was replaced since its index was made is a `CorruptDataError`.
    """

    def __init__(self, index: TarIndex, **options: Unpack[TarMapOptions]) -> None:
        self.index = index
        self._transform = options.get("transform")
        self._as_bytes = options.get("as_bytes", False)
        self._client = options.get("client")

    def __len__(self) -> int:
        return len(self.index)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: Sequence[int]) -> list[Any]: ...
    def __getitem__(self, index: int | Sequence[int]) -> Any:
        if isinstance(index, Sequence):
            return self.__getitems__(index)
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Several samples by one call into the engine."""
        places = [self.index.samples[index] for index in indices]
        shards = [self.index.shards[one.unit] for one in places]
        items = [
            (shard.uri, (one.start, one.end)) for shard, one in zip(shards, places, strict=True)
        ]
        try:
            buffers = client_or_default(self._client).get_many(items)
        except ConfigError as error:
            # A sample lies within the shard that was indexed, so this one is another.
            if error.status != _RANGE_NOT_SATISFIABLE:
                raise
            raise _replaced(f"{SCHEME}{error.bucket}/{error.key}") from error
        made: list[Any] = []
        for shard, place, data in zip(shards, places, buffers, strict=True):
            # Compared here and not demanded of the server: one call has samples of many shards.
            info = data.info
            if info is None or (info.size, info.etag) != (shard.size, shard.etag):
                raise _replaced(shard.uri, place.start)
            found = _only_sample(shard.uri, place.start, data)
            sample = _as_dict(shard.uri, found, self._as_bytes)
            made.append(sample if self._transform is None else self._transform(sample))
        return made


def _replaced(uri: str, at: int | None = None) -> CorruptDataError:
    return CorruptDataError(uri, "was replaced since its index was made: make it again", at)


def _shard(uri: Any, size: Any, etag: Any) -> Shard:
    """A shard as a saved index has it; raises `TypeError` if it is none."""
    if not (isinstance(uri, str) and type(size) is int and isinstance(etag, (str, type(None)))):
        raise TypeError("a shard is its URI, its size and its ETag")
    return Shard(uri, size, etag)


def _only_sample(uri: str, start: int, data: Bytes) -> Sample:
    """The sample whose headers and data these bytes of a shard are."""
    members = read_members((data,), uri, offset=start, size=len(data), excerpt=True)
    found = list(read_samples(members, uri))
    if len(found) != 1:
        raise CorruptDataError(uri, f"expected one sample here, found {len(found)}", start)
    return found[0]


def _as_dict(uri: str, sample: Sample, as_bytes: bool) -> TarSample:
    found: TarSample = {"__key__": sample.key, "__url__": uri}
    for name, data in sample.fields.items():
        found[name] = bytes(data) if as_bytes else data
    return found
