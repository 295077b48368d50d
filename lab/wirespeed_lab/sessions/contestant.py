"""One client in one cell: its process, its rounds, and what each of them cost.

Owns the process while it lives and the measuring around a round. A round's line for the record
is complete when it is handed back; whether the round is counted or repeated is not decided here.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import driving
from ..measuring import Cores, Meter, Method, Watch
from ..records import columns, from_root
from .cells import Cell
from .settings import Entry

#: Kinds of errors that a line keeps, most frequent first.
MOST_ERROR_TEXTS = 5


@dataclasses.dataclass
class Site:
    """What all contestants of a session share. ``pinned`` is empty where cores can't be had."""

    store: Any
    cores: Cores
    pinned: tuple[int, ...]
    method: Method
    watch: Watch
    folder: Path


@dataclasses.dataclass(frozen=True)
class Turn:
    """The place of a round in the session."""

    block: int
    position: int
    attempt: int
    phase: str


class Contestant:
    """Nothing runs until ``open``. What the driver raises goes through."""

    def __init__(self, entry: Entry, cell: Cell, site: Site, processes: int = 0):
        self.entry = entry
        self._cell = cell
        self._plan = cell.plan
        self.site = site
        self._processes = processes
        self._rounds = 0
        self._driver: Any = None
        self._meter: Meter | None = None
        self._opened_ns = 0

    @property
    def alive(self) -> bool:
        return self._driver is not None

    def describe(self) -> dict:
        """What the driver says of itself. Raises Skipped when it can't do this cell. A client
        that has no setting for how much it keeps in flight takes part with its own choice, which
        tables say; every other setting has to be as the cell asks."""
        client = self.entry.client
        said = driving.describe(client.command, client.environment)
        if "concurrency" not in said.settings:
            self._plan = dataclasses.replace(self._plan, concurrency=None)
        if reason := driving.refusal(said, self._plan):
            raise driving.Skipped(reason)
        return said.as_json()

    def open(self) -> None:
        """Starts the process and sends it the plan."""
        client, site = self.entry.client, self.site
        self._processes += 1
        self._opened_ns = time.monotonic_ns()
        environment = {**client.environment, **site.store.credentials}
        self._driver = driving.Driver(
            [*client.command, "run"], environment, site.pinned, self.entry.name
        )
        try:
            self._meter = Meter(self._driver.pid, site.method)
            if self._plan.mode == "one-shot":
                self._meter.begin(since_birth=True)
            store = site.store
            self._driver.start(
                self._plan.for_driver(
                    store.endpoint, store.region, store.bucket, store.ca_file, site.folder
                )
            )
        except BaseException:
            self.close()
            raise

    def round(self, turn: Turn) -> dict:
        """Runs the work once. The line of the record; what the judges say of it is under
        ``faults``. In the phase ``one-shot`` the process has ended when this returns."""
        site, store = self.site, self.site.store
        verify = turn.phase == "verified"
        whole = turn.phase == "one-shot"
        if self._plan.sink == "file":
            driving.empty(site.folder)
        if verify and self._plan.operation == "put":
            store.forget_uploads(self._plan)
        store.renew()
        counts, server_s = store.counts(), store.cpu_seconds()
        site.watch.begin()
        if not whole:
            self._meter.begin()
        self._rounds += 1
        with self._held_back(verify):
            ran = self._driver.round(
                self._rounds,
                verify=verify,
                at_first_output=self._meter.look if whole else self._meter.end,
            )
        seconds = (ran.done["end_ns"] - ran.done["start_ns"]) / 1e9
        if whole:
            seconds = self._end_whole()
        used = self._meter.usage()
        server_s = _difference(store.cpu_seconds(), server_s)
        noise = site.watch.end(used.core_s + (server_s or 0.0))
        moved = _moved(store.counts(), counts)
        faults = driving.judge(self._plan, ran, moved)
        if verify:
            faults += self._look_outside()
        if whole:
            self.close()
        errors = collections.Counter(
            sample["error"] for sample in ran.samples if sample.get("error")
        )
        return {
            "line": "round",
            "cell": self._cell.id,
            "client": self.entry.name,
            **dataclasses.asdict(turn),
            "process": self._processes,
            "seconds": seconds,
            "outside_s": (ran.done_ns - ran.go_ns) / 1e9,
            "bytes": sum(sample["bytes"] for sample in ran.samples),
            "objects": _objects(self._plan, ran.samples),
            "errors": errors.total(),
            "error_texts": {
                from_root(text)[:200]: n for text, n in errors.most_common(MOST_ERROR_TEXTS)
            },
            "user_s": used.user_s,
            "system_s": used.system_s,
            "peak_memory_bytes": used.peak_memory_bytes,
            "storage_read_bytes": used.storage_read_bytes,
            "storage_written_bytes": used.storage_written_bytes,
            "server_core_s": server_s,
            "counts": moved,
            "noise": noise.as_json(),
            "disturbed": list(noise.reasons),
            "faults": from_root(faults),
            "effective": ran.done.get("effective") or {},
            "samples": columns.pack(
                ran.samples, ran.done["start_ns"], [item.bytes for item in self._plan.work]
            ),
        }

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._driver:
            self._driver.close()
            self._driver = None
        if self._meter:
            self._meter.close()

    @contextlib.contextmanager
    def _held_back(self, verify: bool) -> Iterator[None]:
        """While bytes are compared, and nothing is timed, the store shows what is in flight."""
        plan = self._plan
        if not verify or plan.operation == "list" or (plan.concurrency or 1) == 1:
            yield
            return
        up = max(item.bytes for item in plan.work) if plan.operation == "put" else 0
        self.site.store.hold_back(plan.concurrency, up)
        try:
            yield
        finally:
            self.site.store.hold_back(0)

    def _end_whole(self) -> float:
        """Seconds from the start of the process to its end. A group knows what an ended process
        used, /proc does not: there the CPU time of the exit is missing, for every client."""
        if self.site.method.cpu == "proc":
            self._meter.end()
        self._driver.close()
        seconds = (time.monotonic_ns() - self._opened_ns) / 1e9
        self._meter.end()
        self._driver = None
        return seconds

    def _look_outside(self) -> list[str]:
        """What a driver that lies about its bytes can't change: the files and the store."""
        if self._plan.sink == "file":
            return driving.check_files(self._plan, self.site.folder)
        if self._plan.operation == "put":
            return self.site.store.check_uploads(self._plan)
        return []


def _difference(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else max(0.0, after - before)


def _moved(after: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    """What a round added to the counters; what is a level or a peak is as it is after it."""
    return {
        name: value
        if name.endswith("_peak") or name in ("connections_open", "requests_in_flight")
        else max(0, value - before.get(name, 0))
        for name, value in after.items()
    }


def _objects(plan: Any, samples: list[dict]) -> int:
    if plan.operation == "list":
        return sum(sample.get("keys") or 0 for sample in samples if not sample.get("error"))
    return sum(sample.get("count", 1) for sample in samples if not sample.get("error"))
