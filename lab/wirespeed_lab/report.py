"""The table of a figures record, recomputed from its samples."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from . import checks
from .checks import METRICS, Finding
from .stats import Estimate

COLOURS = {"met": "green", "missed": "red", "not resolved": "yellow", "not run": "dim"}


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{_number(estimate.median)} [{_number(estimate.low)}..{_number(estimate.high)}]"


def _verdict(finding: Finding) -> str:
    return f"[{COLOURS[finding.verdict]}]{finding.verdict}[/]"


def show(record: dict, console: Console) -> None:
    """Prints what was asked and reached, then the level of every contender."""
    machine, versions = record["machine"], record["versions"]
    console.print(
        f"{record['started']}  {machine['cpu']}, {machine['cores']} cores, Linux "
        f"{machine['kernel']}, commit {(versions['commit'] or 'unknown')[:12]}"
        + (" with uncommitted changes" if versions["uncommitted_changes"] else "")
    )
    figures = Table(title="Figures asked for (median of paired ratios, 95 % interval)")
    for name in ("work", "figure", "over", "asked", "measured", "blocks", "verdict"):
        figures.add_column(name, justify="left")
    levels = Table(title="Levels (median over rounds, 95 % interval)")
    for name in ("work", "client", "metric", "level", "GB/s", "first round", "server", "peak MiB"):
        levels.add_column(name, justify="left")
    for row in record["rows"]:
        if "bounds" in row:
            _show_bounds(row, figures)
            continue
        if "facts" in row:
            _show_facts(row, figures)
            continue
        for finding in checks.judge_all(row):
            figures.add_row(
                row["title"] + (f": {finding.check.of}" if finding.check.of else ""),
                METRICS[finding.check.metric][1],
                " + ".join(finding.over) or "-",
                str(finding.check.asked),
                _estimate(finding.estimate),
                str(finding.estimate.count) if finding.estimate else "-",
                _verdict(finding),
            )
        _show_levels(row, levels)
    console.print(figures)
    console.print(levels)
    for row in record["rows"]:
        for name, failure in row.get("failures", {}).items():
            console.print(f"{row['id']}: [red]{name} failed[/]: {failure}", highlight=False)


def _show_bounds(row: dict, figures: Table) -> None:
    for bound in row["bounds"]:
        reached = bound["peak_rss_bytes"] <= bound["at_most_bytes"]
        verdict = "met" if reached else "missed"
        figures.add_row(
            f"{row['title']}: {bound['what']}",
            "MiB peak",
            "-",
            f"≤ {bound['at_most_bytes'] / (1 << 20):,.0f}",
            f"{bound['peak_rss_bytes'] / (1 << 20):,.0f}",
            "1",
            f"[{COLOURS[verdict]}]{verdict}[/]",
        )


def _show_facts(row: dict, figures: Table) -> None:
    for fact in row["facts"]:
        verdict = "met" if fact["measured"] <= fact["at_most"] else "missed"
        figures.add_row(
            f"{row['title']}: {fact['what']}",
            fact["unit"],
            "-",
            f"≤ {_number(fact['at_most'])}",
            _number(fact["measured"]),
            "1",
            f"[{COLOURS[verdict]}]{verdict}[/]",
        )


def _show_levels(row: dict, levels: Table) -> None:
    metric = row["checks"][0]["metric"] if row["checks"] else "core_s_per_gib"
    cheapest = checks.cheapest_limit(row)
    for contender in row["contenders"]:
        name = contender["name"]
        steady = checks.level(row, name, metric)
        if steady is None:
            continue
        first = checks.by_block(row, name, metric, first=True)
        rate = checks.level(row, name, "throughput")
        server = sum(s["server_cpu_s"] for s in row["samples"] if s["contender"] == name)
        moved = sum(s["bytes"] for s in row["samples"] if s["contender"] == name)
        note = " (the limit)" if name == cheapest else ""
        note += " (left early)" if name in row["dropped"] else ""
        levels.add_row(
            row["title"],
            name + note,
            METRICS[metric][1],
            _estimate(steady),
            _number(rate.median) if rate else "-",
            _number(first[min(first)]) if first and not row["fresh"] else "-",
            f"{server / (moved / checks.GIB):.3f} core-s/GiB" if moved else "-",
            f"{checks.peak_bytes(row, name) / (1 << 20):,.0f}",
        )
