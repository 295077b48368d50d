"""Latencies over many rounds as one HDR histogram: three digits, from a microsecond to an hour.

Owns the histogram's bounds. A value outside them counts at the bound.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hdrh.histogram import HdrHistogram

LOWEST_US, HIGHEST_US, DIGITS = 1, 3_600_000_000, 3
PERCENTILES = {"p50_s": 50.0, "p95_s": 95.0, "p99_s": 99.0}


def merged(rounds: Iterable[np.ndarray]) -> dict | None:
    """Count, percentiles in seconds and the encoded histogram of all rounds together; None where
    no operation was seen."""
    histogram = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    for values in rounds:
        found, counts = np.unique(np.clip(values, LOWEST_US, HIGHEST_US), return_counts=True)
        for value, count in zip(found.tolist(), counts.tolist(), strict=True):
            histogram.record_value(value, count)
    if not histogram.total_count:
        return None
    return {
        "count": histogram.total_count,
        **{
            name: histogram.get_value_at_percentile(percentile) / 1e6
            for name, percentile in PERCENTILES.items()
        },
        "max_s": histogram.get_max_value() / 1e6,
        "histogram": histogram.encode().decode("ascii"),
    }


def same(one: str, other: str) -> bool:
    """Whether two encoded histograms hold the same counts, however they were compressed."""
    if one == other:
        return True
    first, second = HdrHistogram.decode(one), HdrHistogram.decode(other)
    return bool(first == second)
