"""The bytes of the server's computed objects, by its published formula (``wirespeed-origin
--synthetic``): slices of one table with a prime period, at a phase that depends on the key."""

from __future__ import annotations

import functools
import struct

PERIOD = 1_048_583
MASK = (1 << 64) - 1
#: In samples: so many bytes every so many, and the last ones.
SAMPLE, EVERY = 64, 1 << 20


@functools.cache
def _table() -> bytes:
    """Two periods, so that up to one whole period is a slice from any phase."""
    words = []
    for number in range(1, PERIOD // 8 + 2):
        state = number * 0x9E3779B97F4A7C15 & MASK
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & MASK
        words.append(state ^ state >> 31)
    once = struct.pack(f"<{len(words)}Q", *words)[:PERIOD]
    return once + once


@functools.cache
def phase(key: str) -> int:
    value = 0xCBF29CE484222325
    for byte in key.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value % PERIOD


def expected(key: str, start: int, length: int) -> bytes:
    """At most one period of the object."""
    begin = (phase(key) + start) % PERIOD
    return _table()[begin : begin + length]


def first_difference(key: str, view: memoryview, at: int, every: bool) -> int | None:
    """Where in the object ``view``, which begins there at ``at``, is found to be wrong.
    ``every`` compares all bytes, otherwise samples."""
    if every:
        pieces = [(start, PERIOD) for start in range(0, len(view), PERIOD)]
    else:
        pieces = [(start, SAMPLE) for start in range(0, len(view), EVERY)]
        pieces.append((max(0, len(view) - SAMPLE), SAMPLE))
    for start, length in pieces:
        piece = bytes(view[start : start + length])
        wanted = expected(key, at + start, len(piece))
        if piece != wanted:
            same = zip(piece, wanted, strict=True)
            return at + start + next(n for n, (one, other) in enumerate(same) if one != other)
    return None
