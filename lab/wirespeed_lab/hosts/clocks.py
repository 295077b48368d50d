"""How far apart two clocks are, from question and answer.

Owns the estimate and the bounds; it reads no clock itself. Samples are stamped with
CLOCK_MONOTONIC, which counts from each machine's own start, so its offset may be anything: what
matters is how well it is known. Wall clocks must agree by themselves: S3 refuses a signature that
is 15 minutes off, and records name times.

One exchange is (asked, heard, said, answered): the first and the last by our clock, the two
between by theirs. Whatever the delay each way, the true offset lies within half of the round trip
of the middle, so the exchange with the shortest round trip bounds it best.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

#: Exchanges for an estimate.
EXCHANGES = 15
#: Half a round trip, at most: how well the common time is known. A segment is a second long.
UNCERTAINTY_BOUND_NS = 20_000_000
#: What the two wall clocks may differ by, unless told otherwise.
WALL_BOUND_NS = 1_000_000_000


class ClocksApart(Exception):
    """Two clocks differ, or may differ, by more than is allowed. The text says what to try."""


@dataclasses.dataclass(frozen=True)
class Exchange:
    """One question and its answer, in nanoseconds; ``wall_ahead`` is their wall clock less ours."""

    asked: int
    heard: int
    said: int
    answered: int
    wall_ahead: int = 0

    @property
    def round_trip(self) -> int:
        return (self.answered - self.asked) - (self.said - self.heard)


@dataclasses.dataclass(frozen=True)
class Offset:
    """Their monotonic clock is ``ahead`` of ours, give or take ``uncertainty``; their wall clock
    is ``wall_ahead`` of ours, as far as the same uncertainty goes. Nanoseconds."""

    ahead: int
    uncertainty: int
    wall_ahead: int

    def to_ours(self, theirs: int) -> int:
        return theirs - self.ahead

    def to_theirs(self, ours: int) -> int:
        return ours + self.ahead


def estimate(exchanges: Sequence[Exchange]) -> Offset:
    """The offset from the exchange with the shortest round trip. Raises ValueError for none, or
    for one that ended before it began: a clock went backwards."""
    if not exchanges:
        raise ValueError("no exchange to estimate an offset from")
    for one in exchanges:
        if one.answered < one.asked or one.said < one.heard or one.round_trip < 0:
            raise ValueError(f"a clock went backwards during {one}")
    best = min(exchanges, key=lambda one: one.round_trip)
    ahead = ((best.heard - best.asked) + (best.said - best.answered)) // 2
    # Rounding down above may cost one nanosecond, rounding up here gives it back.
    return Offset(ahead, (best.round_trip + 1) // 2 + 1, best.wall_ahead)


def check(name: str, offset: Offset, wall_bound_ns: int = WALL_BOUND_NS) -> None:
    """Raises ClocksApart when the offset is not known well enough or the wall clocks differ."""
    if offset.uncertainty > UNCERTAINTY_BOUND_NS:
        raise ClocksApart(
            f"{name}: its clock is known to {offset.uncertainty / 1e6:.1f} ms only, and "
            f"{UNCERTAINTY_BOUND_NS / 1e6:g} ms are needed: the round trip is too long; "
            "coordinate from a machine that is nearer to it"
        )
    if abs(offset.wall_ahead) > wall_bound_ns + offset.uncertainty:
        raise ClocksApart(
            f"{name}: its wall clock is {offset.wall_ahead / 1e6:+.0f} ms off ours, and "
            f"{wall_bound_ns / 1e6:g} ms are allowed: set both by NTP (`timedatectl`), or allow "
            "more with --clock-bound"
        )


def joined(name: str, before: Offset, after: Offset) -> Offset:
    """The offset over a stretch of time, known at both its ends: the middle, with as much
    uncertainty as covers both. Raises ClocksApart when the clock drifted or jumped out of
    bounds."""
    low = min(before.ahead - before.uncertainty, after.ahead - after.uncertainty)
    high = max(before.ahead + before.uncertainty, after.ahead + after.uncertainty)
    both = Offset((low + high) // 2, (high - low + 1) // 2 + 1, after.wall_ahead)
    if both.uncertainty > UNCERTAINTY_BOUND_NS:
        raise ClocksApart(
            f"{name}: its clock moved by {(after.ahead - before.ahead) / 1e6:+.1f} ms against ours "
            "during the round, which can't be merged: look whether a machine was suspended"
        )
    return both
