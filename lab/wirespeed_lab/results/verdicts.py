"""What a ratio of ours says of a ratio that was published. Arithmetic only.

A verdict rests on our 95 % interval: a published figure has none, so that its size is compared
with a factor to spare and its direction exactly.
"""

from __future__ import annotations

import dataclasses

from ..records.summary import FEWEST_PAIRS
from ..stats import Estimate

AGREES = "agrees"
DIRECTION = "agrees in direction"
NO_DIFFERENCE = "no difference here"
DISAGREES = "disagrees"
NOT_MEASURED = "not measured"
#: On which side of 1 a claimed ratio lies; "not more" is both "less" and "equal".
SIDES = ("more", "less", "equal", "not more")
ALL = (AGREES, DIRECTION, NO_DIFFERENCE, DISAGREES, NOT_MEASURED)

#: Sizes within this factor of each other agree: reports of one to three rounds, from machines of
#: another size, can't be held to more.
FACTOR = 1.5
#: A published ratio within this factor of 1 claims no difference: none of the reports has an
#: interval, and those that repeat a round at all repeat it three times.
EQUAL = 1.05


@dataclasses.dataclass(frozen=True)
class Claimed:
    """A published ratio of one over another. ``side`` is one of `SIDES`; ``low`` and ``high`` are
    its size, equal to each other where it is one number, None where only a direction is given."""

    side: str
    low: float | None = None
    high: float | None = None

    @classmethod
    def of_ratio(cls, ratio: float) -> Claimed:
        """What a ratio of two published figures claims."""
        if 1 / EQUAL <= ratio <= EQUAL:
            return cls("equal", ratio, ratio)
        return cls("more" if ratio > 1 else "less", ratio, ratio)


def verdict(claimed: Claimed, ours: Estimate | None) -> str:
    """One of `ALL`; what rests on fewer than `FEWEST_PAIRS` rounds is not measured."""
    if ours is None or ours.count < FEWEST_PAIRS:
        return NOT_MEASURED
    if claimed.side == "not more":
        return DISAGREES if ours.low > 1 else AGREES
    same = ours.low <= 1 <= ours.high
    if claimed.side == "equal":
        near = ours.low >= 1 / EQUAL and ours.high <= EQUAL
        return AGREES if same or near else DISAGREES
    if same:
        return NO_DIFFERENCE
    if (ours.low > 1) != (claimed.side == "more"):
        return DISAGREES
    return AGREES if _as_large(claimed, ours.median) else DIRECTION


def _as_large(claimed: Claimed, ratio: float) -> bool:
    """Whether a ratio is within `FACTOR` of what was claimed, or no size was."""
    if claimed.low is None or claimed.high is None:
        return True
    return claimed.low / FACTOR <= ratio <= claimed.high * FACTOR
