"""A plan: every item of work spelled out, so that two runs of it are the same work. It is what a
record keeps and what a driver is sent. Knows nothing of clients and of time."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from . import fields
from .fields import BadInput, Fields
from .series import Series, gathered

#: Of the plan's form, as the protocol has it. A newer one is refused by drivers and by us.
VERSION = 1

OPERATIONS = ("get", "put", "list")
SINKS = ("discard", "memory", "stream", "file")
SOURCES = ("memory", "file")
MODES = ("warm", "cold", "one-shot")
MOST_CONCURRENCY = 100_000
MOST_ITEMS = 10_000_000
MOST_DIGITS = 18


class BadPlanFile(BadInput):
    """A plan that was written by a newer lab, or is malformed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """One object, or the bytes ``range[0]`` up to and without ``range[1]`` of it; with ``keys`` a
    listing of that many keys below the prefix ``key``, of ``size`` bytes each, numbered in
    ``digits`` digits."""

    key: str
    size: int
    range: tuple[int, int] | None = None
    keys: int | None = None
    digits: int = 8

    @property
    def bytes(self) -> int:
        """Bytes that are moved: none by a listing."""
        if self.keys is not None:
            return 0
        return self.range[1] - self.range[0] if self.range else self.size

    def for_driver(self) -> dict[str, Any]:
        if self.keys is not None:
            return {"prefix": self.key, "keys": self.keys}
        said: dict[str, Any] = {"key": self.key, "size": self.size}
        if self.range:
            said["range"] = list(self.range)
        return said

    def as_json(self) -> dict[str, Any]:
        """What a driver is told, and what a store must know beside it."""
        said = self.for_driver()
        if self.keys is not None:
            said |= {"size": self.size, "digits": self.digits}
        return said

    @classmethod
    def from_json(cls, table: object, where: str) -> Item:
        """Raises BadPlanFile."""
        given = Fields(table, where, BadPlanFile)
        if given.has("prefix"):
            item = cls(
                given.take("prefix", fields.key),
                given.take("size", fields.size),
                None,
                given.take("keys", fields.whole(0, MOST_ITEMS)),
                given.take("digits", fields.whole(1, MOST_DIGITS)),
            )
        else:
            key, size = given.take("key", fields.key), given.take("size", fields.size)
            item = cls(key, size, given.take("range", _range(size), None))
        given.done()
        return item


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is to be done. ``concurrency`` and ``part_size`` (bytes) are None for the client's own
    choice, ``checksums`` too. With ``listing`` the driver is to list that prefix, inside the
    clock, and to get what it finds. ``scale`` is the factor by which the workload was shrunk or
    grown."""

    workload: str
    operation: str
    sink: str
    work: tuple[Item, ...]
    source: str = "memory"
    concurrency: int | None = None
    part_size: int | None = None
    checksums: bool | None = None
    listing: str | None = None
    tls: bool = False
    mode: str = "warm"
    scale: float = 1.0
    version: int = VERSION

    @property
    def bytes(self) -> int:
        """Bytes that one round moves."""
        return sum(item.bytes for item in self.work)

    @property
    def objects(self) -> int:
        """Items that one round works through; for listings, the keys that they name."""
        if self.operation == "list":
            return sum(item.keys or 0 for item in self.work)
        return len(self.work)

    def contents(self) -> tuple[Series, ...]:
        """What the store must hold: nothing for a put, which brings its own."""
        if self.operation == "put":
            return ()
        if self.operation == "list":
            return tuple(
                dict.fromkeys(
                    Series(item.key, item.size, item.keys, item.digits)
                    for item in self.work
                    if item.keys
                )
            )
        return gathered({item.key: item.size for item in self.work})

    def for_driver(
        self,
        endpoint: str,
        region: str,
        bucket: str,
        ca_file: Path | str | None = None,
        folder: Path | str | None = None,
    ) -> dict[str, Any]:
        """The line that a driver gets. ``folder`` is where files are, for a file sink or source."""
        return {
            "type": "plan",
            "version": self.version,
            "workload": self.workload,
            "operation": self.operation,
            "sink": self.sink,
            "source": self.source,
            "concurrency": self.concurrency,
            "part_size": self.part_size,
            "checksums": self.checksums,
            "listing": self.listing,
            "endpoint": endpoint,
            "region": region,
            "bucket": bucket,
            "path_style": True,
            "ca_file": str(ca_file) if ca_file else None,
            "folder": str(folder) if folder else None,
            "work": [item.for_driver() for item in self.work],
        }

    def as_json(self) -> dict[str, Any]:
        said: dict[str, Any] = {"version": self.version}
        for name in (f.name for f in dataclasses.fields(self)):
            said[name] = getattr(self, name)
        said["work"] = [item.as_json() for item in self.work]
        return said

    @classmethod
    def from_json(cls, table: object, where: str = "the plan") -> Plan:
        """The plan that `as_json` wrote. Raises BadPlanFile, which names ``where`` and the field,
        for one that is malformed, contradicts itself, or was written by a newer lab."""
        given = Fields(table, where, BadPlanFile)
        version = given.take("version", fields.whole(1, 1 << 31))
        if version > VERSION:
            raise BadPlanFile(
                f"{where}: version is {version}, and this lab knows plans up to {VERSION}: "
                "use the lab that wrote it, or a newer one"
            )
        plan = cls(
            workload=given.take("workload", fields.text),
            operation=given.take("operation", fields.one_of(*OPERATIONS)),
            sink=given.take("sink", fields.one_of(*SINKS)),
            source=given.take("source", fields.one_of(*SOURCES)),
            concurrency=given.take(
                "concurrency", fields.optional(fields.whole(1, MOST_CONCURRENCY))
            ),
            part_size=given.take("part_size", fields.optional(fields.some_bytes)),
            checksums=given.take("checksums", fields.optional(fields.flag)),
            listing=given.take("listing", fields.optional(fields.key)),
            tls=given.take("tls", fields.flag),
            mode=given.take("mode", fields.one_of(*MODES)),
            scale=given.take("scale", fields.number(1e-9, 1e9)),
            work=given.take("work", _work(where)),
            version=version,
        )
        given.done(f.name for f in dataclasses.fields(cls))
        plan.check(where)
        return plan

    def check(self, where: str) -> None:
        """Refuses work that the operation cannot mean. Raises BadPlanFile."""
        sizes: dict[str, int] = {}
        for n, item in enumerate(self.work):
            at = f"{where}: work[{n}]"
            if (item.keys is not None) != (self.operation == "list"):
                raise BadPlanFile(f"{at}: is no item of a {self.operation}")
            if self.operation == "put" and (item.range or item.key in sizes):
                raise BadPlanFile(f"{at}: a put writes whole objects, and none of them twice")
            if sizes.setdefault(item.key, item.size) != item.size:
                raise BadPlanFile(f"{at}: {item.key!r} has another size elsewhere")
        if self.listing is None:
            return
        if self.operation != "get":
            raise BadPlanFile(f"{where}: listing goes with get, and this is a {self.operation}")
        keys = [item.key for item in self.work]
        if any(item.range or not item.key.startswith(self.listing) for item in self.work):
            raise BadPlanFile(f"{where}: listing finds whole objects below {self.listing!r} only")
        if keys != sorted(set(keys), key=str.encode):
            raise BadPlanFile(f"{where}: work is not in the order in which a listing finds it")


def _range(size: int) -> fields.Callable[[Any], tuple[int, int]]:
    def read(value: Any) -> tuple[int, int]:
        good = isinstance(value, list | tuple) and len(value) == 2
        if not good or not all(isinstance(n, int) and not isinstance(n, bool) for n in value):
            raise ValueError("[first, end]")
        if not 0 <= value[0] < value[1] <= size:
            raise ValueError(f"[first, end] with 0 <= first < end <= {size}")
        return value[0], value[1]

    return read


def _work(where: str) -> fields.Callable[[Any], tuple[Item, ...]]:
    def read(value: Any) -> tuple[Item, ...]:
        if not isinstance(value, list) or not 1 <= len(value) <= MOST_ITEMS:
            raise ValueError(f"a list of 1 to {MOST_ITEMS} items")
        return tuple(Item.from_json(item, f"{where}: work[{n}]") for n, item in enumerate(value))

    return read
