"""The samples of one round as columns of whole microseconds, which compress well.

Owns the encoding alone. ``start`` counts from the start of the round by the driver's own clock,
``first`` and ``end`` from the start of the item. ``count`` is there only where a sample stands
for several items, ``bytes`` only where it differs from the plan.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

US = 1000


def pack(samples: Sequence[dict], round_start_ns: int, planned: Sequence[int | None]) -> dict:
    """``samples`` as the protocol has them, ``planned`` the bytes of each item of the plan."""
    packed: dict[str, list] = {"start": [], "first": [], "end": [], "worker": []}
    for sample in samples:
        start, first = sample["start_ns"], sample.get("first_ns")
        packed["start"].append((start - round_start_ns) // US)
        packed["first"].append(None if first is None else (first - start) // US)
        packed["end"].append((sample["end_ns"] - start) // US)
        packed["worker"].append(sample.get("worker"))
    counts = [sample.get("count", 1) for sample in samples]
    if any(count != 1 for count in counts):
        packed["count"] = counts
    moved = [sample["bytes"] for sample in samples]
    if moved != list(planned):
        packed["bytes"] = moved
    return packed


def latencies_us(columns: dict) -> np.ndarray:
    """From start to end of each operation; samples that stand for several say nothing of it."""
    return _of_single(columns, columns["end"])


def first_bytes_us(columns: dict) -> np.ndarray:
    """From start to first byte of each operation that shows it."""
    return _of_single(columns, columns["first"])


def first_done_us(columns: dict) -> int | None:
    """From the start of the round until the first operation was done."""
    ends = _ends(columns)
    return min(ends, default=None)


def last_done_us(columns: dict) -> int | None:
    """From the start of the round until the last operation was done."""
    return max(_ends(columns), default=None)


def _ends(columns: dict) -> list[int]:
    return [a + b for a, b in zip(columns["start"], columns["end"], strict=True)]


def _of_single(columns: dict, values: list) -> np.ndarray:
    counts = columns.get("count") or [1] * len(values)
    single = [
        value
        for value, count in zip(values, counts, strict=True)
        if value is not None and count == 1
    ]
    return np.asarray(single, dtype=np.int64)
