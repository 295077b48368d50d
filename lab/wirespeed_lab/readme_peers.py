"""The table of the Python package beside its peers in docs/benchmarks.md: the cost of each client
on the same work, with its exact version and the counts of the server."""

from __future__ import annotations

from . import checks
from .checks import METRICS
from .environments import OUR_PACKAGE

MIB = 1 << 20
HEAD = (
    "| work | client | core-seconds | of theirs, ours is | throughput | requests | MiB received "
    "| peak MiB |",
    "|---|---|---|---|---|---|---|---|",
)


def has_peers(row: dict) -> bool:
    return any(contender["role"] == "peer" for contender in row.get("contenders", ()))


def tables(rows: list[dict]) -> list[str]:
    """One table: each row's clients one under the other, ours first."""
    lines = list(HEAD)
    for row in rows:
        title = row["title"].removeprefix("Python: ")
        for contender in row["contenders"]:
            if line := _line(row, contender, title):
                lines.append(line)
                title = "the same"
    return lines


def version(contender: dict) -> str:
    """The version of the package that the contender's driver is named after."""
    packages = contender.get("packages", {})
    for word in (OUR_PACKAGE, *_words(contender["name"])):
        if word in packages:
            return packages[word]
    return ""


def _words(name: str) -> list[str]:
    parts = name.replace(",", " ").split()
    return [word for part in parts for word in (part, part.partition(".")[0])]


def _line(row: dict, contender: dict, title: str) -> str | None:
    name = contender["name"]
    metric = row["checks"][0]["metric"]
    cost = checks.level(row, name, metric)
    if cost is None:
        return f"| {title} | {name} | failed | | | | | |" if name in row["failures"] else None
    ours = [
        finding
        for finding in checks.judge_all(row)
        if finding.over == (name,) and finding.estimate is not None
    ]
    share = "; ".join(
        f"{f.estimate.median:.3f}" + ("" if f.verdict == "met" else f" {f.verdict}") for f in ours
    )
    unit = METRICS[metric][1].removeprefix("core-")
    part = f" (1/{contender['share']} of the work)" if "share" in contender else ""
    return (
        f"| {title} | {name} {version(contender)}{part} | {short(cost.median)} {unit} | {share} "
        f"| {rate(row, name)} | {_whole(checks.each(row, name, 'server_requests'))} "
        f"| {_whole(checks.each(row, name, 'server_bytes'), MIB)} "
        f"| {_whole(checks.peak_bytes(row, name), MIB)} |"
    )


def rate(row: dict, name: str) -> str:
    """The throughput in GB/s, or objects (keys, requests) per second where bytes are few."""
    bytes_rate = checks.level(row, name, "throughput")
    if bytes_rate and bytes_rate.median >= 0.1:
        return f"{bytes_rate.median:.2f} GB/s"
    seconds = checks.level(row, name, "seconds")
    objects = max(s["objects"] for s in row["samples"] if s["contender"] == name)
    return f"{objects / seconds.median:,.0f} /s"


def short(value: float) -> str:
    """The number with three significant digits."""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def _whole(value: float | None, unit: int = 1) -> str:
    return "" if value is None else f"{value / unit:,.0f}"
