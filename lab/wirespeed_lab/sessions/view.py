"""What the terminal shows while a session runs: a table that is redrawn between rounds, or plain
lines where there is no terminal. Owns no measuring; draws only while no client runs, so that it
costs the clients nothing."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Sequence
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..records import metrics
from .pace import spoken

#: Events that say something to a person.
SAID = {
    "skipped": "cannot do this",
    "failed": "FAILED",
    "disqualified": "DISQUALIFIED",
    "note": "note",
    "stopped": "STOPPED",
    "resumed": "resumed",
}


class View(Protocol):
    """What a session tells whoever watches it."""

    def begin(self, cells: Sequence[str], clients: Sequence[str], blocks: int) -> None: ...

    def cell(self, name: str) -> None: ...

    def turn(self, client: str, block: int, left_s: float | None) -> None: ...

    def round(self, line: dict) -> None: ...

    def event(self, line: dict) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self, state: str, text: str) -> None: ...


class PlainView:
    """One line a block and one an event, for logs and pipes."""

    def __init__(self, console: Console):
        self._console = console
        self._cell, self._block, self._blocks = "", -1, 0
        self._cells: Sequence[str] = ()

    def begin(self, cells: Sequence[str], clients: Sequence[str], blocks: int) -> None:
        self._cells, self._blocks = cells, blocks
        self._say(f"{len(clients)} clients, {len(cells)} cells, {blocks} blocks each")

    def cell(self, name: str) -> None:
        self._cell, self._block = name, -1

    def turn(self, client: str, block: int, left_s: float | None) -> None:
        if block == self._block:
            return
        self._block = block
        what = f"block {block} of {self._blocks}" if block else "every client is verified"
        place = f"cell {self._cells.index(self._cell) + 1} of {len(self._cells)}"
        left = f", {spoken(left_s)} left" if left_s is not None else ""
        self._say(f"{self._cell} ({place}): {what}{left}")

    def round(self, line: dict) -> None:
        if line["disturbed"] and line["block"]:
            self._say(f"  {line['client']}: disturbed ({', '.join(line['disturbed'])})")

    def event(self, line: dict) -> None:
        if line["event"] in SAID:
            who = f"  {line['client']}: " if line["client"] else "  "
            self._say(f"{who}{SAID[line['event']]}: {line['text']}")

    def note(self, text: str) -> None:
        self._say(f"  note: {text}")

    def end(self, state: str, text: str) -> None:
        self._say(f"{state}{': ' if text else ''}{text}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


@dataclasses.dataclass
class _Row:
    state: str = "waits"
    rounds: int = 0
    disturbed: int = 0
    costs: list[float] = dataclasses.field(default_factory=list)
    rates: list[float] = dataclasses.field(default_factory=list)


class LiveView:
    """A table of the cell that runs, with the time that is left."""

    def __init__(self, console: Console):
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._rows: dict[str, _Row] = {}
        self._clients: Sequence[str] = ()
        self._cells: Sequence[str] = ()
        self._cell, self._blocks, self._block = "", 0, 0
        self._left: float | None = None
        self._began = time.monotonic()
        self._by_object = False

    def begin(self, cells: Sequence[str], clients: Sequence[str], blocks: int) -> None:
        self._cells, self._clients, self._blocks = cells, clients, blocks
        self._began = time.monotonic()
        self._live.start()

    def cell(self, name: str) -> None:
        self._cell, self._by_object = name, False
        self._rows = {client: _Row() for client in self._clients}

    def turn(self, client: str, block: int, left_s: float | None) -> None:
        self._block, self._left = block, left_s
        row = self._rows.setdefault(client, _Row())
        before, row.state = row.state, "runs"
        self._draw()
        row.state = before

    def round(self, line: dict) -> None:
        row = self._rows.setdefault(line["client"], _Row())
        row.state = line["phase"]
        row.disturbed += bool(line["disturbed"])
        if line["phase"] in ("verified", "first"):
            return
        row.rounds += 1
        found = metrics.of_round(line)
        self._by_object = "core_s_per_gib" not in found
        cost, rate = ("core_us_per_object", "objects_per_s")
        if not self._by_object:
            cost, rate = ("core_s_per_gib", "bytes_per_s")
        row.costs.append(found.get(cost, 0.0))
        row.rates.append(found.get(rate, 0.0))

    def event(self, line: dict) -> None:
        if line["event"] not in SAID:
            return
        if line["client"]:
            self._rows.setdefault(line["client"], _Row()).state = line["event"]
        who = f"{line['cell']}, {line['client']}: " if line["client"] else ""
        self.note(f"{who}{SAID[line['event']]}: {line['text']}")

    def note(self, text: str) -> None:
        self._console.print(Text(text))

    def end(self, state: str, text: str) -> None:
        self._live.stop()
        self._console.print(Text(f"{state}{': ' if text else ''}{text}"))

    def _draw(self) -> None:
        unit, rate = ("core-µs/object", "/s") if self._by_object else ("core-s/GiB", "GB/s")
        table = Table(title=None, pad_edge=False)
        table.add_column("client")
        table.add_column("rounds", justify="right")
        table.add_column(unit, justify="right")
        table.add_column(rate, justify="right")
        table.add_column("disturbed", justify="right")
        table.add_column("")
        for client, row in self._rows.items():
            divide = 1 if self._by_object else 1e9
            table.add_row(
                client,
                f"{row.rounds}/{self._blocks}",
                f"{statistics.median(row.costs):.3g}" if row.costs else "",
                f"{statistics.median(row.rates) / divide:.3g}" if row.rates else "",
                str(row.disturbed or ""),
                row.state,
                style="bold" if row.state == "runs" else None,
            )
        number = self._cells.index(self._cell) + 1 if self._cell in self._cells else 0
        head = (
            f"{self._cell}  cell {number} of {len(self._cells)}, block {self._block} of "
            f"{self._blocks}, {spoken(time.monotonic() - self._began)} so far, "
            f"{spoken(self._left)} left"
        )
        self._live.update(Group(Text(head), table), refresh=True)
