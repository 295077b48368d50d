"""The reports that the lab repeats, as lab/seeds/*.toml has them: figures, claims and faults.

Owns the form of these files. Refuses, naming file and place, a client or workload that the lab
does not have, a claim about a row that is not there, and a placeholder that means nothing.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import places
from ..clients import registry
from ..plans import BadInput, BadWorkload, fields
from ..plans import load as load_workload
from ..plans.fields import Fields
from ..records.metrics import BY_NAME
from ..stores import preset as presets
from .quoting import check_text
from .verdicts import SIDES, Claimed
from .wanted import Wanted

FOLDER = places.REPOSITORY / "lab" / "seeds"


class BadSeed(BadInput):
    """A report's file that can't be used; the text names the file, the place and what is wrong."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A published client. ``clients`` stand for it here, the first of them in claims; where there
    is none ``without`` says why. ``value`` is in the table's unit, None where it has no figure."""

    name: str
    value: float | None
    clients: tuple[str, ...]
    without: str
    settings: str


@dataclasses.dataclass(frozen=True)
class Table:
    """A published table. ``metric`` is ours (see `records.metrics`), more of it being better;
    ``beside`` are clients of ours that the report does not have."""

    id: str
    caption: str
    quantity: str
    unit: str
    metric: str
    baseline: str
    repeats: tuple[Wanted, ...]
    beside: tuple[str, ...]
    rows: tuple[Row, ...]

    def row(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def relative(self, row: Row) -> float | None:
        """The row's published figure over the baseline's."""
        base = self.row(self.baseline).value
        return row.value / base if row.value is not None and base else None


@dataclasses.dataclass(frozen=True)
class Side:
    """One side of a claim: a row, and where it is not the table's own work, which work."""

    row: str
    on: Wanted | None


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of the report about ``over`` in relation to ``under``. ``on`` are the repeats of
    its table that it is tested with. One that can't be tested has ``unmeasured``, and no sides."""

    says: str
    table: str
    over: Side | None
    under: Side | None
    on: tuple[Wanted, ...]
    metric: str
    claimed: Claimed | None
    unmeasured: str
    why: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Fault:
    """What was wrong in the report, and what the lab does instead."""

    what: str
    text: str
    here: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Seed:
    """One report."""

    number: str
    where: str
    title: str
    date: str
    machine: str
    about: str
    wrong: tuple[Fault, ...]
    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]

    def table(self, id: str) -> Table:
        return next(table for table in self.tables if table.id == id)


def all_in(folder: Path) -> list[Seed]:
    """The reports of a folder in the order of their numbers. Raises BadSeed."""
    return [load(path) for path in sorted(folder.glob("*.toml"))]


def load(path: Path) -> Seed:
    """The report in a file. Raises BadSeed."""
    where = path.name
    try:
        given = Fields(tomllib.loads(path.read_text()), where, BadSeed)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSeed(f"{where}: {error}") from None
    tables = given.take("tables", _each(where, "table", _table))
    by_id = {table.id: table for table in tables}
    seed = Seed(
        number=path.stem,
        where=where,
        title=given.take("title", fields.text),
        date=given.take("date", fields.text),
        machine=given.take("machine", fields.text),
        about=given.take("about", fields.text),
        wrong=given.take("wrong", _each(where, "fault", _fault)),
        tables=tables,
        claims=given.take("claims", _each(where, "claim", lambda one: _claim(one, by_id))),
    )
    given.done(field.name for field in dataclasses.fields(Seed))
    return seed


def _each(where: str, kind: str, read: Callable[[Fields], Any]) -> Callable[[Any], tuple]:
    def read_all(value: Any) -> tuple:
        if not isinstance(value, list):
            raise ValueError(f"a list of tables, one for each {kind}")
        found = []
        for number, one in enumerate(value, 1):
            given = Fields(one, f"{where}: {kind} {number}", BadSeed)
            found.append(read(given))
            given.done()
        return tuple(found)

    return read_all


def _fault(given: Fields) -> Fault:
    return Fault(
        what=given.take("what", fields.text),
        text=given.take("text", fields.text),
        here=_quoting(given, "here"),
    )


def _table(given: Fields) -> Table:
    rows = given.take("rows", _each(given.where, "row", _row))
    if not rows:
        raise BadSeed(f"{given.where}: rows are empty")
    names = tuple(row.name for row in rows)
    return Table(
        id=given.take("id", fields.text),
        caption=given.take("caption", fields.text),
        quantity=given.take("quantity", fields.text),
        unit=given.take("unit", fields.text),
        metric=given.take("metric", fields.one_of(*BY_NAME), "bytes_per_s"),
        baseline=given.take("baseline", fields.one_of(*names), names[0]),
        repeats=given.take("repeats", _each(given.where, "repeat", _wanted)),
        beside=given.take("beside", _clients, ()),
        rows=rows,
    )


def _row(given: Fields) -> Row:
    row = Row(
        name=given.take("name", fields.text),
        value=given.take("value", fields.number(0, 1e12), None),
        clients=given.take("clients", _clients, ()),
        without=given.take("without", fields.text, ""),
        settings=given.take("settings", fields.text, ""),
    )
    if bool(row.clients) == bool(row.without):
        raise BadSeed(f"{given.where}: {row.name!r} has either clients, or says why without")
    return row


def _clients(value: Any) -> tuple[str, ...]:
    known = registry()
    found = fields.several(fields.text)(value)
    for name in found:
        if name not in known:
            raise ValueError(f"clients of lab/clients.toml, which has no {name!r}")
    return found


def _wanted(given: Fields) -> Wanted:
    return Wanted(
        workload=given.take("workload", _workload),
        preset=given.take("preset", _preset, None),
        concurrency=given.take("concurrency", fields.whole(1, 1 << 20), None),
        part_size=given.take("part_size", fields.some_bytes, None),
        size=given.take("size", fields.some_bytes, None),
        best=given.take("best", fields.flag, False),
    )


def _workload(value: Any) -> str:
    name = fields.text(value)
    try:
        load_workload(name)
    except BadWorkload as error:
        raise ValueError(f"a workload of the lab: {error}") from None
    return name


def _preset(value: Any) -> str:
    return fields.one_of(*sorted(path.stem for path in presets.FOLDER.glob("*.toml")))(value)


def _claim(given: Fields, tables: dict[str, Table]) -> Claim:
    table = tables[given.take("table", fields.one_of(*tables))]
    unmeasured = given.take("unmeasured", fields.text, "")
    claim = Claim(
        says=given.take("says", fields.text),
        table=table.id,
        over=None if unmeasured else given.take("over", _side(given, table)),
        under=None if unmeasured else given.take("under", _side(given, table)),
        on=given.take("on", _on(table), table.repeats),
        metric=given.take("metric", fields.one_of(*BY_NAME), table.metric),
        claimed=None,
        unmeasured=unmeasured,
        why=_quoting(given, "why"),
    )
    if claim.over is None or claim.under is None:
        return claim
    return dataclasses.replace(claim, claimed=_claimed(given, table, claim))


def _side(given: Fields, table: Table) -> Callable[[Any], Side]:
    names = tuple(row.name for row in table.rows)

    def read(value: Any) -> Side:
        if isinstance(value, str):
            return Side(fields.one_of(*names)(value), None)
        inner = Fields(value, given.where, BadSeed)
        side = Side(inner.take("row", fields.one_of(*names)), _wanted(inner))
        inner.done()
        return side

    return read


def _on(table: Table) -> Callable[[Any], tuple[Wanted, ...]]:
    """Of the table's repeats those of the workloads named."""

    def read(value: Any) -> tuple[Wanted, ...]:
        repeated = {wanted.workload for wanted in table.repeats}
        names = fields.several(fields.one_of(*sorted(repeated)))(value)
        return tuple(wanted for wanted in table.repeats if wanted.workload in names)

    return read


def _claimed(given: Fields, table: Table, claim: Claim) -> Claimed:
    """What is claimed: as the file says, else the ratio of the two rows' figures."""
    side = given.take("expects", fields.one_of(*SIDES), None)
    sizes = given.take("published", fields.several(fields.number(0, 1e6)), None)
    assert claim.over is not None
    assert claim.under is not None
    if sizes is None and side is None:
        over, under = (table.row(end.row).value for end in (claim.over, claim.under))
        if over is None or not under:
            raise BadSeed(f"{given.where}: neither published nor expects, and a row has no value")
        return Claimed.of_ratio(over / under)
    if sizes is None:
        return Claimed(str(side))
    low, high = min(sizes), max(sizes)
    return Claimed(side or Claimed.of_ratio((low + high) / 2).side, low, high)


def _quoting(given: Fields, name: str) -> tuple[str, ...]:
    """Texts with placeholders. Raises BadSeed for a placeholder that nothing can fill."""
    texts = given.take(name, fields.several(fields.text), ())
    for text in texts:
        if problem := check_text(text):
            raise BadSeed(f"{given.where}: {name}: {problem}")
    return texts
