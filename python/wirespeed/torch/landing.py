"""An object whose ranges land in tensors: what safetensors files and checkpoints share.

`Remote` is the object: the bytes that its first requests brought are not asked for again, and all
later requests demand the same version (its ETag), so that nothing is put together from two.

`land` brings extents of it into memory on the CPU, each byte straight to its place, in one call
into the engine. For a device, see staging.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import torch

from wirespeed import Buffer, Client
from wirespeed.torch.errors import CorruptDataError
from wirespeed.torch.memory import view_of
from wirespeed.torch.objects import SCHEME

# The first request of an object: enough for most headers, and for all of a small file.
OPENING = 1 << 20


class Version(TypedDict, total=False):
    """The keyword that makes a request fail if the object is another one by now."""

    if_match: str


@dataclass(frozen=True)
class Extent:
    """Bytes `start` to `end` of an object (the end excluded), and where they go: flat bytes."""

    start: int
    end: int
    target: torch.Tensor


class Remote:
    """One version of an object; parts of it may be in hand already."""

    def __init__(self, client: Client, uri: str, *, tail: int = 0) -> None:
        """Opens the object with one call: its first bytes, with `tail` its last ones as well.

        Raises `CorruptDataError` for an empty object, which is no file of any format.
        """
        if not uri.startswith(SCHEME):
            raise ValueError(f"{uri!r} is not an object's URI: expected s3://bucket/key")
        self.client = client
        self.uri = uri
        ranges: list[tuple[int | None, int | None]] = [(0, OPENING)]
        if tail:
            ranges.append((-tail, None))
        # Of a small object this is all, and its checksum would be a request more.
        buffers = client.get_many([(uri, one) for one in ranges], verify=False)
        info = buffers[0].info
        if info is None or info.size == 0:
            raise CorruptDataError(uri, "is empty", 0)
        self.size = info.size
        self.version: Version = {"if_match": info.etag} if info.etag else {}
        self._in_hand: list[tuple[int, Buffer]] = [(0, buffers[0])]
        if tail:
            last = buffers[1]
            if last.info is None or last.info.etag != info.etag:
                raise CorruptDataError(uri, "was overwritten while it was being read: try again")
            self._in_hand.append((self.size - len(last), last))

    def read(self, start: int, end: int) -> bytes:
        """Bytes that a parser wants; from what is in hand, else by a request."""
        return self.read_many([(start, end)])[0]

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """As `read`, of several ranges: one call, and one request for neighbours."""
        found = [self._from_hand(start, end) for start, end in ranges]
        missing = [one for one, data in zip(ranges, found, strict=True) if data is None]
        if missing:
            got = self.client.get_ranges(self.uri, missing, as_bytes=True, **self.version)
            asked = iter(got)
            return [next(asked) if data is None else data for data in found]
        return [data for data in found if data is not None]

    def _from_hand(self, start: int, end: int) -> bytes | None:
        if start >= end:
            return b""
        for begin, buffer in self._in_hand:
            if begin <= start and end <= begin + len(buffer):
                return bytes(buffer[start - begin : end - begin])
        return None

    def split(self, extent: Extent) -> Extent | None:
        """Fills what is in hand of an extent's beginning, and returns the rest."""
        for begin, buffer in self._in_hand:
            known = min(begin + len(buffer), extent.end)
            if begin <= extent.start < known:
                count = known - extent.start
                at = extent.start - begin
                fill(extent.target[:count], buffer[at : at + count])
                if known == extent.end:
                    return None
                return Extent(known, extent.end, extent.target[count:])
        return extent


def fill(target: torch.Tensor, source: Buffer | bytes) -> None:
    """Copies bytes into flat bytes, on any device."""
    if target.device.type == "cpu":
        view_of(target)[:] = memoryview(source)
    else:
        landed = torch.empty(len(source), dtype=torch.uint8)
        view_of(landed)[:] = memoryview(source)
        target.copy_(landed)


def missing_of(remote: Remote, extents: Iterable[Extent]) -> list[Extent]:
    """Fills what is in hand already, and returns what must be asked for."""
    return [rest for one in extents if one.end > one.start and (rest := remote.split(one))]


def land(remote: Remote, extents: Iterable[Extent]) -> None:
    """Fills targets on the CPU by one call; raises what the first failed request raises."""
    missing = missing_of(remote, extents)
    if missing:
        remote.client.get_many(
            [(remote.uri, (one.start, one.end)) for one in missing],
            into=[view_of(one.target) for one in missing],
            **remote.version,
        )
