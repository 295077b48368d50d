"""Figures inside sentences: ``{METRIC:CLIENT}`` is filled from records when the page is written,
so that a text cannot say what no record says.

``{METRIC:A/B}`` is a ratio with its interval, and ``@WORKLOAD`` after the clients names other work
than the claim's own. A text with a figure that no record has is left out as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..clients import registry
from ..plans import names as workloads
from ..records.metrics import BY_NAME
from .formatting import interval, number
from .shelf import Missing, Shelf
from .wanted import Wanted

#: Beside the metrics of records: percentiles of single operations, and requests for each object.
LATENCIES = {"p50_ms": "p50_s", "p99_ms": "p99_s"}
REQUESTS = "requests_per_object"
_PLACE = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"(\w+):([\w-]+)(?:/([\w-]+))?(?:@([\w-]+))?")


class _NotThere(Exception):
    """A figure that no record has."""


def check_text(text: str) -> str | None:
    """What is wrong with the placeholders of a text, or None."""
    for inside in _PLACE.findall(text):
        found = _NAME.fullmatch(inside)
        if not found:
            return f"{{{inside}}} is no placeholder: write {{metric:client}} or {{metric:a/b}}"
        metric, over, under, workload = found.groups()
        for what, name, known in (
            ("metric", metric, {*BY_NAME, *LATENCIES, REQUESTS}),
            ("client", over, registry()),
            ("client", under, {None, *registry()}),
            ("workload", workload, {None, *workloads()}),
        ):
            if name not in known:
                return f"{{{inside}}}: there is no {what} {name!r}"
        if under and metric not in BY_NAME:
            return f"{{{inside}}}: no ratio is made of {metric}"
    return None


def quotes(texts: Iterable[str]) -> bool:
    """Whether any of the texts has a figure of its claim's own work."""
    return any("@" not in inside for text in texts for inside in _PLACE.findall(text))


def filled(text: str, shelf: Shelf, wanted: Wanted | None, rank: str) -> str | None:
    """The text with its figures, or None where one of them is not in the records. ``rank`` is the
    metric that chooses a client's best point of a sweep."""

    def figure(match: re.Match[str]) -> str:
        found = _NAME.fullmatch(match[1])
        assert found
        metric, over, under, workload = found.groups()
        where = _place(wanted, workload)
        return _figure(shelf, where, metric, over, under, rank)

    try:
        return _PLACE.sub(figure, text)
    except _NotThere:
        return None


def _place(wanted: Wanted | None, workload: str | None) -> Wanted:
    if workload:
        return Wanted(workload, preset=wanted.preset if wanted else None)
    if wanted is None:
        raise _NotThere
    return wanted


def _figure(
    shelf: Shelf, where: Wanted, metric: str, over: str, under: str | None, rank: str
) -> str:
    point = shelf.find(where, over, rank)
    if isinstance(point, Missing):
        raise _NotThere
    if under:
        other = shelf.find(where, under, rank)
        ratio = None if isinstance(other, Missing) else shelf.ratio(point, other, metric)
        if ratio is None:
            raise _NotThere
        return interval(ratio.estimate)
    if metric in LATENCIES:
        if not point.said["latency"]:
            raise _NotThere
        return number(point.said["latency"][LATENCIES[metric]] * 1000)
    each = metric == REQUESTS
    estimate = point.estimate("requests" if each else metric)
    if estimate is None:
        raise _NotThere
    divide = point.cell.said["objects"] if each else BY_NAME[metric].divide
    return number(estimate.median / divide)
