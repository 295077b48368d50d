"""A tree of processes as /proc shows it. Owns nothing and changes nothing but, where the kernel
allows it, a process's high-water mark."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
#: Written to clear_refs, this begins the high-water mark of the resident size anew.
FORGET_PEAK = "5"


@dataclasses.dataclass(frozen=True)
class Cpu:
    """CPU time in seconds."""

    user_s: float
    system_s: float

    def __sub__(self, earlier: Cpu) -> Cpu:
        return Cpu(self.user_s - earlier.user_s, self.system_s - earlier.system_s)

    def __add__(self, other: Cpu) -> Cpu:
        return Cpu(self.user_s + other.user_s, self.system_s + other.system_s)

    @property
    def total_s(self) -> float:
        return self.user_s + self.system_s


def tree(root: int) -> list[int]:
    """The process and all that descend from it and live, the root first."""
    found = [root]
    for pid in found:
        try:
            for task in (PROC / str(pid) / "task").iterdir():
                found.extend(map(int, (task / "children").read_text().split()))
        except OSError:
            continue
    return found


def cpu(pids: Iterable[int]) -> Cpu:
    """CPU time of the processes, their ended threads and the children that they have waited for.

    The sum of a living process is exact to the nanosecond: it is read from the process's own
    clock. How much of it was user time, and the ended children, the kernel tells in ticks.
    """
    total = Cpu(0.0, 0.0)
    for pid in pids:
        try:
            # The fields after the name, which may hold spaces and parentheses.
            text = (PROC / str(pid) / "stat").read_text()
            fields = text[text.rindex(")") + 2 :].split()
            exact = time.clock_gettime_ns(_clock(pid)) / 1e9
        except OSError:
            continue
        user, system, ended_user, ended_system = (int(field) / TICKS for field in fields[11:15])
        share = user / (user + system) if user + system else 0.5
        total += Cpu(exact * share + ended_user, exact * (1 - share) + ended_system)
    return total


def _clock(pid: int) -> int:
    """The clock id of a process's CPU time, as clock_getcpuclockid(3) makes it."""
    return (~pid << 3) | 2


def resident_bytes(pids: Iterable[int]) -> tuple[int, int]:
    """Resident bytes of all of them together now, and the highest mark of any one."""
    together, highest = 0, 0
    for pid in pids:
        sizes = _status(pid)
        together += sizes.get("VmRSS", 0)
        highest = max(highest, sizes.get("VmHWM", 0))
    return together, highest


def _status(pid: int) -> dict[str, int]:
    try:
        lines = (PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return {}
    return {
        line.partition(":")[0]: int(line.split()[1]) << 10
        for line in lines
        if line.startswith(("VmRSS:", "VmHWM:"))
    }


def forget_peaks(pids: Iterable[int]) -> bool:
    """Begins the high-water marks anew. False where the kernel does not allow it: the marks are
    then those since each process began."""
    done = True
    for pid in pids:
        try:
            (PROC / str(pid) / "clear_refs").write_text(FORGET_PEAK)
        except OSError:
            done = False
    return done


def storage_bytes(pids: Iterable[int]) -> tuple[int, int]:
    """Bytes read from and written to storage so far, by the processes and the children that they
    have waited for. Zero where the kernel does not say."""
    read, written = 0, 0
    for pid in pids:
        try:
            lines = (PROC / str(pid) / "io").read_text().splitlines()
        except OSError:
            continue
        said = {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
        read += said.get("read_bytes", 0)
        written += said.get("write_bytes", 0)
    return read, written
