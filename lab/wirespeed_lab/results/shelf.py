"""Which record answers for a measurement, and what it says: one client at one cell, and ratios of
two of them.

Owns the choice: the newest record in which the client was tried at the cell. One in which it was
only absent (not installed that day) gives way to an older one that has it. Ratios inside a cell
are paired by block; between cells or records nothing is paired, and the ratio says so.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path

from ..plans import BadInput
from ..plans import load as load_workload
from ..records import Record, comparing, summarise
from ..records.record import PLAN
from ..records.summary import paired, rounds_of
from ..stats import Estimate
from .wanted import Wanted


class Ambiguous(BadInput):
    """What is wanted is more than one cell of the records; the text names them."""


@dataclasses.dataclass(frozen=True)
class Block:
    """What a counted round came to, by metric."""

    metrics: dict[str, float]


class Shelved:
    """A record whose parts are read once, when they are first asked for."""

    def __init__(self, record: Record):
        self.record = record
        self.name = record.folder.name
        self.started = record.plan["started"]
        self.settings = record.plan["settings"]
        self.summary = record.summary or summarise(record.plan, record.lines())
        said = {cell["id"]: cell for cell in self.summary["cells"]}
        self.cells = [Cell(self, cell, said[cell["id"]]) for cell in record.plan["cells"]]
        self._rounds: dict[tuple[str, str], dict[int, Block]] | None = None

    @functools.cached_property
    def preset(self) -> dict | None:
        """What the record says of the modelled store, None where there was none."""
        for line in self.record.lines():
            if line.get("event") == "store":
                return line["describe"].get("preset")
        return None

    def rounds(self, cell: str, client: str) -> dict[int, Block]:
        """Counted rounds by block."""
        if self._rounds is None:
            found = rounds_of(self.record.plan, self.record.lines())
            self._rounds = {
                where: {block: Block(line.metrics) for block, line in lines.items()}
                for where, lines in found.items()
            }
        return self._rounds.get((cell, client), {})


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """A cell of a record: its plan, and what the summary says of it."""

    shelved: Shelved
    planned: dict
    said: dict

    @property
    def id(self) -> str:
        return self.planned["id"]

    @property
    def plan(self) -> dict:
        return self.planned["plan"]

    def client(self, name: str) -> dict | None:
        return next((one for one in self.said["clients"] if one["client"] == name), None)

    def tried(self, name: str) -> bool:
        """Whether it was to be measured, and not merely absent."""
        return any(client["client"] == name for client in self.shelved.record.plan["clients"])


@dataclasses.dataclass(frozen=True)
class Point:
    """What was measured of a client at a cell. ``said`` is the summary's part of it. For the best
    point of a sweep ``gaps`` are the reasons of the points that have no figure."""

    cell: Cell
    client: str
    said: dict
    gaps: tuple[str, ...] = ()

    def estimate(self, metric: str) -> Estimate | None:
        found = self.said["metrics"].get(metric)
        return Estimate(**found) if found else None

    def rounds(self) -> dict[int, Block]:
        return self.cell.shelved.rounds(self.cell.id, self.client)


@dataclasses.dataclass(frozen=True)
class Missing:
    """Why there is no figure."""

    reason: str


@dataclasses.dataclass(frozen=True)
class Ratio:
    """``paired`` says that both sides ran in the same blocks."""

    estimate: Estimate
    paired: bool


class Shelf:
    """All records of a folder, newest first."""

    def __init__(self, records: Sequence[Record]):
        shelved = [Shelved(record) for record in records]
        self.records = sorted(shelved, key=lambda one: (one.started, one.name), reverse=True)

    @classmethod
    def of(cls, folder: Path) -> Shelf:
        """Raises BadRecord for a record that can't be read."""
        return cls([Record.open(path.parent) for path in sorted(folder.glob(f"*/{PLAN}"))])

    def cells(self, wanted: Wanted) -> list[Cell]:
        """All cells that are wanted, newest record first. A setting that is left open is the
        workload's own. Raises Ambiguous for objects of several sizes where none is named."""
        own = load_workload(wanted.workload)
        settings = (wanted.concurrency or own.concurrency, wanted.part_size or own.part_size)
        found = [
            cell
            for record in self.records
            for cell in record.cells
            if wanted.takes(record.settings, cell.planned)
            and cell.plan["tls"] == own.tls
            and (wanted.best or (cell.plan["concurrency"], cell.plan["part_size"]) == settings)
        ]
        if not wanted.best and len({_point(cell) for cell in found}) > 1:
            names = ", ".join(sorted({cell.id for cell in found}))
            raise Ambiguous(f"{wanted} is more than one cell of the records: {names}")
        return found

    def find(self, wanted: Wanted, client: str, metric: str) -> Point | Missing:
        """What is known of a client there. Of a whole sweep it is the point with the best median
        of ``metric``, of which more is better."""
        cells = self.cells(wanted)
        if not cells:
            return Missing(f"no record of {wanted}")
        by_point: dict[tuple, list[Cell]] = {}
        for cell in cells:
            by_point.setdefault(_point(cell), []).append(cell)
        found = [_newest(same, client) for same in by_point.values()]
        points = [one for one in found if isinstance(one, Point) and one.estimate(metric)]
        gaps = tuple(one.reason for one in found if isinstance(one, Missing))
        if not points:
            return Missing(gaps[0] if gaps else f"no {metric} in the record")
        best = max(points, key=lambda point: point.said["metrics"][metric]["median"])
        return dataclasses.replace(best, gaps=gaps)

    def ratio(self, over: Point, under: Point, metric: str) -> Ratio | None:
        """``over`` by ``under``; None where either lacks the metric."""
        one, other = over.rounds(), under.rounds()
        if over.cell is under.cell:
            found = paired(one, other, metric)
            if found is None:
                return None
            found.pop("differs")
            return Ratio(Estimate(**found), True)
        values = (
            [b.metrics[metric] for b in side.values() if metric in b.metrics]
            for side in (one, other)
        )
        estimate = comparing.unpaired(*values)
        return Ratio(estimate, False) if estimate else None


def _point(cell: Cell) -> tuple:
    """The place in a sweep, the same however the command line wrote it."""
    sizes = tuple(word for word in cell.id.split() if word.startswith(("size=", "checksums=")))
    return (cell.plan["concurrency"], cell.plan["part_size"], *sizes)


def _newest(cells: Sequence[Cell], client: str) -> Point | Missing:
    """Of cells that are the same work, newest first."""
    tried = next((cell for cell in cells if cell.tried(client)), None)
    named = tried or next((cell for cell in cells if cell.client(client)), None)
    if named is None:
        return Missing("not in the record")
    said = named.client(client)
    assert said is not None
    if said["state"] != "measured":
        return Missing(reason(said))
    return Point(named, client, said)


def reason(said: dict) -> str:
    """Why a client has no figure, as the record has it, without repeating its name."""
    text = said["reason"] or "no rounds"
    for opening in (f"{said['client']} skips this plan: ", f"{said['client']} "):
        text = text.removeprefix(opening)
    return text if said["state"] == "skipped" else f"{said['state']}: {text}"
