"""The section of one report: what was wrong in it, its tables beside ours, its claims with
verdicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from . import beside, claims
from .quoting import filled
from .seeds import Fault, Seed
from .shelf import Cell, Shelf


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
        made.lines += [f"### {table.caption}", "", *beside.lines(table, shelf, made.cells)]
    made.lines += ["### Its claims", "", *claims.tested(seed, shelf, made.verdicts), ""]
    return made


def _faults(faults: Sequence[Fault], shelf: Shelf) -> list[str]:
    lines = []
    for fault in faults:
        here = [text for one in fault.here if (text := filled(one, shelf, None, "bytes_per_s"))]
        opened = ["*Here:*", *here] if here else []
        lines.append(" ".join([f"- **{fault.what}.** {fault.text}", *opened]))
    return lines
