"""The summary of a record, from its plan and its lines alone.

Owns which rounds count and what is said of them. Counted is, of each client and block, the last
attempt: a round is repeated when the machine was disturbed, which is judged without its result.
All others stay in the record and are numbered in the summary. Clients are compared inside a cell
only, and a cell has one sink.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable

from .. import stats
from . import columns, histograms, metrics

COUNTED = ("steady", "cold", "one-shot")
#: A modified z-score (Iglewicz & Hoaglin) above which a round is marked as an outlier.
OUTLIER = 3.5
#: Makes the median absolute deviation comparable with a standard deviation.
NORMAL = 0.6745
#: Blocks below which no ratio is called a difference and no round an outlier.
FEWEST_PAIRS = 5
#: Metrics in which outliers are looked for.
LOOKED_AT = ("seconds", "core_s_per_gib", "core_us_per_object")
LIMIT = "limit"


def summarise(plan: dict, lines: Iterable[dict]) -> dict:
    """The summary of schema 1. The same plan and lines give the same summary."""
    told = _Told(lines)
    return {
        "schema": 1,
        "complete": told.complete,
        "cells": [_cell(plan, cell, told) for cell in plan["cells"]],
        "notes": told.notes,
    }


class _Told:
    """The lines, sorted by what they are about. Of rounds only what the summary needs is kept."""

    def __init__(self, lines: Iterable[dict]):
        self.rounds: dict[tuple[str, str], list[_Round]] = {}
        self.states: dict[tuple[str, str], tuple[str, str]] = {}
        self.versions: dict[tuple[str, str], str] = {}
        self.notes: list[str] = []
        self.complete = False
        for line in lines:
            where = (line["cell"], line["client"])
            match line.get("event"):
                case None:
                    self.rounds.setdefault(where, []).append(_Round(line))
                case "started":
                    if version := line.get("describe", {}).get("version"):
                        self.versions[where] = str(version)
                    # What began anew after a failure is judged by what came of it.
                    self.states.pop(where, None)
                case "skipped" | "failed" | "disqualified" as state:
                    self.states[where] = (state, line["text"])
                case "complete":
                    self.complete = True
                case "note" | "resumed" | "interrupted" | "stopped":
                    if line["text"] not in self.notes:
                        self.notes.append(line["text"])


class _Round:
    def __init__(self, line: dict):
        self.block, self.attempt, self.phase = line["block"], line["attempt"], line["phase"]
        self.disturbed, self.errors = bool(line["disturbed"]), line["errors"]
        self.effective = line["effective"]
        self.metrics = metrics.of_round(line)
        self.latencies = columns.latencies_us(line["samples"])
        self.first_bytes = columns.first_bytes_us(line["samples"])


def _counted(rounds: list[_Round]) -> dict[int, _Round]:
    """The round of each block that counts, by block."""
    last: dict[int, _Round] = {}
    for line in rounds:
        if line.phase in COUNTED:
            last[line.block] = line
    return dict(sorted(last.items()))


def _cell(plan: dict, cell: dict, told: _Told) -> dict:
    work = cell["plan"]
    sizes = [_bytes(item) for item in work["work"]]
    said = {
        "id": cell["id"],
        **{name: work[name] for name in ("workload", "operation", "sink", "mode")},
        **{name: work[name] for name in ("concurrency", "part_size", "scale")},
        "bytes": sum(sizes),
        "objects": sum(item.get("keys", 1) for item in work["work"]),
    }
    counted = {
        client["client"]: _counted(told.rounds.get((cell["id"], client["client"]), []))
        for client in plan["clients"]
    }
    out = {client for client in counted if (cell["id"], client) in told.states}
    qualified = {client: rounds for client, rounds in counted.items() if client not in out}
    said["limit"] = _limit(plan, qualified)
    said["clients"] = [
        _client(cell["id"], client["client"], told, counted[client["client"]])
        for client in plan["clients"]
    ] + [_absent(item) for item in plan["absent"]]
    for client in said["clients"]:
        if client["state"] == "measured":
            client["ratios"] = _ratios(client["client"], said, qualified)
            client["impossible"] = _impossible(client["client"], said, qualified)
    return said


def _bytes(item: dict) -> int:
    if "keys" in item:
        return 0
    first, end = item.get("range", (0, item["size"]))
    return end - first


def _limit(plan: dict, qualified: dict[str, dict[int, _Round]]) -> str | None:
    for client in plan["clients"]:
        if client["id"] == LIMIT and qualified.get(client["client"]):
            return client["client"]
    return None


def _client(cell: str, name: str, told: _Told, counted: dict[int, _Round]) -> dict:
    rounds = told.rounds.get((cell, name), [])
    state, reason = told.states.get((cell, name), ("measured" if counted else "not run", None))
    first = next((line for line in rounds if line.phase == "first"), None)
    return {
        "client": name,
        "state": state,
        "reason": reason,
        "version": told.versions.get((cell, name)),
        "rounds": len(counted),
        "disturbed": sum(line.disturbed for line in rounds if line.phase in COUNTED),
        "still_disturbed": sum(line.disturbed for line in counted.values()),
        "errors": sum(line.errors for line in rounds),
        "impossible": [],
        "effective": rounds[-1].effective if rounds else {},
        "metrics": {
            metric.name: dataclasses.asdict(_median(list(values.values())))
            for metric in metrics.METRICS
            if (values := _values(counted, metric.name))
        },
        "first_round": first.metrics if first else {},
        "latency": histograms.merged(line.latencies for line in counted.values()),
        "first_byte": histograms.merged(line.first_bytes for line in counted.values()),
        "outliers": _outliers(counted),
        "ratios": [],
    }


def _median(values: list[float]) -> stats.Estimate:
    return stats.median_estimate(values, confidence=stats.expanded(len(values)))


def _absent(item: dict) -> dict:
    nothing = _client("", item["client"], _Told(()), {})
    return {**nothing, "state": "skipped", "reason": item["reason"]}


def _values(counted: dict[int, _Round], metric: str) -> dict[int, float]:
    return {
        block: line.metrics[metric] for block, line in counted.items() if metric in line.metrics
    }


def _outliers(counted: dict[int, _Round]) -> list[dict]:
    found = []
    for metric in LOOKED_AT:
        values = _values(counted, metric)
        if len(values) < FEWEST_PAIRS:
            continue
        middle = statistics.median(values.values())
        spread = statistics.median(abs(value - middle) for value in values.values())
        found += [
            {"block": block, "metric": metric, "value": value}
            for block, value in values.items()
            if spread and NORMAL * abs(value - middle) / spread > OUTLIER
        ]
    return found


def _ratios(name: str, cell: dict, qualified: dict[str, dict[int, _Round]]) -> list[dict]:
    """Of the client to the limit and to the best other client, paired by block."""
    found = []
    for metric in metrics.costs(cell):
        others = {
            other: statistics.median(values.values())
            for other, rounds in qualified.items()
            if other not in (name, cell["limit"])
            and (values := _values(rounds, metric))
            and name != cell["limit"]
        }
        best = min(others, key=others.__getitem__, default=None)
        for role, other in ((LIMIT, cell["limit"]), ("best peer", best)):
            if other is None or other == name:
                continue
            ratio = paired(qualified[name], qualified[other], metric)
            if ratio:
                found.append({"to": other, "role": role, "metric": metric, **ratio})
    return found


def paired(over: dict[int, _Round], under: dict[int, _Round], metric: str) -> dict | None:
    """The ratio over the blocks that both have. ``differs`` says that its interval excludes 1."""
    one, other = _values(over, metric), _values(under, metric)
    both = [block for block in one if other.get(block, 0) > 0]
    if not both:
        return None
    estimate = stats.paired_ratio(
        [one[b] for b in both],
        [other[b] for b in both],
        confidence=stats.expanded(len(both)),
    )
    return {**dataclasses.asdict(estimate), "differs": differs(estimate)}


def differs(estimate: stats.Estimate) -> bool:
    """Whether a ratio is a difference: its interval excludes 1, and rests on enough blocks."""
    return estimate.count >= FEWEST_PAIRS and not estimate.low <= 1 <= estimate.high


def _impossible(name: str, cell: dict, qualified: dict[str, dict[int, _Round]]) -> list[str]:
    """Rates above the highest that the limit driver reached, which nothing can explain but a
    fault in the measurement, in the client or in the limit."""
    if cell["limit"] is None or name == cell["limit"]:
        return []
    metric = "bytes_per_s" if cell["bytes"] else "objects_per_s"
    reached = max(_values(qualified[cell["limit"]], metric).values(), default=None)
    values = list(_values(qualified[name], metric).values())
    if len(values) < FEWEST_PAIRS or reached is None or statistics.median(values) <= reached:
        return []
    return [f"{metric} {statistics.median(values):.4g}, above the limit's best {reached:.4g}"]


def rounds_of(plan: dict, lines: Iterable[dict]) -> dict[tuple[str, str], dict[int, _Round]]:
    """The counted rounds by cell and client, for comparisons that no summary holds."""
    told = _Told(lines)
    return {where: _counted(rounds) for where, rounds in told.rounds.items()}
