"""Tar archives as they stream by: members and WebDataset samples, without copying their bytes.

Reads ustar, pax and GNU archives (long names, sizes past 8 GiB). A member whose bytes lie within
one part of the stream is a slice of that part; one that crosses parts is joined into `bytes`, the
only copy made here. An archive that ends early, or whose headers are damaged, is a
`CorruptDataError` that says where; so is one that lacks the closing block of zeros, since its
writer did not finish. Compressed archives and sparse members are refused.

Nothing here knows S3: it reads any iterable of parts.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from wirespeed import Buffer
from wirespeed.torch.errors import CorruptDataError

Bytes = Buffer | bytes

_BLOCK = 512
_ZEROS = bytes(_BLOCK)
# A pax header or a long name is a few hundred bytes; one of more than this is damage or an attack.
_LONGEST_EXTENSION = 1 << 20
_REGULAR = (b"0", b"\0", b"7")
# pax headers of a member and of the whole archive, GNU's long names and long links.
_EXTENSIONS = (b"x", b"g", b"L", b"K")
# Links, devices, folders, pipes: they have no bytes of their own.
_PASSED_OVER = (b"1", b"2", b"3", b"4", b"5", b"6")
# "a/b.tar-part.jpg": the key ends at the first dot of the last component, as in WebDataset.
_SAMPLE_NAME = re.compile(r"((?:.*/)?[^./]+)\.([^/]*)", re.DOTALL)
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"BZ": "bzip2", b"\xfd7": "xz", b"\x28\xb5": "zstd"}


@dataclass(frozen=True, slots=True)
class Member:
    """A regular file of an archive; `start` and `end` span its headers, data and padding."""

    name: str
    data: Bytes
    start: int
    end: int


@dataclass(slots=True)
class Sample:
    """Members with one basename that follow each other: extension -> bytes."""

    key: str
    start: int
    end: int
    fields: dict[str, Bytes] = field(default_factory=dict[str, Bytes])


class _Parts:
    """Parts that follow each other, read as one sequence of bytes."""

    def __init__(self, parts: Iterable[Bytes], uri: str, offset: int, size: int | None) -> None:
        self._parts = iter(parts)
        self._part: Bytes = b""
        self._at = 0
        self._uri = uri
        self._end = None if size is None else offset + size
        self.offset = offset

    def take(self, count: int) -> Bytes:
        """The next `count` bytes: a slice of a part if they lie in one."""
        stop = self._at + count
        if stop <= len(self._part):
            taken = self._part[self._at : stop]
            self._at = stop
        else:
            # A corrupt size must not make us hold all the rest before we notice.
            if self._end is not None and self.offset + count > self._end:
                raise self._truncated(self._end)
            taken = b"".join(self._pieces(count))
        self.offset += count
        return taken

    def skip(self, count: int) -> None:
        """Passes over `count` bytes."""
        for _ in self._pieces(count):
            pass
        self.offset += count

    def at_end(self) -> bool:
        """Whether no byte is left."""
        while self._at == len(self._part):
            part = next(self._parts, None)
            if part is None:
                return True
            self._part, self._at = part, 0
        return False

    def _pieces(self, count: int) -> Iterator[memoryview]:
        missing = count
        while missing:
            if self.at_end():
                raise self._truncated(self.offset + count - missing)
            stop = min(self._at + missing, len(self._part))
            missing -= stop - self._at
            begin, self._at = self._at, stop
            yield memoryview(self._part)[begin:stop]

    def _truncated(self, at: int) -> CorruptDataError:
        return CorruptDataError(self._uri, "the tar archive ends in the middle of a member", at)


def read_members(
    parts: Iterable[Bytes],
    uri: str,
    *,
    offset: int = 0,
    size: int | None = None,
    excerpt: bool = False,
) -> Iterator[Member]:
    """The regular files of the archive whose bytes, from `offset` on, are `parts`.

    `offset` is where a header begins; `size` how many bytes there will be, if known. An `excerpt`
    is a range of members out of an archive, which need not end with a block of zeros.
    """
    reader = _Parts(parts, uri, offset, size)
    extended: dict[str, str] = {}
    begin = offset
    while True:
        at = reader.offset
        if reader.at_end():
            if excerpt and not extended:
                return
            raise CorruptDataError(
                uri,
                "the tar archive ends without its closing zeros: it was cut, or never finished",
                at,
            )
        header = bytes(reader.take(_BLOCK))
        if header == _ZEROS:
            return
        kind, length, name = _parse_header(header, uri, at)
        if kind in _REGULAR:
            name = extended.pop("path", name)
            data = reader.take(_pax_size(extended, length, uri, at))
            reader.skip(-len(data) % _BLOCK)
            # Old archives mark a folder by its name alone.
            if not name.endswith("/"):
                yield Member(name, data, begin, reader.offset)
        elif kind in _EXTENSIONS:
            if length > _LONGEST_EXTENSION:
                raise CorruptDataError(uri, f"a tar header claims {length:,} bytes of names", at)
            data = bytes(reader.take(length))
            reader.skip(-length % _BLOCK)
            if kind == b"x":
                extended.update(_parse_pax(data, uri, at))
            elif kind == b"L":
                extended["path"] = data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
            if kind != b"g":
                continue
        elif kind not in _PASSED_OVER:
            raise CorruptDataError(uri, f"member {name!r} is of a kind not read here: {kind!r}", at)
        extended = {}
        begin = reader.offset


def read_samples(members: Iterable[Member], uri: str) -> Iterator[Sample]:
    """Members grouped by basename: ``a/1.jpg`` and ``a/1.cls`` are one sample, ``a/1``.

    Files without an extension, and hidden ones, are passed over. The same name twice in one sample
    is a `CorruptDataError`.
    """
    sample: Sample | None = None
    for member in members:
        match = _SAMPLE_NAME.fullmatch(member.name)
        if match is None:
            continue
        key, extension = match[1], match[2].lower()
        if sample is None or sample.key != key:
            if sample is not None:
                yield sample
            sample = Sample(key, member.start, member.end)
        if extension in sample.fields:
            raise CorruptDataError(uri, f"{member.name!r} is twice in one sample", member.start)
        sample.fields[extension] = member.data
        sample.end = member.end
    if sample is not None:
        yield sample


def _parse_header(header: bytes, uri: str, at: int) -> tuple[bytes, int, str]:
    """(kind, length, name) of a header block, once its checksum is right."""
    # The checksum counts its own field as spaces.
    stored = _number(header[148:156])
    if stored != sum(header) - sum(header[148:156]) + 8 * 0x20 and stored != _signed_sum(header):
        compression = _COMPRESSIONS.get(header[:2]) if at == 0 else None
        if compression:
            raise CorruptDataError(
                uri, f"is compressed ({compression}): store shards as plain tar", at
            )
        raise CorruptDataError(uri, "not a tar header (its checksum is wrong)", at)
    length = _number(header[124:136])
    if length < 0:
        raise CorruptDataError(uri, f"a tar header gives the size {header[124:136]!r}", at)
    name = header[:100].partition(b"\0")[0]
    if header[257:263] == b"ustar\0":
        prefix = header[345:500].partition(b"\0")[0]
        name = prefix + b"/" + name if prefix else name
    return header[156:157], length, name.decode("utf-8", "surrogateescape")


def _signed_sum(header: bytes) -> int:
    """The checksum as some old writers took it: of signed bytes."""
    return sum(memoryview(header[:148] + b" " * 8 + header[156:]).cast("b"))


def _number(text: bytes) -> int:
    """A number of a header: octal digits, or base 256 if it begins so; -1 if it is none."""
    if text[0] == 0x80:
        return int.from_bytes(text[1:], "big")
    digits = text.strip(b" \0")
    if not digits:
        return 0
    # `int` alone would take signs and underscores as well.
    return int(digits, 8) if digits.isdigit() and not digits.strip(b"01234567") else -1


def _parse_pax(data: bytes, uri: str, at: int) -> dict[str, str]:
    """The records ``<length> <name>=<value>\\n`` that matter: the path and the size."""
    found: dict[str, str] = {}
    while data and data.strip(b"\0"):
        digits, space, rest = data.partition(b" ")
        length = int(digits) if digits.isdigit() and len(digits) < 8 else 0
        record = rest[: length - len(digits) - 1]
        name, equals, value = record.partition(b"=")
        if not (
            space and equals and len(digits) + 1 + len(record) == length and record[-1:] == b"\n"
        ):
            raise CorruptDataError(uri, "a damaged pax header", at)
        if name.startswith(b"GNU.sparse."):
            raise CorruptDataError(uri, "has sparse members, which are not read here", at)
        if name in (b"path", b"size"):
            found[name.decode()] = value[:-1].decode("utf-8", "surrogateescape")
        data = data[length:]
    return found


def _pax_size(extended: dict[str, str], length: int, uri: str, at: int) -> int:
    """The size that a pax header gives, which goes before the header's own."""
    size = extended.pop("size", None)
    if size is None:
        return length
    if not (size.isascii() and size.isdigit() and len(size) < 20):
        raise CorruptDataError(uri, f"a pax header gives the size {size[:40]!r}", at)
    return int(size)
