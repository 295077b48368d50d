"""A session from its first block to its last, or to whatever ends it.

Owns the order of turns (shuffled anew in every block, from the seed in the plan), the repeats of
disturbed rounds, and the end: a finished session, Ctrl-C, a dead server and a full disk all leave
a record that can be read, verified and resumed. A client that fails takes no further part in its
cell, and what it did before stays.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from .. import driving, stores
from ..measuring import Method, Watch, cgroup
from ..records import CutOff, Journal, Record, from_root, journal, summarise
from ..server import ServerFailed
from .cells import Cell
from .contestant import Contestant, Site, Turn
from .pace import Pace
from .progress import Progress
from .settings import Entry, Settings
from .view import View

#: When less than this share of memory is left with every client waiting for its turn, they no
#: longer wait: each is started for its turn, warmed up, measured and ended.
LEAN_BELOW = 0.25
#: Of the turns of a cell, the share that may be repeated. A machine that is never quiet would
#: otherwise take twice the time and be as noisy.
REPEATED_SHARE = 0.5
MOST_FAULTS_SAID = 3
STORE_ERRORS = (stores.StoreFailed, ServerFailed)


class Stopped(Exception):
    """The session can't go on; the text says what ended it and what to do."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a session ended: ``complete``, ``interrupted`` or ``stopped``, and why."""

    state: str
    text: str = ""


class Session:
    """Runs what the plan of a record asks for and its lines do not hold yet."""

    def __init__(
        self,
        record: Record,
        entries: Sequence[Entry],
        cells: Sequence[Cell],
        settings: Settings,
        method: Method,
        view: View,
        open_store: Callable[..., Any] | None = None,
    ):
        self._record, self._view = record, view
        self._entries, self._cells, self._settings = entries, cells, settings
        self._method, self._open_store = method, open_store or stores.open_store
        self._progress = Progress(record.lines())
        self._pace = Pace()
        self._lean = False
        self._journal: Journal | None = None

    def run(self) -> Outcome:
        """Raises nothing that a session can survive: how it ended is what it returns."""
        try:
            with Journal(self._record.samples) as self._journal, _sigterm_interrupts():
                outcome = self._guarded()
        except CutOff as failure:
            outcome = Outcome("stopped", f"{failure}. Mend that, then resume the session")
        self._finish(outcome)
        return outcome

    def _guarded(self) -> Outcome:
        try:
            if self._progress.rounds:
                self._event("resumed", text="the session was resumed")
            self._all_cells()
            self._event("complete")
            return Outcome("complete")
        except KeyboardInterrupt:
            self._event("interrupted", text="the session was interrupted")
            return Outcome("interrupted", "interrupted; --resume goes on from here")
        except (Stopped, *STORE_ERRORS) as failure:
            self._event("stopped", text=str(failure))
            return Outcome("stopped", str(failure))

    def _finish(self, outcome: Outcome) -> None:
        journal.seal(self._record.samples)
        try:
            self._record.write_summary(summarise(self._record.plan, self._record.lines()))
        except OSError as failure:
            self._view.note(f"the summary could not be written: {failure}")
        self._view.end(outcome.state, outcome.text)

    def _all_cells(self) -> None:
        self._view.begin(
            [cell.id for cell in self._cells],
            [entry.name for entry in self._entries],
            self._settings.blocks,
        )
        cgroup.sweep()
        pinned = self._pin_self()
        cores = self._settings.cores
        watch = Watch({*cores.client, *cores.server})
        with contextlib.ExitStack() as holding:
            folder = holding.enter_context(_work_folder(self._settings.folder))
            store, over_tls = None, None
            for cell in self._cells:
                if not self._missing(cell):
                    continue
                if store is None or cell.plan.tls != over_tls:
                    store, over_tls = self._store(holding, cell.plan.tls, pinned), cell.plan.tls
                store.prepare(cell.plan)
                site = Site(
                    store, cores, cores.client if pinned else (), self._method, watch, folder
                )
                self._one_cell(cell, site)

    def _store(self, holding: contextlib.ExitStack, tls: bool, pinned: bool) -> Any:
        settings = self._settings
        extra = {"write_to": settings.write_to} if settings.write_to else {}
        store = holding.enter_context(
            self._open_store(
                settings.server,
                cpus=settings.cores.server if pinned else (),
                preset=settings.preset,
                tls=tls,
                **extra,
            )
        )
        self._event("store", text=f"server: {settings.server}", describe=store.describe())
        return store

    def _one_cell(self, cell: Cell, site: Site) -> None:
        self._view.cell(cell.id)
        driving.empty(site.folder)
        if cell.plan.source == "file":
            driving.write_sources(cell.plan, site.folder)
        waiting = {
            entry.name: Contestant(
                entry, cell, site, self._progress.processes.get((cell.id, entry.name), 0)
            )
            for entry in self._missing(cell)
        }
        allowance = int(len(waiting) * self._settings.blocks * REPEATED_SHARE)
        try:
            for contestant in self._shuffled(cell, 0, waiting):
                self._timed(cell, contestant, waiting, 0, self._prepare)
            for block in range(1, self._settings.blocks + 1):
                allowance -= self._block(cell, block, waiting, allowance)
                self._journal.keep()
        finally:
            for contestant in waiting.values():
                contestant.close()
            driving.empty(site.folder)

    def _block(self, cell: Cell, block: int, waiting: dict[str, Contestant], allowance: int) -> int:
        """One round of every client that lacks it, and the repeats; the number of these."""
        repeated = 0
        turns = [
            contestant
            for contestant in self._shuffled(cell, block, waiting)
            if block not in self._progress.blocks(cell.id, contestant.entry.name)
        ]
        for attempt in range(self._settings.repeats + 1):
            again = []
            for position, contestant in enumerate(turns):
                if contestant.entry.name not in waiting:
                    continue
                place = (block, position, attempt)
                line = self._timed(cell, contestant, waiting, place, self._counted)
                if line and line["disturbed"]:
                    again.append(contestant)
            turns = again[: max(0, allowance - repeated)]
            if not turns or attempt == self._settings.repeats:
                break
            repeated += len(turns)
        return repeated

    def _timed(self, cell, contestant, waiting, place, what) -> dict | None:
        """Does ``what`` with a client; whatever is wrong with it puts it out of the cell."""
        name = contestant.entry.name
        began = time.monotonic()
        left = self._pace.left_s(self._turns_left(cell))
        block = place if isinstance(place, int) else place[0]
        self._view.turn(name, block, left)
        try:
            line = what(cell, contestant, place)
        except driving.Skipped as reason:
            self._put_out(cell, contestant, waiting, "skipped", str(reason))
            return None
        except (driving.DrivingError, cgroup.NoLeaf, OSError) as failure:
            self._look_at_server(contestant)
            self._put_out(cell, contestant, waiting, "failed", str(failure))
            return None
        if faults := line["faults"]:
            self._look_at_server(contestant)
            more = f", and {len(faults) - MOST_FAULTS_SAID} more"
            text = "; ".join(faults[:MOST_FAULTS_SAID])
            text += more if len(faults) > MOST_FAULTS_SAID else ""
            self._put_out(cell, contestant, waiting, "disqualified", text)
        elif block:
            self._pace.took(cell.id, name, time.monotonic() - began)
        return line

    def _prepare(self, cell: Cell, contestant: Contestant, _: int) -> dict:
        """The verified round, and the first that is timed; both stand apart."""
        self._event("started", cell, contestant, describe=contestant.describe())
        contestant.open()
        line = self._round(contestant, Turn(0, 0, 0, "verified"))
        if not line["faults"] and cell.plan.mode == "warm":
            line = self._round(contestant, Turn(0, 0, 0, "first"))
            self._lean = self._lean or _memory_is_short()
        if cell.plan.mode != "warm" or self._lean:
            contestant.close()
        return line

    def _counted(self, cell: Cell, contestant: Contestant, place: tuple[int, int, int]) -> dict:
        """A round that counts, of a process that is as warm or as cold as the plan asks."""
        if not contestant.alive:
            contestant.open()
            if cell.plan.mode == "warm":
                line = self._round(contestant, Turn(*place, "first"))
                if line["faults"]:
                    return line
        phase = "steady" if cell.plan.mode == "warm" else cell.plan.mode
        line = self._round(contestant, Turn(*place, phase))
        if cell.plan.mode != "warm" or self._lean:
            contestant.close()
        return line

    def _round(self, contestant: Contestant, turn: Turn) -> dict:
        line = contestant.round(turn)
        self._journal.append(line)
        self._progress.add(line)
        self._view.round(line)
        return line

    def _put_out(self, cell, contestant, waiting, state: str, text: str) -> None:
        contestant.close()
        waiting.pop(contestant.entry.name, None)
        self._event(state, cell, contestant, text)

    def _look_at_server(self, contestant: Contestant) -> None:
        """A client is not to blame when the server is gone."""
        try:
            contestant.site.store.cpu_seconds()
            contestant.site.store.counts()
        except (*STORE_ERRORS, OSError) as failure:
            raise Stopped(
                f"the server ended while {contestant.entry.name} was measured: {failure}. "
                "All rounds before are kept; --resume goes on with a new server"
            ) from None

    def _event(
        self,
        event: str,
        cell: Cell | None = None,
        contestant: Contestant | None = None,
        text: str = "",
        describe: dict | None = None,
    ) -> None:
        line: dict[str, Any] = {
            "line": "event",
            "event": event,
            "cell": cell.id if cell else None,
            "client": contestant.entry.name if contestant else None,
            "text": text,
        }
        if describe is not None:
            line["describe"] = describe
        line = from_root(line)
        self._journal.append(line)
        self._progress.add(line)
        self._view.event(line)

    def _missing(self, cell: Cell) -> list[Entry]:
        """Clients that have rounds to do in the cell."""
        return [
            entry
            for entry in self._entries
            if (cell.id, entry.name) not in self._progress.out
            and len(self._progress.blocks(cell.id, entry.name)) < self._settings.blocks
        ]

    def _turns_left(self, now: Cell) -> dict[tuple[str, str], int]:
        blocks, later = self._settings.blocks, self._cells[self._cells.index(now) :]
        return {
            (cell.id, entry.name): blocks - len(self._progress.blocks(cell.id, entry.name))
            for cell in later
            for entry in self._missing(cell)
        }

    def _shuffled(self, cell: Cell, block: int, waiting: dict[str, Contestant]) -> list[Contestant]:
        order = sorted(waiting)
        random.Random(f"{self._settings.seed} {cell.id} {block}").shuffle(order)
        return [waiting[name] for name in order]

    def _pin_self(self) -> bool:
        """Keeps the lab itself off the clients' cores. False, with a note, where the machine does
        not let anything be pinned."""
        try:
            os.sched_setaffinity(0, self._settings.cores.server)
        except OSError as error:
            text = f"nothing is pinned ({error.strerror}): server and clients share their cores"
            self._event("note", text=text)
            return False
        return True


def _memory_is_short() -> bool:
    memory = psutil.virtual_memory()
    return memory.available < memory.total * LEAN_BELOW


@contextlib.contextmanager
def _work_folder(parent: Path | None) -> Iterator[Path]:
    """A folder of the session's own for files that clients read and write."""
    folder = Path(tempfile.mkdtemp(prefix="wirespeed-lab-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """SIGTERM and a closed terminal end a session as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        before = {
            number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)
        }
    except ValueError:  # not in the main thread, which has the signals
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
