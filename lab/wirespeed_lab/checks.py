"""What a row promises, and whether its samples keep the promise.

Works on the plain data of a record, so that the rule that stops a measurement
and the report that is printed years later are the same code.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable

from .stats import Estimate, Threshold, median_estimate, paired_difference, paired_ratio

GIB = 1 << 30


def _core_seconds(sample: dict) -> float:
    return sample["user_s"] + sample["system_s"]


#: name -> (value of a sample, unit)
METRICS: dict[str, tuple[Callable[[dict], float], str]] = {
    "core_s_per_gib": (lambda s: _core_seconds(s) / (s["bytes"] / GIB), "core-s/GiB"),
    "core_us_per_request": (lambda s: _core_seconds(s) / s["objects"] * 1e6, "core-µs/request"),
    "core_us_per_object": (lambda s: _core_seconds(s) / s["objects"] * 1e6, "core-µs/object"),
    "core_us_per_key": (lambda s: _core_seconds(s) / s["objects"] * 1e6, "core-µs/key"),
    "core_us_per_range": (lambda s: _core_seconds(s) / s["objects"] * 1e6, "core-µs/range"),
    "us_per_object": (lambda s: s["seconds"] / s["objects"] * 1e6, "µs/object"),
    "throughput": (lambda s: s["bytes"] / s["seconds"] / 1e9, "GB/s"),
    "seconds": (lambda s: s["seconds"], "s"),
    "peak_rss": (lambda s: s["peak_rss_bytes"] / (1 << 20), "MiB peak"),
}


@dataclasses.dataclass(frozen=True)
class Check:
    """``metric`` of the engine over the sum of the same metric of ``over``
    (contender names; ``limit`` for the cheapest cell of the grid, ``best peer`` for
    the peer with the lowest median). ``minus`` names a contender whose metric is
    taken off the engine's first; ``given`` is a denominator that is not measured
    but stated, in the metric's unit, and called ``given_name``. ``of`` names the
    contender that is judged, where it is not the engine; ``kind`` is a threshold's."""

    metric: str
    over: tuple[str, ...]
    threshold: float
    at_least: bool = False
    minus: str | None = None
    given: float | None = None
    given_name: str | None = None
    of: str | None = None
    kind: str = "ratio"

    @property
    def asked(self) -> Threshold:
        return Threshold(self.threshold, self.at_least, self.kind)

    def as_json(self) -> dict:
        return {**dataclasses.asdict(self), "over": list(self.over)}

    @staticmethod
    def from_json(data: dict) -> Check:
        return Check(**{**data, "over": tuple(data["over"])})


@dataclasses.dataclass(frozen=True)
class Finding:
    """A check beside what was measured. ``estimate`` is None when nothing was."""

    check: Check
    over: tuple[str, ...]
    estimate: Estimate | None

    @property
    def verdict(self) -> str:
        return "not run" if self.estimate is None else self.check.asked.verdict(self.estimate)


def by_block(row: dict, name: str, metric: str, first: bool = False) -> dict[int, float]:
    """Value of the metric for each block in which the contender has a round.
    First rounds of a process that runs many stand apart."""
    value, _ = METRICS[metric]
    return {
        sample["block"]: value(sample)
        for sample in row["samples"]
        if sample["contender"] == name and sample["first"] == first
    }


def has_role(row: dict, role: str) -> list[str]:
    return [c["name"] for c in row["contenders"] if c["role"] == role]


def cheapest_limit(row: dict) -> str | None:
    """The grid cell with the lowest median of CPU time, among those that stayed to the end."""
    return cheapest(row, "limit")


def cheapest(row: dict, role: str, metric: str = "core_s_per_gib") -> str | None:
    """Of all in this role, the one with the lowest median of the metric that stayed to the end."""
    costs = {}
    for name in has_role(row, role):
        values = by_block(row, name, metric, row["fresh"])
        if values and name not in row["dropped"]:
            costs[name] = statistics.median(values.values())
    return min(costs, key=costs.get) if costs else None


def judge(row: dict, check: Check) -> Finding:
    """The check's paired ratio over the blocks in which everyone named has a round."""
    engines = [check.of] if check.of else has_role(row, "engine")
    names = []
    for name in check.over:
        role = {"limit": "limit", "best peer": "peer"}.get(name)
        found = cheapest(row, role) if role else name
        if found:
            names.append(found)
    if not engines or len(names) < len(check.over):
        return Finding(check, tuple(names), None)

    def values(name: str) -> dict[int, float]:
        return by_block(row, name, check.metric, row["fresh"])

    ours = values(engines[0])
    less = values(check.minus) if check.minus else dict.fromkeys(ours, 0.0)
    theirs = [values(name) for name in names]
    shown = (*names, *((check.given_name,) if check.given_name else ()))
    blocks = sorted(set(ours).intersection(less, *theirs))
    if not blocks:
        return Finding(check, shown, None)
    under = [sum(each[block] for each in theirs) + (check.given or 0) for block in blocks]
    over = [ours[block] - less[block] for block in blocks]
    if check.kind == "difference":
        return Finding(check, shown, paired_difference(over, under))
    return Finding(check, shown, paired_ratio(over, under))


def judge_all(row: dict) -> list[Finding]:
    return [judge(row, Check.from_json(check)) for check in row["checks"]]


def level(row: dict, name: str, metric: str) -> Estimate | None:
    """Median of the metric for one contender, with its interval."""
    values = by_block(row, name, metric, row["fresh"])
    return median_estimate(list(values.values())) if values else None


def peak_bytes(row: dict, name: str) -> int:
    """The resident size that the contender's process reached at most."""
    return max(s["peak_rss_bytes"] for s in row["samples"] if s["contender"] == name)


def each(row: dict, name: str, field: str) -> float | None:
    """Median over rounds of what the server counted for one contender: an exact number, mostly."""
    values = [s[field] for s in row["samples"] if s["contender"] == name and field in s]
    return statistics.median(values) if values else None
