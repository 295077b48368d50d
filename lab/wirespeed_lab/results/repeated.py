"""The section of one report: what was wrong in it, its tables beside ours, its claims with
verdicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..plans import load as load_workload
from . import formatting, rows
from .formatting import ratio as ratio_text
from .quoting import filled
from .seeds import Claim, Fault, Row, Seed, Side, Table
from .shelf import Cell, Missing, Point, Ratio, Shelf
from .verdicts import NOT_MEASURED, Claimed, verdict
from .wanted import Wanted


@dataclasses.dataclass
class Section:
    """Lines of the page, the verdicts of the report's claims and the cells that it rests on."""

    lines: list[str]
    verdicts: list[str]
    cells: list[Cell]


def section(seed: Seed, shelf: Shelf) -> Section:
    """Raises what the shelf raises for a table that names no single cell."""
    made = Section([f"## Report {seed.number}: {seed.title}", ""], [], [])
    made.lines += [f"{seed.about} Date: {seed.date}. Machine: {seed.machine}.", ""]
    made.lines += ["### What to know of it", "", *_faults(seed.wrong, shelf), ""]
    for table in seed.tables:
        made.lines += [f"### {table.caption}", ""]
        made.lines += _table(table, shelf, made.cells)
    made.lines += ["### Its claims", "", *_claims(seed, shelf, made.verdicts), ""]
    return made


def _faults(faults: Sequence[Fault], shelf: Shelf) -> list[str]:
    lines = []
    for fault in faults:
        here = [text for one in fault.here if (text := filled(one, shelf, None, "bytes_per_s"))]
        lines.append(" ".join([f"- **{fault.what}.** {fault.text}", *_opened("Here:", here)]))
    return lines


def _opened(opening: str, texts: Sequence[str]) -> list[str]:
    return [f"*{opening}*", *texts] if texts else []


def _table(table: Table, shelf: Shelf, used: list[Cell]) -> list[str]:
    lines, without = [], []
    for wanted in table.repeats:
        if not shelf.cells(wanted):
            without.append(f"`{wanted}`")
            continue
        lines += _beside(table, wanted, shelf, used)
    if not lines:
        lines += [*formatting.table(*_published(table)), ""]
    if without:
        lines += [f"No record of {', '.join(without)}.", ""]
    return lines


def _published(table: Table) -> tuple[list[str], list[list[str]]]:
    titles = ["report's client", f"report, {table.unit}", f"x {table.baseline}", "settings"]
    return titles, [[row.name, *_theirs(table, row), row.settings] for row in table.rows]


def _theirs(table: Table, row: Row) -> list[str]:
    """The figure, and its relation to the baseline's where the figure is not that already."""
    relative = table.relative(row)
    same = table.row(table.baseline).value == 1
    return [
        "-" if row.value is None else f"{row.value:,g}",
        "-" if relative is None or same else formatting.number(relative),
    ]


def _beside(table: Table, wanted: Wanted, shelf: Shelf, used: list[Cell]) -> list[str]:
    """The published table beside ours for one workload."""
    base = table.row(table.baseline)
    against = _point(shelf, wanted, base.clients[0], table.metric) if base.clients else None
    body: list[list[str]] = []
    cells: list[Cell] = []
    for row in table.rows:
        theirs = [row.name, row.settings, *_theirs(table, row)]
        if not row.clients:
            body.append([*theirs, f"none: {row.without}", *["-"] * 6, NOT_MEASURED, "-"])
        for number, client in enumerate(row.clients):
            first = number == 0
            judged = _row_claimed(table, row) if first and row is not base else None
            ours = _ours(table, wanted, shelf, client, against, judged, cells)
            body.append([*(theirs if first else [""] * 4), client, *ours])
    for client in table.beside:
        ours = _ours(table, wanted, shelf, client, against, None, cells)
        body.append(["(not in the report)", *[""] * 3, client, *ours])
    used += cells
    return [*_heading(wanted, cells or shelf.cells(wanted)[:1]), "", *_titled(table, body, cells)]


def _row_claimed(table: Table, row: Row) -> Claimed | None:
    relative = table.relative(row)
    return Claimed.of_ratio(relative) if relative else None


def _titled(table: Table, body: list[list[str]], cells: Sequence[Cell]) -> list[str]:
    cost = rows.cost_title(rows.cost_metric(cells[0])) if cells else "CPU"
    relative = f"x {table.baseline}"
    titles = ["report's client", "set to", f"report, {table.unit}", f"report, {relative}", "ours"]
    titles += [f"{rows.rate_title(table.metric)} [95 %]", f"{relative} [95 %]", cost]
    titles += ["requests each", "connections", "at", "verdict", "remarks"]
    return [*formatting.table(titles, body), ""]


def _heading(wanted: Wanted, cells: Sequence[Cell]) -> list[str]:
    workload = load_workload(wanted.workload)
    names = sorted({cell.shelved.name for cell in cells})
    links = ", ".join(f"[{name}](records/{name})" for name in names)
    where = f" on the modelled `{wanted.preset}`" if wanted.preset else ""
    point = f", {wanted.concurrency} in flight" if wanted.concurrency else ""
    point += f", parts of {formatting.bytes_text(wanted.part_size)}" if wanted.part_size else ""
    best = ", each client at its best point of the sweep" if wanted.best else point
    sizes = "; ".join(dict.fromkeys(rows.scale(cell) for cell in cells))
    kind = f"sink {workload.sink}" if workload.operation == "get" else workload.operation
    return [f"**`{wanted.workload}`**{where}: {workload.title} ({kind}{best}); {sizes}. {links}"]


def _ours(
    table: Table,
    wanted: Wanted,
    shelf: Shelf,
    client: str,
    against: Point | Missing | None,
    claimed: Claimed | None,
    cells: list[Cell],
) -> list[str]:
    """The columns that are ours, from the rate to the remarks."""
    point = _point(shelf, wanted, client, table.metric)
    if isinstance(point, Missing):
        return [*["-"] * 6, NOT_MEASURED if claimed else "-", point.reason]
    cells.append(point.cell)
    found: Ratio | None = None
    if isinstance(against, Point) and point.said is not against.said:
        found = shelf.ratio(point, against, table.metric)
    base = isinstance(against, Point) and point.said is against.said
    relative = "1" if base else ratio_text(found.estimate, found.paired) if found else "-"
    return [
        rows.figure(point, table.metric),
        relative,
        rows.figure(point, rows.cost_metric(point.cell)),
        rows.requests(point),
        rows.connections(point),
        rows.setting(point) if wanted.best else "-",
        verdict(claimed, found.estimate if found else None) if claimed else "-",
        "; ".join(rows.remarks(point)) or "-",
    ]


def _point(shelf: Shelf, wanted: Wanted, client: str, metric: str) -> Point | Missing:
    return shelf.find(wanted, client, metric)


def _claims(seed: Seed, shelf: Shelf, verdicts: list[str]) -> list[str]:
    """The table of claims and the notes to it. Of a claim count the works that it could be tested
    with; where there is none it counts once, as not measured."""
    body, notes = [], []
    for number, claim in enumerate(seed.claims, 1):
        table = seed.table(claim.table)
        on = [wanted for wanted in claim.on if shelf.cells(wanted)] or list(claim.on[:1])
        tested = [] if claim.unmeasured else [_tested(claim, table, one, shelf) for one in on]
        for turn, (wanted, (ours, judged)) in enumerate(zip(on, tested, strict=False)):
            said = [str(number), claim.says] if turn == 0 else ["", ""]
            body.append([*said, _claimed(claim), f"`{wanted}`", ours, judged])
        if claim.unmeasured:
            said = [str(number), claim.says, "-", "-"]
            body.append([*said, claim.unmeasured, NOT_MEASURED])
        measured = [judged for _, judged in tested if judged != NOT_MEASURED]
        verdicts += measured or [NOT_MEASURED]
        why = [text for one in claim.why if (text := filled(one, shelf, on[0], table.metric))]
        if why:
            notes.append(f"{number}. {' '.join(why)}")
    titles = ["", "claim", "report", "tested with", "ours [95 %]", "verdict"]
    return [*formatting.table(titles, body), "", *notes]


def _claimed(claim: Claim) -> str:
    claimed = claim.claimed
    if claimed is None:
        return "-"
    if claimed.low is None or claimed.high is None:
        return {"more": "> 1", "less": "< 1", "equal": "= 1"}[claimed.side]
    low, high = formatting.number(claimed.low), formatting.number(claimed.high)
    return low if low == high else f"{low} to {high}"


def _tested(claim: Claim, table: Table, wanted: Wanted, shelf: Shelf) -> tuple[str, str]:
    """Our figure, or why there is none, and the verdict."""
    assert claim.over is not None
    assert claim.under is not None
    assert claim.claimed is not None
    ends = []
    for side in (claim.over, claim.under):
        point = _end(side, table, wanted, shelf)
        if isinstance(point, Missing):
            return point.reason, NOT_MEASURED
        ends.append(point)
    found = shelf.ratio(ends[0], ends[1], claim.metric)
    if found is None:
        return f"no {claim.metric} in the record", NOT_MEASURED
    return ratio_text(found.estimate, found.paired), verdict(claim.claimed, found.estimate)


def _end(side: Side, table: Table, wanted: Wanted, shelf: Shelf) -> Point | Missing:
    row = table.row(side.row)
    if not row.clients:
        return Missing(row.without)
    client, place = row.clients[0], side.on or wanted
    found = _point(shelf, place, client, table.metric)
    return Missing(f"{client}: {found.reason}") if isinstance(found, Missing) else found
