"""The directory of a checkpoint's zip archive, read from its last bytes; and where records' data
begin.

torch writes each record of a checkpoint uncompressed and aligned, so its bytes can go straight
into a tensor once it is known where they are. The directory says where a record's header begins,
not where the header ends. For records as torch lays them out that follows from two facts that must
agree: data are aligned to 64 bytes, and the next record follows at once. Where they don't agree
the header is read.

Pure: bytes in, offsets out. Damage is a `CorruptDataError`.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from wirespeed.torch.errors import CorruptDataError

LOCAL_HEADER = 30
_ALIGNMENT = 64
_NO_COMPRESSION = 0
_HAS_DESCRIPTOR = 1 << 3
_ENCRYPTED = 1
_MAX16, _MAX32 = 0xFFFF, 0xFFFFFFFF
_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")


@dataclass(frozen=True, slots=True)
class Record:
    """A file in the archive: its bytes are somewhere between its `header` and `limit`."""

    name: str
    flags: int
    crc: int
    size: int
    header: int
    limit: int
    stored: bool
    """Whether the bytes are neither compressed nor encrypted."""


def read_directory(uri: str, size: int, read: Callable[[int, int], bytes]) -> dict[str, Record]:
    """The records by name, in the file's order; ``read(start, end)`` gives bytes of the object.

    An object that is no zip archive has none: the result is empty.
    """
    # The end record is 22 bytes and a comment of at most 65,535.
    tail_at = max(0, size - _END.size - _MAX16)
    tail = read(tail_at, size)
    found = tail.rfind(b"PK\5\6")
    while found >= 0 and not _fits(tail, found):
        found = tail.rfind(b"PK\5\6", 0, found)
    if found < 0:
        return {}
    end = tail_at + found
    _, _, _, _, count, length, start, _ = _END.unpack_from(tail, found)
    if count == _MAX16 or _MAX32 in (length, start):
        if end < _END64_LOCATOR.size:
            raise CorruptDataError(uri, "a zip archive without its locator", end)
        locator = read(end - _END64_LOCATOR.size, end)
        magic, _, at, _ = _END64_LOCATOR.unpack(locator)
        if magic != b"PK\6\7" or at + _END64.size > end:
            raise CorruptDataError(
                uri, "a zip archive whose 64-bit directory is not to be found", end
            )
        fields = _END64.unpack(read(at, at + _END64.size))
        if fields[0] != b"PK\6\6":
            raise CorruptDataError(uri, "a zip archive whose 64-bit directory is damaged", at)
        count, length, start = fields[7], fields[8], fields[9]
        end = at
    if start + length > end:
        raise CorruptDataError(uri, "a zip archive whose directory lies beyond its end", start)
    return _entries(uri, read(start, start + length), count, start)


def _fits(tail: bytes, found: int) -> bool:
    """Whether an end record here, with its comment, is the last of the file."""
    if found + _END.size > len(tail):
        return False
    return found + _END.size + _END.unpack_from(tail, found)[-1] == len(tail)


def _entries(uri: str, directory: bytes, count: int, start: int) -> dict[str, Record]:
    found: list[tuple[str, int, int, int, int, bool]] = []
    at = 0
    for _ in range(count):
        damaged = CorruptDataError(uri, "a zip archive whose directory is damaged", start + at)
        if at + _ENTRY.size > len(directory):
            raise damaged
        fields = _ENTRY.unpack_from(directory, at)
        magic, flags, method, crc, packed, size = (fields[i] for i in (0, 3, 4, 7, 8, 9))
        name_length, extra_length, comment_length = fields[10:13]
        header = fields[16]
        at += _ENTRY.size
        name = directory[at : at + name_length].decode("utf-8", "surrogateescape")
        extra = directory[at + name_length : at + name_length + extra_length]
        at += name_length + extra_length + comment_length
        if magic != b"PK\1\2" or at > len(directory):
            raise damaged
        packed, size, header = _large(extra, packed, size, header, damaged)
        stored = method == _NO_COMPRESSION and not flags & _ENCRYPTED and packed == size
        found.append((name, flags, crc, packed, header, stored))
    found.sort(key=lambda one: one[4])
    limits = [one[4] for one in found[1:]] + [start]
    records: dict[str, Record] = {}
    for (name, flags, crc, size, header, stored), limit in zip(found, limits, strict=True):
        if header + LOCAL_HEADER + len(name.encode("utf-8", "surrogateescape")) + size > limit:
            raise CorruptDataError(uri, f"record {name!r} runs into the next one", header)
        if name in records:
            raise CorruptDataError(uri, f"record {name!r} is there twice", header)
        records[name] = Record(name, flags, crc, size, header, limit, stored)
    return records


def _large(
    extra: bytes, packed: int, size: int, header: int, damaged: CorruptDataError
) -> tuple[int, int, int]:
    """The sizes and the offset with those that didn't fit 32 bits taken from the 64-bit field."""
    if _MAX32 not in (packed, size, header):
        return packed, size, header
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        at += 4
        if kind == 1:
            wide = [extra[i : i + 8] for i in range(at, min(at + length, len(extra)), 8)]
            values = iter([int.from_bytes(one, "little") for one in wide if len(one) == 8])
            # They stand in this order, each only where its own field is full.
            size = next(values, -1) if size == _MAX32 else size
            packed = next(values, -1) if packed == _MAX32 else packed
            header = next(values, -1) if header == _MAX32 else header
            if -1 in (size, packed, header):
                raise damaged
            return packed, size, header
        at += length
    raise damaged


def data_offset(record: Record) -> int | None:
    """Where the data of a record begin if it lies as torch lays it; ``None`` if it doesn't."""
    wide = record.size >= _MAX32 or record.header >= _MAX32
    start = record.header + LOCAL_HEADER + len(record.name.encode("utf-8", "surrogateescape")) + 4
    if wide:
        start += 4 + 16 * (record.size >= _MAX32) + 8 * (record.header >= _MAX32)
    start += -start % _ALIGNMENT
    behind = record.limit - start - record.size
    descriptor = (24 if wide else 16) if record.flags & _HAS_DESCRIPTOR else 0
    return start if behind == descriptor else None


def data_offset_by_header(uri: str, record: Record, header: bytes) -> int:
    """Where the data of a record begin, by the first 30 bytes of its own header."""
    if len(header) < LOCAL_HEADER:
        raise CorruptDataError(uri, "ends too early", record.header)
    fields = _LOCAL.unpack_from(header)
    start = record.header + LOCAL_HEADER + fields[9] + fields[10]
    if fields[0] != b"PK\3\4" or start + record.size > record.limit:
        raise CorruptDataError(
            uri, f"the header of record {record.name!r} is damaged", record.header
        )
    return start
