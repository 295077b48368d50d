"""What every driver written in Python shares: arguments, the clock, the check of what
arrived, and the lab's step protocol (``ready``, then one JSON line for each ``go``).

A driver gives `serve` one function for each mode. The function does the work inside
``with round.clock:`` and checks and drops what it received outside it or inside, as the
client's own user would: memory that the client gives back to the system is given back
inside the clock. Only the standard library is used, so that the file runs in every
environment.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import synthetic_bytes

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
#: Keys between two that are compared with what they must be, in rounds after the first.
STRIDE = 997


def size(text: str) -> int:
    """Bytes, as in ``64KiB``."""
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text)


class Clock:
    """Seconds and CPU seconds of the whole process, added up over its ``with`` blocks."""

    def __init__(self) -> None:
        self.seconds = self.user = self.system = 0.0

    def __enter__(self) -> Clock:
        self._usage = resource.getrusage(resource.RUSAGE_SELF)
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._start
        after = resource.getrusage(resource.RUSAGE_SELF)
        self.user += after.ru_utime - self._usage.ru_utime
        self.system += after.ru_stime - self._usage.ru_stime


class Round:
    """One round: its clock, what it moved, and whether it is the first of the process."""

    def __init__(self, work: argparse.Namespace, number: int):
        self.work = work
        self.first = number == 0
        self.clock = Clock()
        self.bytes = self.objects = self.requests = 0

    def received(self, key: str, data: object, at: int = 0) -> None:
        """Compares with the server's formula what arrived of ``key`` from the offset ``at`` on:
        every byte in the first round, samples later. Ends the process when it is wrong."""
        view = memoryview(data).cast("B")
        self.bytes += len(view)
        if self.work.unchecked:
            return
        wrong = synthetic_bytes.first_difference(key, view, at, every=self.first)
        if wrong is not None:
            sys.exit(f"wrong bytes of {key}: the first of them is at {wrong}")

    def received_objects(self, keys: Iterable[str], objects: Iterable[object]) -> None:
        """The same for many small objects, each whole."""
        for key, data in zip(keys, objects, strict=True):
            self.received(key, data)
            self.objects += 1

    def listed(self, keys: list[str]) -> None:
        """Compares a listing with what it must be."""
        wanted = numbered(self.work)
        step = 1 if self.first else STRIDE
        if len(keys) != len(wanted) or keys[::step] != wanted[::step] or keys[-1] != wanted[-1]:
            sys.exit(f"a wrong listing: {len(keys)} keys, the last of them {keys[-1:]}")
        self.objects = len(keys)

    def as_json(self) -> dict:
        return {
            "seconds": self.clock.seconds,
            "bytes": self.bytes,
            "objects": self.objects,
            "requests": self.requests,
            "user_s": self.clock.user,
            "system_s": self.clock.system,
        }


Modes = Mapping[str, Callable[[Round], None]]


def numbered(work: argparse.Namespace) -> list[str]:
    """The keys of a series, in order."""
    made = _series.get((work.prefix, work.count))
    if made is None:
        made = [f"{work.prefix}{n:0{work.digits}d}" for n in range(work.count)]
        _series[work.prefix, work.count] = made
    return made


_series: dict[tuple[str, int], list[str]] = {}


def scattered(work: argparse.Namespace) -> list[tuple[int, int]]:
    """``count`` ranges (start, end) of ``--range`` bytes, none overlapping another, in no order:
    the same for every client."""
    slots = random.Random(work.seed).sample(range(work.size // work.range), work.count)
    return [(slot * work.range, (slot + 1) * work.range) for slot in slots]


def parts(work: argparse.Namespace) -> Iterator[tuple[int, int]]:
    """The object's ranges (start, end) of one part each."""
    for start in range(0, work.size, work.part):
        yield start, min(start + work.part, work.size)


def parser(about: str | None, modes: Iterable[str]) -> argparse.ArgumentParser:
    """What every driver can be told."""
    parser = argparse.ArgumentParser(description=(about or "").split("\n")[0])
    option = parser.add_argument
    option("--mode", choices=list(modes), required=True)
    option("--endpoint", required=True)
    option("--bucket", required=True)
    option("--key", default="", help="the one object that is read")
    option("--size", type=size, default=0, help="its bytes, or those of each numbered one")
    option(
        "--part", type=size, default=8 << 20, help="bytes a request, where a client lets it be said"
    )
    option(
        "--connections",
        type=int,
        default=16,
        help="requests in flight, where a client lets it be said",
    )
    option("--prefix", default="", help="what numbered keys begin with")
    option("--digits", type=int, default=8)
    option("--count", type=int, default=0, help="objects, keys or ranges")
    option("--range", type=size, default=8 << 10, help="bytes of each scattered range")
    option("--gap", type=size, default=0, help="bytes between ranges that may be read in vain")
    option("--memory", type=size, default=0, help="the client's budget, where it has one")
    option("--seed", type=int, default=1, help="of the scattered ranges")
    option("--unchecked", action="store_true", help="count bytes only, to count instructions")
    option("--step", action="store_true", help="run one round for each line go")
    return parser


def arguments(about: str | None, modes: Iterable[str]) -> argparse.Namespace:
    return parser(about, modes).parse_args()


def serve(
    work: argparse.Namespace,
    modes: Modes,
    at_the_end: Callable[[], None] = lambda: None,
) -> None:
    """Runs rounds until standard input ends, or one without ``--step``."""
    run = modes[work.mode]

    def once(number: int) -> None:
        done = Round(work, number)
        run(done)
        print(json.dumps({**done.as_json(), "peak_rss_bytes": _peak_rss_bytes()}), flush=True)

    if work.step:
        print("ready", flush=True)
        for number, line in enumerate(sys.stdin):
            if line.strip() != "go":
                sys.exit("standard input takes lines that say go")
            once(number)
    else:
        once(0)
    at_the_end()


def _peak_rss_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmHWM in /proc/self/status")
