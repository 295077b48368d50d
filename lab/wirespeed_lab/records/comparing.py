"""Two clients, or two records of the same clients, beside each other.

Owns the ratios that no summary holds. Inside one record rounds are paired by block. Between
records nothing is paired, so the machine's moods do not cancel out: the interval is that of two
medians drawn independently, and the text that goes with it says so.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

import numpy as np

from .. import stats
from . import metrics
from .record import Record
from .summary import differs, paired, rounds_of

#: Of a cell, what has to be equal before two records of it may be compared.
SAME_WORK = ("operation", "sink", "mode", "concurrency", "part_size", "work")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """``ratio`` is A over B, or None with a ``reason``."""

    cell: str
    a: str
    b: str
    metric: str
    median_a: float
    median_b: float
    ratio: stats.Estimate | None
    differs: bool
    reason: str = ""


def within(record: Record, a: str, b: str) -> list[Comparison]:
    """Two clients of one record, cell by cell, paired by block."""
    rounds = rounds_of(record.plan, record.lines())
    found = []
    for cell in record.plan["cells"]:
        one, other = rounds.get((cell["id"], a), {}), rounds.get((cell["id"], b), {})
        for metric in _costs(cell):
            ratio = paired(one, other, metric)
            if ratio is None:
                continue
            different = ratio.pop("differs")
            found.append(
                Comparison(
                    cell["id"],
                    a,
                    b,
                    metric,
                    _median(one, metric),
                    _median(other, metric),
                    stats.Estimate(**ratio),
                    different,
                )
            )
    return found


@dataclasses.dataclass(frozen=True)
class Repeated:
    """The same comparison many times over: ``estimates`` of as many blocks each."""

    cell: str
    metric: str
    estimates: tuple[stats.Estimate, ...]

    @property
    def equal(self) -> int:
        """Intervals that include 1."""
        return sum(estimate.low <= 1 <= estimate.high for estimate in self.estimates)

    @property
    def half_width(self) -> float:
        """Median half-width of the intervals."""
        return statistics.median(estimate.half_width for estimate in self.estimates)

    @property
    def median(self) -> float:
        """Median of the ratios."""
        return statistics.median(estimate.median for estimate in self.estimates)


def repeatedly(record: Record, a: str, b: str, each: int) -> list[Repeated]:
    """Two clients of one record, compared over every ``each`` blocks by themselves. What is left
    at the end and is fewer is left out. With a client against itself this says how far an
    interval can be believed."""
    rounds = rounds_of(record.plan, record.lines())
    found = []
    for cell in record.plan["cells"]:
        one, other = rounds.get((cell["id"], a), {}), rounds.get((cell["id"], b), {})
        both = [block for block in one if block in other]
        groups = [both[n : n + each] for n in range(0, len(both) - each + 1, each)]
        for metric in _costs(cell) if groups else ():
            pairs = [
                paired({n: one[n] for n in group}, {n: other[n] for n in group}, metric)
                for group in groups
            ]
            estimates = [
                stats.Estimate(pair["median"], pair["low"], pair["high"], pair["count"])
                for pair in pairs
                if pair
            ]
            if estimates:
                found.append(Repeated(cell["id"], metric, tuple(estimates)))
    return found


def between(
    a: Record, b: Record, clients: Sequence[tuple[str, str]] | None = None
) -> list[Comparison]:
    """The same cells of two records: every client that both measured, or the pairs named."""
    ours, theirs = rounds_of(a.plan, a.lines()), rounds_of(b.plan, b.lines())
    cells = {cell["id"]: cell for cell in b.plan["cells"]}
    found = []
    for cell in a.plan["cells"]:
        if not (other := cells.get(cell["id"])):
            continue
        both = [name for (where, name) in ours if where == cell["id"]]
        pairs = clients or [(name, name) for name in both if (cell["id"], name) in theirs]
        differ = [n for n in SAME_WORK if cell["plan"].get(n) != other["plan"].get(n)]
        for one, two in pairs:
            counted_a, counted_b = ours.get((cell["id"], one)), theirs.get((cell["id"], two))
            for metric in _costs(cell) if counted_a and counted_b else ():
                if differ:
                    reason = f"not the same work: {', '.join(differ)} differ"
                    found.append(
                        Comparison(cell["id"], one, two, metric, 0, 0, None, False, reason)
                    )
                    continue
                ratio = unpaired(_values(counted_a, metric), _values(counted_b, metric))
                if ratio is not None:
                    found.append(
                        Comparison(
                            cell["id"],
                            one,
                            two,
                            metric,
                            _median(counted_a, metric),
                            _median(counted_b, metric),
                            ratio,
                            differs(ratio),
                        )
                    )
    return found


def unpaired(over: Sequence[float], under: Sequence[float], seed: int = 0) -> stats.Estimate | None:
    """Ratio of medians with the percentile bootstrap's interval, each side drawn anew; None where
    a side has no values."""
    if not over or not under or min(under) <= 0:
        return None
    random = np.random.default_rng(seed)

    def medians(values: Sequence[float]) -> np.ndarray:
        data = np.asarray(values, dtype=float)
        drawn = random.integers(0, data.size, (stats.RESAMPLES, data.size))
        return np.median(data[drawn], axis=1)

    ratios = medians(over) / medians(under)
    tail = (1 - stats.expanded(min(len(over), len(under)))) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    middle = statistics.median(over) / statistics.median(under)
    return stats.Estimate(middle, float(low), float(high), min(len(over), len(under)))


def _costs(cell: dict) -> tuple[str, ...]:
    moves = any("keys" not in item for item in cell["plan"]["work"])
    return metrics.costs({"bytes": int(moves)})


def _values(rounds: dict, metric: str) -> list[float]:
    return [line.metrics[metric] for line in rounds.values() if metric in line.metrics]


def _median(rounds: dict, metric: str) -> float:
    return statistics.median(_values(rounds, metric) or [0.0])
