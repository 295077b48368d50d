"""A published table beside ours: one table for each workload that repeats it.

A published client keeps its row where we have no figure, with the reason. Clients of ours that the
report does not have, and second ones for a row, are named below the table where they have none.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..plans import load as load_workload
from . import formatting, rows
from .seeds import Row, Table
from .shelf import Cell, Missing, Point, Ratio, Shelf
from .verdicts import NOT_MEASURED, Claimed, verdict
from .wanted import Wanted

#: The columns from the rate to the place in the sweep, where there is no figure.
NO_FIGURES = ["-"] * 6


def lines(table: Table, shelf: Shelf, used: list[Cell]) -> list[str]:
    """The tables, or the published one alone where there is no record; ``used`` gets the cells."""
    found, without = [], []
    for wanted in table.repeats:
        if shelf.cells(wanted):
            found += _Beside(table, wanted, shelf).lines(used)
        else:
            without.append(f"`{wanted}`")
    if not found:
        found = [*_published(table), ""]
    return [*found, f"No record of {', '.join(without)}.", ""] if without else found


def _published(table: Table) -> list[str]:
    titles = ["report's client", f"report, {table.unit}", f"x {table.baseline}", "set to"]
    body = [[row.name, *_theirs(table, row), row.settings] for row in table.rows]
    return formatting.table(titles, body)


def _theirs(table: Table, row: Row) -> list[str]:
    """The figure, and its relation to the baseline's where the figure is not that already."""
    relative = table.relative(row)
    same = table.row(table.baseline).value == 1
    return [
        "-" if row.value is None else f"{row.value:,g}",
        "-" if relative is None or same else formatting.number(relative),
    ]


class _Beside:
    """One table of one workload."""

    def __init__(self, table: Table, wanted: Wanted, shelf: Shelf):
        self.table, self.wanted, self.shelf = table, wanted, shelf
        self.base = table.row(table.baseline)
        self.against = self._find(self.base.clients[0]) if self.base.clients else None
        self.cells: list[Cell] = []
        self.body: list[list[str]] = []
        self.missing: list[tuple[str, str]] = []

    def lines(self, used: list[Cell]) -> list[str]:
        for row in self.table.rows:
            self._row(row)
        for client in self.table.beside:
            self._more(["(not in the report)", "", "", ""], client)
        used += self.cells
        return [*self._heading(), "", *self._table(), *rows.absent(self.missing), ""]

    def _find(self, client: str) -> Point | Missing:
        return self.shelf.find(self.wanted, client, self.table.metric)

    def _row(self, row: Row) -> None:
        theirs = [row.name, row.settings, *_theirs(self.table, row)]
        if not row.clients:
            self.body.append([*theirs, "none", *NO_FIGURES, NOT_MEASURED, row.without])
            return
        first, *others = row.clients
        point, claimed = self._find(first), self._claimed(row)
        if isinstance(point, Missing):
            judged = NOT_MEASURED if claimed else "-"
            self.body.append([*theirs, f"`{first}`", *NO_FIGURES, judged, point.reason])
        else:
            self.body.append([*theirs, *self._ours(point, claimed)])
        for client in others:
            self._more([""] * 4, client)

    def _more(self, theirs: list[str], client: str) -> None:
        point = self._find(client)
        if isinstance(point, Missing):
            self.missing.append((client, point.reason))
        else:
            self.body.append([*theirs, *self._ours(point, None)])

    def _claimed(self, row: Row) -> Claimed | None:
        """What the row claims of itself and the baseline."""
        relative = self.table.relative(row)
        return Claimed.of_ratio(relative) if relative and row is not self.base else None

    def _ours(self, point: Point, claimed: Claimed | None) -> list[str]:
        self.cells.append(point.cell)
        base = isinstance(self.against, Point) and point.said is self.against.said
        found: Ratio | None = None
        if isinstance(self.against, Point) and not base:
            found = self.shelf.ratio(point, self.against, self.table.metric)
        relative = "1" if base else formatting.ratio(found.estimate, found.paired) if found else "-"
        return [
            f"`{point.client}`",
            rows.figure(point, self.table.metric),
            relative,
            rows.figure(point, rows.cost_metric(point.cell)),
            rows.requests(point),
            rows.connections(point),
            ", ".join(rows.setting(point.cell)) if self.wanted.best else "-",
            verdict(claimed, found.estimate if found else None) if claimed else "-",
            "; ".join(rows.remarks(point)) or "-",
        ]

    def _table(self) -> list[str]:
        table = self.table
        cost = rows.cost_title(rows.cost_metric(self.cells[0])) if self.cells else "CPU"
        relative = f"x {table.baseline}"
        titles = ["report's client", "set to", f"report, {table.unit}", f"report, {relative}"]
        titles += ["ours", f"{rows.rate_title(table.metric)} [95 %]", f"{relative} [95 %]"]
        titles += [f"{cost} [95 %]", "requests each", "connections", "at", "verdict", "remarks"]
        return formatting.table(titles, self.body)

    def _heading(self) -> list[str]:
        wanted = self.wanted
        workload = load_workload(wanted.workload)
        every = self.shelf.cells(wanted)
        cells: Sequence[Cell] = self.cells or every[:1]
        kind = [f"sink {workload.sink}" if workload.operation == "get" else workload.operation]
        kind += [workload.mode] if workload.mode != "warm" else []
        points = len({tuple(rows.setting(cell)) for cell in every})
        kind += (
            [f"each client at its best of {points} points"]
            if points > 1
            else rows.setting(cells[0])
        )
        sizes = "; ".join(dict.fromkeys(rows.scale(cell) for cell in cells))
        links = dict.fromkeys(cell.shelved.name for cell in cells)
        records = ", ".join(f"[{name}](records/{name})" for name in sorted(links))
        where = ""
        if wanted.preset:
            where = f" on the modelled {rows.preset(cells[0])}"
        elif any(other.preset for other in self.table.repeats):
            where = " without a modelled network"
        title = f"**`{wanted.workload}`**{where}: {workload.title}"
        return [f"{title} ({', '.join(kind)}); {sizes}. {records}"]
