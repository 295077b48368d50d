"""Summaries and comparisons as tables for a terminal. Owns rounding and wording only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..records import metrics
from ..records.comparing import Comparison, Repeated
from ..records.metrics import BY_NAME
from ..records.summary import FEWEST_PAIRS

#: Columns of the narrow table; the wide one has every metric that the cell has.
NARROW = (
    "bytes_per_s",
    "objects_per_s",
    "core_s_per_gib",
    "core_us_per_object",
    "peak_memory_bytes",
)
#: Columns of text where there is no terminal to fit into.
WIDE = 200
WITHOUT_TABLE = ("skipped", "failed", "not run")


def console() -> Console:
    """As wide as the terminal; in a pipe as wide as the tables need."""
    found = Console()
    return found if found.is_terminal else Console(width=WIDE)


def print_summary(
    console: Console, summary: dict, only: str | None = None, wide: bool = False
) -> None:
    """A table a cell, and below it what can't stand in one; what holds for all cells comes once,
    at the end."""
    cells = [cell for cell in summary["cells"] if only in (None, cell["id"])]
    always = set.intersection(*map(_without_table, cells)) if len(cells) > 1 else set()
    for cell in cells:
        _cell(console, cell, wide, always)
    for client, why in sorted(always):
        console.print(Text(f"{client}: in no cell: {why}"))
    for note in summary["notes"]:
        console.print(Text(f"note: {note}"))
    if not summary["complete"]:
        console.print(Text("The session is not complete: resume it to fill what is missing."))


def _without_table(cell: dict) -> set[tuple[str, str]]:
    """Clients that have no line in the table, each with the reason."""
    return {
        (client["client"], f"{client['state']}: {client['reason'] or 'no rounds'}")
        for client in cell["clients"]
        if client["state"] in WITHOUT_TABLE or not client["metrics"]
    }


def _cell(console: Console, cell: dict, wide: bool, always: set[tuple[str, str]]) -> None:
    measured = [client for client in cell["clients"] if client["metrics"]]
    wanted = [metric.name for metric in metrics.METRICS] if wide else NARROW
    shown = [name for name in wanted if any(name in client["metrics"] for client in measured)]
    if not wide:
        shown = _telling(cell, shown)
    cost = metrics.costs(cell)[0]
    table = Table(title=_title(cell), title_justify="left", pad_edge=False)
    table.add_column("client", no_wrap=True)
    for name in shown:
        metric = BY_NAME[name]
        table.add_column(f"{metric.title}\n{metric.unit}", justify="right")
    table.add_column("CPU /\nlimit", justify="right")
    table.add_column("CPU /\nbest peer", justify="right")
    parts = "p50 p95 p99 max ms" if wide else "p50 p99 ms"
    table.add_column(f"latency\n{parts}", justify="right")
    table.add_column(f"first byte\n{parts}", justify="right")
    table.add_column("")
    for client in sorted(measured, key=lambda client: _rank(client, cost)):
        table.add_row(
            client["client"],
            *(_estimate(client["metrics"].get(name), BY_NAME[name], wide) for name in shown),
            _ratio(client, "limit", cost),
            _ratio(client, "best peer", cost),
            _times(client["latency"], wide),
            _times(client["first_byte"], wide),
            "; ".join(_remarks(client, cell)),
        )
    console.print(table)
    for client, why in sorted(_without_table(cell) - always):
        console.print(Text(f"{client}: {why}"))


def _telling(cell: dict, shown: list[str]) -> list[str]:
    """Bytes for large objects, objects for small ones; both rarely say more."""
    small = cell["bytes"] / max(1, cell["objects"]) < metrics.GIB >> 10
    without = (
        ("bytes_per_s", "core_s_per_gib") if small else ("objects_per_s", "core_us_per_object")
    )
    return [name for name in shown if name not in without]


def _title(cell: dict) -> str:
    settings = [cell["operation"], f"sink {cell['sink']}", cell["mode"]]
    if cell["concurrency"]:
        settings.append(f"{cell['concurrency']} in flight")
    if cell["scale"] != 1:
        settings.append(f"scaled by {cell['scale']:g}")
    return f"{cell['id']} ({', '.join(settings)})"


def _rank(client: dict, cost: str) -> tuple[bool, float]:
    found = client["metrics"].get(cost)
    return (client["state"] != "measured", found["median"] if found else float("inf"))


def _estimate(found: dict | None, metric: metrics.Metric, wide: bool) -> str:
    if found is None:
        return ""
    low, middle, high = (found[name] / metric.divide for name in ("low", "median", "high"))
    spread = f" [{_number(low)}..{_number(high)}]" if wide and low != high else ""
    return _number(middle) + spread


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _ratio(client: dict, role: str, metric: str) -> str:
    for found in client["ratios"]:
        if found["role"] == role and found["metric"] == metric:
            if found["count"] < FEWEST_PAIRS:
                return "too few rounds"
            if not found["differs"]:
                return "no difference"
            return f"{found['median']:.3g} [{found['low']:.3g}..{found['high']:.3g}]"
    return ""


def _times(found: dict | None, wide: bool) -> str:
    if not found:
        return ""
    names = ("p50_s", "p95_s", "p99_s", "max_s") if wide else ("p50_s", "p99_s")
    return " ".join(f"{found[name] * 1000:.3g}" for name in names)


def _remarks(client: dict, cell: dict) -> Iterable[str]:
    if client["state"] != "measured":
        yield f"{client['state'].upper()}: {client['reason']}"
    for impossible in client["impossible"]:
        yield f"IMPOSSIBLE: {impossible}"
    if client["errors"]:
        yield f"{client['errors']} errors"
    effective = client["effective"].get("concurrency")
    if cell["concurrency"] and effective != cell["concurrency"]:
        yield f"{effective or 'its own number'} in flight"
    if client["still_disturbed"]:
        yield f"{client['still_disturbed']} disturbed"
    if client["outliers"]:
        yield f"{len({entry['block'] for entry in client['outliers']})} outliers"


def _verdict(line: Comparison) -> str:
    if line.ratio and line.ratio.count < FEWEST_PAIRS:
        return "too few rounds"
    return "" if line.differs else "no difference"


def print_comparisons(console: Console, found: Sequence[Comparison], independent: bool) -> None:
    """A line a cell and metric; below, what kind of interval it is."""
    table = Table(pad_edge=False)
    for title in ("cell", "metric", "A", "B"):
        table.add_column(title)
    table.add_column("A / B", justify="right")
    table.add_column("")
    for line in found:
        metric = BY_NAME[line.metric]
        if line.ratio is None:
            table.add_row(line.cell, metric.title, line.a, line.b, "", line.reason)
            continue
        ratio = f"{line.ratio.median:.3f} [{line.ratio.low:.3f}..{line.ratio.high:.3f}]"
        table.add_row(
            line.cell,
            f"{metric.title} {metric.unit}",
            f"{line.a} {_number(line.median_a / metric.divide)}",
            f"{line.b} {_number(line.median_b / metric.divide)}",
            ratio,
            _verdict(line),
        )
    console.print(table)
    if independent:
        console.print(
            Text(
                "Rounds of different records are not paired: what the machine did differently "
                "between the two is in these ratios."
            )
        )


def print_repeated(console: Console, found: Sequence[Repeated]) -> None:
    """How often the same comparison finds a difference."""
    for line in found:
        metric = BY_NAME[line.metric]
        console.print(
            Text(
                f"{line.cell}, {metric.title} {metric.unit}: {line.equal} of "
                f"{len(line.estimates)} intervals include 1; median ratio {line.median:.3f}, "
                f"median half-width {line.half_width:.1%}"
            )
        )
