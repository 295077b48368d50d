"""The samples of a record: JSON lines, each appended as a gzip member of its own.

Owns samples.jsonl.gz. Whatever ends the session, all lines but at most the last can be read
again; a line that a full disk cut off is taken back at once. Refuses to change a line.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

#: For zlib: a gzip header, the largest window.
GZIP = 31
#: Small, because what follows a member in it is copied once a member.
CHUNK = 1 << 15


class CutOff(Exception):
    """A line could not be written; what stood before it still does. The text says why."""


class Journal:
    """The file may hold lines already: a session that is resumed goes on behind them. What a
    crash left of a last line is cut off first."""

    def __init__(self, path: Path):
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._end = sound_bytes(path)
        os.ftruncate(self._file, self._end)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, line: dict) -> None:
        """Raises CutOff, most often because the disk is full."""
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        member = gzip.compress(text.encode() + b"\n", mtime=0)
        written = 0
        try:
            while written < len(member):
                written += os.pwrite(self._file, member[written:], self._end + written)
        except OSError as error:
            os.ftruncate(self._file, self._end)
            raise CutOff(f"{self.path} takes no more: {error.strerror}") from error
        self._end += written

    def keep(self) -> None:
        """Asks the disk to have all lines, so that they outlive the machine."""
        try:
            os.fdatasync(self._file)
        except OSError as error:
            raise CutOff(f"{self.path} was not kept: {error.strerror}") from error

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def seal(path: Path) -> None:
    """Writes all lines as one member, which is smaller. Nothing changes when the disk is full."""
    beside = path.with_suffix(".partial")
    try:
        with gzip.GzipFile(beside, "wb", compresslevel=9, mtime=0) as out:
            for text in _texts(path):
                out.write(text + b"\n")
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)


def lines(path: Path) -> Iterator[dict]:
    """All whole lines, in order. A cut-off end is left out. Raises ValueError for a line that is
    no JSON object, and OSError."""
    for number, text in enumerate(_texts(path), 1):
        try:
            line = json.loads(text)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        if not isinstance(line, dict):
            raise ValueError(f"{path}, line {number}: no JSON object")
        yield line


def sound_bytes(path: Path) -> int:
    """Bytes of the file up to the end of its last whole member. Raises CutOff where more than
    one line stands behind it: that is no crash's work, and cutting it off would lose samples."""
    sound, behind = 0, 0
    for data, end in _pieces(path):
        behind = 0 if end else behind + data.count(b"\n")
        sound = end or sound
    if behind > 1:
        raise CutOff(f"{path} is damaged at its end: take a copy, or begin a new record")
    return sound


def cut_off(path: Path) -> bool:
    """Whether the file ends within a line, or within what packs its lines."""
    sound, last = 0, b"\n"
    for data, end in _pieces(path):
        sound, last = end, data[-1:] or last
    return sound != path.stat().st_size or last != b"\n"


def _texts(path: Path) -> Iterator[bytes]:
    rest = b""
    for data, _ in _pieces(path):
        *whole, rest = (rest + data).split(b"\n")
        yield from whole


def _pieces(path: Path) -> Iterator[tuple[bytes, int]]:
    """What the file holds, piece by piece; with each piece that ends a member the place in the
    file where it ends, otherwise 0. Stops at what is no gzip."""
    with path.open("rb") as file:
        stream, rest, place = zlib.decompressobj(GZIP), b"", 0
        while rest or (rest := file.read(CHUNK)):
            try:
                data = stream.decompress(rest)
            except zlib.error:
                return
            place += len(rest) - len(stream.unused_data)
            rest = stream.unused_data
            yield data, place if stream.eof else 0
            if stream.eof:
                stream = zlib.decompressobj(GZIP)
