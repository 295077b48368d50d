"""Which cores the server has and which the clients.

Owns the split. Refuses to share a physical core between the two: what runs on its second
hardware thread would take from the other. On a machine of one core nothing can be kept apart,
and the split says so.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

SYSTEM = Path("/sys/devices/system/cpu")


class CoresRefused(ValueError):
    """Cores were asked for that are not there, or for both sides; the text says which."""


@dataclasses.dataclass(frozen=True)
class Cores:
    """Core numbers of each side. ``why`` says why they are not apart, or is empty."""

    server: tuple[int, ...]
    client: tuple[int, ...]
    why: str = ""

    @classmethod
    def split(
        cls, server: str | None = None, client: str | None = None, available: set[int] | None = None
    ) -> Cores:
        """By lists as taskset has them ("0-3,8"); half of the physical cores each where none are
        named. Raises CoresRefused."""
        usable = available or os.sched_getaffinity(0)
        physical = _physical(usable)
        ours = parse(server) if server else None
        theirs = parse(client) if client else None
        for cores in filter(None, (ours, theirs)):
            if missing := sorted(set(cores) - usable):
                raise CoresRefused(
                    f"core {missing[0]} is not among those that the lab may use: "
                    f"{', '.join(map(str, sorted(usable)))}"
                )
        if ours and theirs:
            if both := sorted(set(ours) & set(theirs)):
                raise CoresRefused(f"core {both[0]} is asked for by the server and by the clients")
            return cls(ours, theirs)
        if len(usable) == 1:
            (only,) = usable
            return cls((only,), (only,), "there is only one core: server and clients share it")
        if ours:
            return cls(ours, tuple(sorted(usable - set(ours))))
        if theirs:
            return cls(tuple(sorted(usable - set(theirs))), theirs)
        if len(physical) == 1:
            first, *rest = physical[0]
            why = "there is only one physical core: server and clients share it"
            return cls((first,), tuple(rest), why)
        half = len(physical) // 2
        return cls(
            tuple(sorted(core for group in physical[:half] for core in group)),
            tuple(sorted(core for group in physical[half:] for core in group)),
        )

    def as_json(self) -> dict:
        """What a record says of them."""
        return {"server": list(self.server), "client": list(self.client), "why": self.why or None}


def parse(text: str) -> tuple[int, ...]:
    """The numbers of a list such as "0-3,8". Raises CoresRefused."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise CoresRefused(f"{text!r} is no list of cores: write it as 0-3,8")
        found.update(range(int(first), int(last or first) + 1))
    if not found:
        raise CoresRefused(f"{text!r} names no core")
    return tuple(sorted(found))


def _physical(usable: set[int]) -> list[list[int]]:
    groups: dict[str, list[int]] = {}
    for core in sorted(usable):
        try:
            siblings = (SYSTEM / f"cpu{core}/topology/thread_siblings_list").read_text().strip()
        except OSError:
            siblings = str(core)
        groups.setdefault(siblings, []).append(core)
    return list(groups.values())
