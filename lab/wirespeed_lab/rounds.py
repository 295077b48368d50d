"""Runs one row: every contender in shuffled blocks until the figures are known.

Processes stay alive and take turns, one round each a block, so that what
changes on the machine changes for all. A row that asks for fresh processes
starts each anew and takes its first round only.
"""

from __future__ import annotations

import dataclasses
import random
import statistics
import time
from collections.abc import Callable

from . import checks
from .checks import Check
from .contender import Contender, ContenderFailed, Running
from .server import Server
from .stats import FEWEST_BLOCKS

#: Blocks after which grid cells that are dearer than the cheapest by this factor stop.
TRIM_AFTER = 5
TRIM_ABOVE = 1.10


class WrongBytes(Exception):
    """A client moved another number of bytes than the work holds."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A workload, who runs it, and what is asked of the engine."""

    id: str
    title: str
    contenders: tuple[Contender, ...]
    checks: tuple[Check, ...]
    bytes_per_round: int
    objects_per_round: int
    fresh: bool = False
    #: More than the usual seconds, where rounds are long or the margin is small.
    seconds: float | None = None


@dataclasses.dataclass(frozen=True)
class Effort:
    """When to stop though the figures are not known: blocks, and seconds of measuring."""

    most_blocks: int = 300
    most_seconds: float = 150
    fewest_blocks: int = FEWEST_BLOCKS


def run(
    row: Row,
    server: Server,
    cpu: int,
    effort: Effort,
    shuffle: random.Random,
    progress: Callable[[str], None],
) -> dict:
    """The row's part of a record. A contender that fails is named under
    ``failures`` and takes no further part; nothing it did before is dropped."""
    record = {
        "id": row.id,
        "title": row.title,
        "fresh": row.fresh,
        "contenders": [contender.as_json() for contender in row.contenders],
        "checks": [check.as_json() for check in row.checks],
        "samples": [],
        "dropped": [],
        "failures": {},
        "stopped": "",
    }
    measuring = _Measuring(row, record, server, cpu)
    try:
        if not row.fresh:
            measuring.start_all()
            measuring.block(0, first=True, shuffle=shuffle)
        started = time.monotonic()
        block = 0
        while not record["stopped"]:
            block += 1
            measuring.block(block, first=row.fresh, shuffle=shuffle)
            if block == TRIM_AFTER:
                measuring.trim()
            if not measuring.alive:
                record["stopped"] = "no contender is left"
            elif block >= effort.fewest_blocks and all(
                finding.estimate is None or finding.check.asked.resolved(finding.estimate)
                for finding in checks.judge_all(record)
            ):
                record["stopped"] = "resolved"
            elif block >= effort.most_blocks:
                record["stopped"] = f"{effort.most_blocks} blocks"
            elif time.monotonic() - started > effort.most_seconds:
                record["stopped"] = f"{effort.most_seconds:g} seconds"
            progress(f"{row.id}: block {block}")
    finally:
        measuring.close()
    return record


class _Measuring:
    def __init__(self, row: Row, record: dict, server: Server, cpu: int):
        self._row = row
        self._record = record
        self._server = server
        self._cpu = cpu
        self._running: dict[str, Running] = {}
        self.alive = list(row.contenders)

    def start_all(self) -> None:
        for contender in list(self.alive):
            try:
                self._running[contender.name] = Running(contender, self._cpu)
            except ContenderFailed as failure:
                self._fail(contender, failure)

    def block(self, number: int, first: bool, shuffle: random.Random) -> None:
        order = list(self.alive)
        shuffle.shuffle(order)
        for position, contender in enumerate(order):
            try:
                sample = self._sample(contender)
            except (ContenderFailed, WrongBytes) as failure:
                self._fail(contender, failure)
                continue
            place = {"block": number, "position": position, "first": first}
            self._record["samples"].append({"contender": contender.name, **place, **sample})

    def trim(self) -> None:
        """Stops the grid cells that can no longer be the cheapest. Their samples stay."""
        cells = {
            contender.name: statistics.median(values.values())
            for contender in self.alive
            if contender.role == "limit"
            and (
                values := checks.by_block(
                    self._record, contender.name, "core_s_per_gib", self._row.fresh
                )
            )
        }
        for name, cost in cells.items():
            if cost > TRIM_ABOVE * min(cells.values()):
                self._record["dropped"].append(name)
                self.alive = [contender for contender in self.alive if contender.name != name]
                if name in self._running:
                    self._running.pop(name).close()

    def close(self) -> None:
        while self._running:
            self._running.popitem()[1].close()

    def _sample(self, contender: Contender) -> dict:
        if self._row.fresh:
            with Running(contender, self._cpu) as process:
                return self._round(process)
        return self._round(self._running[contender.name])

    def _round(self, process: Running) -> dict:
        sent, before = self._server.counts(), self._server.cpu_seconds()
        sample = process.go()
        sample["server_cpu_s"] = self._server.cpu_seconds() - before
        for name, value in self._server.counts().items():
            sample[name] = value - sent[name]
        share = process.contender.share
        wanted = (self._row.bytes_per_round // share, max(1, self._row.objects_per_round // share))
        if (sample["bytes"], sample["objects"]) != wanted:
            raise WrongBytes(
                f"{process.contender.name} moved {sample['bytes']} bytes in {sample['objects']} "
                f"objects, not {wanted[0]} in {wanted[1]}: disqualified"
            )
        return sample

    def _fail(self, contender: Contender, failure: Exception) -> None:
        self._record["failures"][contender.name] = str(failure)
        self.alive = [other for other in self.alive if other is not contender]
        if contender.name in self._running:
            self._running.pop(contender.name).close()
