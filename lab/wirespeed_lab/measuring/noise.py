"""What else happened on the cores while a round ran.

Owns the judgement whether a round was disturbed, which looks at the machine alone and never at
the round's result: a slow round on a quiet machine stays. Steal is time that the hypervisor
gave to others; other load is time that processes neither of the client, nor the server, nor the
lab spent on the cores in question.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable
from pathlib import Path

from .processes import TICKS

#: Shares of the cores' time from which on a round counts as disturbed, and the least ticks of
#: it: the kernel samples these counters 100 times a second, so one or two ticks mean nothing.
STEAL = 0.02
OTHER = 0.06
LEAST_TICKS = 3
#: A core that ran this much slower than the fastest seen in the session.
SLOWER = 0.10
SYSTEM = Path("/sys/devices/system/cpu")


@dataclasses.dataclass(frozen=True)
class Noise:
    """``steal`` and ``other`` are shares of the time of the cores that were looked at, ``mhz`` is
    the slowest of them (None where the machine does not say), ``load`` the load average."""

    steal: float
    other: float
    mhz: float | None
    load: float
    reasons: tuple[str, ...] = ()

    def as_json(self) -> dict:
        """What a record says of it."""
        return {
            "steal": round(self.steal, 4),
            "other": round(self.other, 4),
            "mhz": self.mhz,
            "load": round(self.load, 2),
        }


class Watch:
    """Looks at the same cores before and after every round of a session."""

    def __init__(self, cores: Iterable[int]):
        self._cores = tuple(sorted(set(cores)))
        self._fastest = 0.0

    def begin(self) -> None:
        self._before = _ticks(self._cores)
        self._began = time.monotonic()
        self._own = time.process_time()

    def end(self, ours_s: float) -> Noise:
        """``ours_s`` are the CPU seconds of client and server since ``begin``; those of the lab
        itself are added here. They may have been spent on the lab's behalf on any core, so other
        load is never overstated by them."""
        seconds = max(time.monotonic() - self._began, 1e-3) * len(self._cores)
        after = _ticks(self._cores)
        steal_s = (after.steal - self._before.steal) / TICKS
        busy_s = (after.busy - self._before.busy) / TICKS
        other_s = max(0.0, busy_s - ours_s - (time.process_time() - self._own))
        mhz = frequency(self._cores)
        self._fastest = max(self._fastest, mhz or 0.0)
        reasons = []
        least = LEAST_TICKS / TICKS
        if steal_s >= least and steal_s / seconds > STEAL:
            reasons.append(f"steal {steal_s / seconds:.0%}")
        if other_s >= least and other_s / seconds > OTHER:
            reasons.append(f"other load {other_s / seconds:.0%}")
        if mhz and mhz < self._fastest * (1 - SLOWER):
            reasons.append(f"{mhz:.0f} MHz, {self._fastest:.0f} before")
        return Noise(steal_s / seconds, other_s / seconds, mhz, os.getloadavg()[0], tuple(reasons))


def quietness(cores: Iterable[int], seconds: float = 2.0) -> Noise:
    """Looks at the cores for a while in which the lab does nothing."""
    watch = Watch(cores)
    watch.begin()
    time.sleep(seconds)
    return watch.end(0.0)


@dataclasses.dataclass(frozen=True)
class _Ticks:
    busy: int
    steal: int


def _ticks(cores: tuple[int, ...]) -> _Ticks:
    names = {f"cpu{core}" for core in cores}
    busy, steal = 0, 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *values = line.split()
        if name in names:
            # user, nice, system; interrupts belong to nobody, guests are in user already.
            busy += sum(map(int, values[:3]))
            steal += int(values[7])
    return _Ticks(busy, steal)


def frequency(cores: Iterable[int]) -> float | None:
    """MHz of the slowest of the cores now, or None where the machine does not say."""
    found = []
    for core in cores:
        try:
            text = (SYSTEM / f"cpu{core}/cpufreq/scaling_cur_freq").read_text()
        except OSError:
            return None
        found.append(int(text) / 1000)
    return min(found, default=None)
