"""Whether the record of a measurement on several hosts holds together: every line follows the
schema, none is missing, and figures are what the samples say. Owns the comparison; changes
nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .. import plans
from ..records import BadRecord, differences
from ..records.verifying import shortened
from . import record, rounds
from .rounds import HostRound
from .summary import Told


def verify(path: Path) -> list[str]:
    """What is wrong with a record, in words; empty when nothing is."""
    found: list[str] = []
    try:
        for complaint in _Reading(path).complaints():
            found.append(complaint)
    except (BadRecord, plans.BadInput) as error:
        found.append(str(error))
    return shortened(found)


class _Reading:
    """One pass over the lines: what is due next, and what was found."""

    def __init__(self, path: Path):
        self._path = path
        self._told = Told()
        self._plan: plans.Plan
        #: The block that is due next of each client that was started.
        self._due: dict[str, int] = {}
        #: The line of the first round of each client that has faults.
        self._faulty: dict[str, str] = {}
        self._summary: dict | None = None

    def complaints(self) -> Iterator[str]:
        """Raises BadRecord, after all that was found before the line that can't be read."""
        for number, line in enumerate(record.lines(self._path), 1):
            where = f"line {number}"
            if self._summary is not None:
                yield f"{where} stands behind the summary"
            yield from self._line(where, line)
            self._told.take(line)
        if self._summary is None:
            yield f"{self._path} has no summary: the measurement did not come to its end"
        else:
            yield from self._missing()
            yield from differences(self._summary, self._told.summary())

    def _line(self, where: str, line: dict) -> Iterator[str]:
        client = line.get("client")
        if client is not None and client not in self._told.header["clients"]:
            yield f"{where}: {client} was not asked for"
        match line["type"]:
            case "hosts" if self._told.header:
                yield f"{where} begins another measurement"
            case "hosts":
                self._plan = plans.Plan.from_json(line["plan"], f"{self._path}, the plan")
            case "client" | "skip":
                if client in self._due or client in self._told.out:
                    yield f"{where}: {client} was started already"
                if line["type"] == "client":
                    self._due[client] = 0
            case "round":
                yield from self._round(where, line)
            case "disqualified":
                if client not in self._due:
                    yield f"{where}: {client} is disqualified, and no line says that it was started"
                self._faulty.pop(client, None)
            case "summary":
                self._summary = line

    def _round(self, where: str, line: dict) -> Iterator[str]:
        client, block = line["client"], line["block"]
        if client not in self._due:
            yield f"{where}: a round of {client}, and no line says that it was started"
        elif client in self._told.out:
            yield f"{where}: a round of {client}, which was out before"
        elif block != self._due[client]:
            yield f"{where}: block {block} of {client}, and block {self._due[client]} was due"
        self._due[client] = block + 1
        parts = [HostRound(**part) for part in line["hosts"]]
        if [part.name for part in parts] != list(self._told.header["hosts"]):
            yield f"{where}: its hosts are not those of the measurement"
        if rounds.faults(parts):
            self._faulty.setdefault(client, where)
        for part in parts:
            yield from self._work(where, part)
        computed = rounds.merged(parts, self._told.header["segment_ns"])
        kept = {name: line[name] for name in ("merged", "reason") if name in line}
        # The same arithmetic on the same numbers: any difference is one.
        yield from differences(kept, computed, where, tolerance=0)

    def _work(self, where: str, part: HostRound) -> Iterator[str]:
        """A round that nothing is held against did the whole plan."""
        if part.faults:
            return
        items = sum(sample["count"] for sample in part.samples)
        moved = sum(sample["bytes"] for sample in part.samples)
        if items != len(self._plan.work):
            yield f"{where}: {part.name} did {items} items, the plan has {len(self._plan.work)}"
        elif moved != self._plan.bytes:
            yield f"{where}: {part.name} moved {moved} bytes, the plan has {self._plan.bytes}"

    def _missing(self) -> Iterator[str]:
        header = self._told.header
        for client in header["clients"]:
            if client not in self._due and client not in self._told.out:
                yield f"{client} was asked for, and no line says what came of it"
        for client in self._told.running():
            if self._due.get(client, 0) <= header["blocks"]:
                yield (
                    f"{client} has rounds up to block {self._due.get(client, 0) - 1} of "
                    f"{header['blocks']}, and no line says why it is out"
                )
        for client, where in self._faulty.items():
            yield f"{where} has faults of {client}, and no line disqualifies it"
