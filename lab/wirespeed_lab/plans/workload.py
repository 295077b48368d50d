"""A workload as a person writes it: a short file, and the plans that it is compiled to."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

from . import fields, plan
from .fields import BadInput, Fields
from .plan import Plan
from .shapes import SHAPES, Objects, Shape, scaled_count, scaled_size

#: Of the form of the files.
VERSION = 1

_concurrency = fields.whole(1, plan.MOST_CONCURRENCY)
#: What a sweep may vary, and how each value is read.
AXES: dict[str, Callable[[Any], Any]] = {
    "concurrency": _concurrency,
    "part_size": fields.some_bytes,
    "size": fields.some_bytes,
    "checksums": fields.flag,
}
SEEDS = ("000", "001", "002", "003", "004")


class BadWorkload(BadInput):
    """A workload that is not there or cannot be understood; the text names file and field."""


@dataclasses.dataclass(frozen=True)
class Workload:
    """What is to be moved and how. ``seed`` is the number of the report that is repeated, or None;
    ``scales`` says whether a scale shrinks the number of things ("count") or their size."""

    name: str
    where: str
    title: str
    seed: str | None
    operation: str
    sink: str
    source: str
    mode: str
    concurrency: int | None
    part_size: int | None
    checksums: bool | None
    tls: bool
    listing: bool
    scales: str
    shape: Shape
    sweep: dict[str, tuple[Any, ...]]

    @classmethod
    def from_table(cls, table: dict[str, Any], name: str, where: str) -> Workload:
        """The workload in a file's table. Raises BadWorkload, which names ``where`` and the
        field."""
        given = Fields(table, where, BadWorkload)
        version = given.take("version", fields.whole(1, 1 << 31))
        if version > VERSION:
            raise BadWorkload(
                f"{where}: version is {version}, and this lab knows workloads up to {VERSION}: "
                "use a newer lab"
            )
        shape = _shape(given)
        workload = cls(
            name=name,
            where=where,
            title=given.take("title", fields.text),
            seed=given.take("seed", fields.one_of(*SEEDS), None),
            operation=given.take("operation", fields.one_of(*plan.OPERATIONS)),
            sink=given.take("sink", fields.one_of(*plan.SINKS), "discard"),
            source=given.take("source", fields.one_of(*plan.SOURCES), "memory"),
            mode=given.take("mode", fields.one_of(*plan.MODES), "warm"),
            concurrency=given.take("concurrency", _concurrency, None),
            part_size=given.take("part_size", fields.some_bytes, None),
            checksums=given.take("checksums", fields.flag, None),
            tls=given.take("tls", fields.flag, False),
            listing=given.take("listing", fields.flag, False),
            scales=given.take("scales", fields.one_of(*shape.scales), shape.scales[0]),
            shape=shape,
            sweep=_sweep(given),
        )
        given.done([field.name for field in dataclasses.fields(cls)] + list(SHAPES))
        workload._check(given)
        return workload

    def cells(self) -> list[dict[str, Any]]:
        """One set of keyword arguments of `compile` for each cell of the sweep; a single empty
        one where there is no sweep."""
        axes = [[(name, value) for value in values] for name, values in self.sweep.items()]
        return [dict(cell) for cell in itertools.product(*axes)]

    def compile(
        self,
        scale: float = 1.0,
        *,
        concurrency: int | None = None,
        part_size: int | None = None,
        checksums: bool | None = None,
        size: int | None = None,
        tls: bool | None = None,
    ) -> Plan:
        """The plan, scaled, with what is given here in place of what the file says. Sizes are
        bytes; ``size`` is that of the objects before they are scaled. Pure: the same arguments
        make an equal plan. Raises BadWorkload for arguments that it can make no plan of."""
        asked = {
            "concurrency": concurrency,
            "part_size": part_size,
            "checksums": checksums,
            "size": size,
        }
        for name, value in asked.items():
            self._readable(name, AXES[name], value)
        self._readable("scale", fields.number(1e-6, 1e6), scale)
        shape = self.shape.resized(size) if size else self.shape
        if shape is None:
            raise BadWorkload(f"{self.where}: size is {size}, and its objects cannot have that")
        by_count, by_size = (scale, 1.0) if self.scales == "count" else (1.0, scale)
        work = shape.items(
            lambda count: scaled_count(count, by_count), lambda size: scaled_size(size, by_size)
        )
        if len(work) > plan.MOST_ITEMS:
            raise BadWorkload(f"{self.where}: scaled by {scale} it has {len(work)} items")
        made = Plan(
            workload=self.name,
            operation=self.operation,
            sink=self.sink,
            source=self.source,
            concurrency=self.concurrency if concurrency is None else concurrency,
            part_size=self.part_size if part_size is None else part_size,
            checksums=self.checksums if checksums is None else checksums,
            listing=_prefix(shape) if self.listing else None,
            tls=self.tls if tls is None else tls,
            mode=self.mode,
            scale=float(scale),
            work=tuple(work),
        )
        try:
            made.check(self.where)
        except BadInput as error:
            raise BadWorkload(str(error)) from None
        if made.bytes > fields.LARGEST:
            raise BadWorkload(f"{self.where}: one round of it moves {made.bytes} bytes")
        return made

    def scale_for(self, limit: int) -> float:
        """The largest scale of 1 / 2 / 5 steps, at most 1, with which the largest cell moves at
        most ``limit`` bytes or, for listings, names at most ``limit`` keys."""
        largest = max((self.compile(**cell) for cell in self.cells()), key=_amount)
        for step in range(19):
            factor = (1, 2, 5)[step % 3] * 10 ** (step // 3)
            if _amount(largest) / factor <= limit:
                return 1 / factor
        raise BadWorkload(f"{self.where}: no scale makes it move at most {limit} bytes")

    def _readable(self, name: str, read: Callable[[Any], Any], value: Any) -> None:
        if value is None:
            return
        Fields({name: value}, self.where, BadWorkload).take(name, read)

    def _check(self, given: Fields) -> None:
        if self.operation not in self.shape.operations:
            raise given.bad("operation", f"one of {self.shape.operations} here", self.operation)
        if self.operation != "get" and self.sink != "discard":
            raise given.bad("sink", f"left out: a {self.operation} has none", self.sink)
        if self.operation != "put" and self.source != "memory":
            raise given.bad("source", f"left out: a {self.operation} has none", self.source)
        if self.listing and (self.operation != "get" or not _prefix(self.shape)):
            raise given.bad("listing", "false but for a get of [objects]", True)
        if "size" in self.sweep and self.shape.resized(self.sweep["size"][0]) is None:
            raise given.bad("sweep", "without size: its objects have none of their own", "size")


def _shape(given: Fields) -> Shape:
    found = [name for name in SHAPES if given.has(name)]
    if len(found) != 1:
        tables = ", ".join(f"[{name}]" for name in SHAPES)
        there = " and ".join(f"[{name}]" for name in found) or "none"
        raise BadWorkload(f"{given.where}: there must be exactly one of {tables}, and is {there}")
    table = given.table(found[0])
    shape = SHAPES[found[0]](table)
    table.done([field.name for field in dataclasses.fields(shape)])  # type: ignore[arg-type]
    return shape


def _sweep(given: Fields) -> dict[str, tuple[Any, ...]]:
    if not given.has("sweep"):
        return {}
    table = given.table("sweep")
    sweep = {
        name: table.take(name, fields.several(read))
        for name, read in AXES.items()
        if table.has(name)
    }
    table.done(AXES)
    return sweep


def _prefix(shape: Shape) -> str | None:
    return shape.prefix if isinstance(shape, Objects) else None


def _amount(made: Plan) -> int:
    return made.objects if made.operation == "list" else made.bytes
