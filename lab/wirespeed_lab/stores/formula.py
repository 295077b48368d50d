"""The bytes of computed objects, in pieces: the drivers' own formula, for the lab's side."""

from __future__ import annotations

import io
from collections.abc import Iterator

from ..driving.digests import formula

#: Bytes of a piece: one period of the formula at most.
PIECE = 1 << 20


def expected_pieces(key: str, size: int) -> Iterator[bytes]:
    """The object's bytes in order, in pieces of ``PIECE`` bytes; the last may be shorter."""
    made = formula()
    for at in range(0, size, PIECE):
        yield made.expected(key, at, min(PIECE, size - at))


class FormulaReader(io.RawIOBase):
    """The object as a file to read from, of ``size`` bytes."""

    def __init__(self, key: str, size: int):
        self._key, self._size, self._at = key, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = min(max(0, base + offset), self._size)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = self._size - self._at
        wanted = left if size is None or size < 0 else min(size, left)
        made = formula()
        pieces = []
        while wanted:
            piece = made.expected(self._key, self._at, min(PIECE, wanted))
            pieces.append(piece)
            self._at += len(piece)
            wanted -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
