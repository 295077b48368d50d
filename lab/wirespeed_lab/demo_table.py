"""The demo's table: each step's clients one under the other, the engine first."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from .demo_steps import Measured

GIB = 1 << 30


def _rate(line: Measured) -> str:
    rate = line.bytes / line.seconds
    if rate >= 1e8:
        return f"{rate / 1e9:.2f} GB/s"
    if rate:
        return f"{rate / 1e6:.1f} MB/s"
    return f"{line.objects / line.seconds:,.0f} keys/s"


def _cost(line: Measured) -> str:
    if line.bytes:
        return f"{line.core_seconds / (line.bytes / GIB):.3f}"
    return "-"


def _each(line: Measured) -> str:
    return f"{line.core_seconds / line.objects * 1e6:,.1f}" if line.objects > 1 else "-"


def show(results: list[tuple[str, list[Measured]]], console: Console) -> None:
    table = Table(title="What it cost: the same work by each client, in this run")
    table.add_column("work")
    table.add_column("client")
    for name in ("throughput", "core-s/GiB", "core-µs/object", "requests", "peak MiB"):
        table.add_column(name, justify="right")
    for title, lines in results:
        for place, line in enumerate(lines):
            note = f" (on 1/{line.share} of the work)" if line.share > 1 else ""
            ours = "bold" if place == 0 else None
            table.add_row(
                title if place == 0 else "",
                line.client + note,
                _rate(line),
                _cost(line),
                _each(line),
                f"{line.requests:,}",
                f"{line.peak_rss_bytes / (1 << 20):,.0f}",
                style=ours,
            )
        table.add_section()
    console.print(table)
    console.print(
        "cp and ls are whole commands, start-up included; memory rows are the median of rounds in "
        "one process after the first; boto3 is one round, its imports not counted. Raw sockets "
        "send from and receive into memory, with no client in between: the floor, no competitor."
    )
