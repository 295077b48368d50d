"""Figures and tables as Markdown. Owns rounding and wording only."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..records.summary import FEWEST_PAIRS
from ..stats import Estimate

NOTHING = ("", "-")
#: A figure with or without its interval, or what stands in its place.
FIGURE = re.compile(r"~?[\d.,]+( \[.*\])?|~?no difference.*|too few rounds|-?")


def number(value: float) -> str:
    """Three digits; more only before the decimal point."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:#.3g}"


def interval(estimate: Estimate, divide: float = 1.0) -> str:
    """Median and 95 % interval, divided by a unit."""
    middle, low, high = (v / divide for v in (estimate.median, estimate.low, estimate.high))
    if low == high:
        return number(middle)
    return f"{number(middle)} [{number(low)}..{number(high)}]"


def ratio(estimate: Estimate | None, paired: bool = True) -> str:
    """A ratio, or that there is no difference. ``~`` marks one whose sides were not paired."""
    if estimate is None:
        return "-"
    if estimate.count < FEWEST_PAIRS:
        return "too few rounds"
    mark = "" if paired else "~"
    if estimate.low <= 1 <= estimate.high:
        return f"{mark}no difference [{number(estimate.low)}..{number(estimate.high)}]"
    return mark + interval(estimate)


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table. Columns of figures are set to the right; columns in which no row has
    anything are left out."""
    kept = [n for n in range(len(titles)) if any(row[n] not in NOTHING for row in rows)]
    rule = ["--:" if _figures([row[n] for row in rows]) else ":--" for n in kept]
    lines = [[titles[n] for n in kept], rule, *([_cell(row[n]) for n in kept] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _figures(cells: Sequence[str]) -> bool:
    return all(FIGURE.fullmatch(text) for text in cells)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def bytes_text(count: float) -> str:
    """Bytes in binary units, as sizes of parts and objects are given."""
    for unit, worth in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= worth:
            return f"{count / worth:.4g} {unit}"
    return f"{count:.0f} B"
