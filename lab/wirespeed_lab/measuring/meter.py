"""Measures one client from the outside, round by round.

Owns the choice of the method, which is made once for a session so that every client is
measured the same way, and says which it was. Refuses to ask the client anything.
"""

from __future__ import annotations

import dataclasses
import threading

from . import cgroup, processes
from .processes import Cpu

#: Seconds between two looks at a tree's memory. The high-water mark of each process only rises;
#: what can be missed is what several processes hold together for a shorter time than this.
LOOK_EVERY_S = 0.05


@dataclasses.dataclass(frozen=True)
class Method:
    """How CPU time is taken: ``cgroup-v2`` or ``proc``, and why not the better one."""

    cpu: str
    why: str

    @classmethod
    def choose(cls) -> Method:
        """A cgroup v2 leaf where one can be made and entered, else /proc."""
        try:
            cgroup.Leaf().close()
        except cgroup.NoLeaf as reason:
            return cls("proc", str(reason))
        return cls("cgroup-v2", "")

    def as_json(self) -> dict:
        """What a record says of it."""
        memory = "resident bytes of the tree, /proc"
        return {"cpu": self.cpu, "memory": memory, "why_no_cgroup": self.why or None}


@dataclasses.dataclass(frozen=True)
class Usage:
    """What a process tree used between two moments."""

    user_s: float
    system_s: float
    peak_memory_bytes: int
    storage_read_bytes: int
    storage_written_bytes: int

    @property
    def core_s(self) -> float:
        return self.user_s + self.system_s


class Meter:
    """Measures the tree that descends from ``root``. Raises NoLeaf when the session measures by
    cgroup and this process can't be moved into one."""

    def __init__(self, root: int, method: Method):
        self._root = root
        self._leaf = cgroup.Leaf() if method.cpu == "cgroup-v2" else None
        self._ended: Usage | None = None
        self._watcher: _Watcher | None = None
        try:
            if self._leaf:
                self._leaf.adopt(root)
        except BaseException:
            self._leaf.close()
            raise

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, since_birth: bool = False) -> None:
        """Starts a measurement. Call it right before the client is told to go; with
        ``since_birth`` CPU time counts from the beginning of the process."""
        self._ended = None
        pids = self._pids()
        if not since_birth:
            processes.forget_peaks(pids)
        self._watcher = _Watcher(self._pids)
        self._storage = processes.storage_bytes(pids)
        self._before = Cpu(0.0, 0.0) if since_birth else self._cpu()

    def end(self) -> None:
        """Ends it. What is called again before the next ``begin`` changes nothing, so that it
        may be called at the first sign of the end and once more for certain."""
        if self._ended is not None or self._watcher is None:
            return
        used = self._cpu() - self._before
        peak = self._watcher.close()
        read, written = processes.storage_bytes(self._pids())
        self._ended = Usage(
            max(0.0, used.user_s),
            max(0.0, used.system_s),
            peak,
            max(0, read - self._storage[0]),
            max(0, written - self._storage[1]),
        )
        self._watcher = None

    def look(self) -> None:
        """Takes the memory of now into account, for a process that may soon have ended."""
        if self._watcher:
            self._watcher.look()

    def usage(self) -> Usage:
        """What was used between ``begin`` and the first ``end`` after it."""
        self.end()
        if self._ended is None:
            raise RuntimeError("nothing was measured: begin comes before usage")
        return self._ended

    def close(self) -> None:
        """Forgets the tree; call it after the processes have ended."""
        if self._watcher:
            self._watcher.close()
            self._watcher = None
        if self._leaf:
            self._leaf.close()

    def _pids(self) -> list[int]:
        return self._leaf.pids() if self._leaf else processes.tree(self._root)

    def _cpu(self) -> Cpu:
        return self._leaf.cpu() if self._leaf else processes.cpu(self._pids())


class _Watcher(threading.Thread):
    """Looks at the memory of a tree every so often: children of a wrapped command come and go."""

    def __init__(self, pids):
        super().__init__(daemon=True, name="memory watcher")
        self._pids = pids
        self._closing = threading.Event()
        self._peak = 0
        self.start()

    def run(self) -> None:
        while not self._closing.wait(LOOK_EVERY_S):
            self.look()

    def close(self) -> int:
        """The highest resident size seen, in bytes."""
        self._closing.set()
        self.join()
        self.look()
        return self._peak

    def look(self) -> None:
        try:
            self._peak = max(self._peak, *processes.resident_bytes(self._pids()))
        except OSError:
            return
