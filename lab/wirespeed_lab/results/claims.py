"""The claims of a report as a table with verdicts, and below it what the ratios are due to."""

from __future__ import annotations

from . import formatting
from .formatting import ratio as ratio_text
from .quoting import filled, quotes
from .seeds import Claim, Seed, Side, Table
from .shelf import Missing, Point, Shelf
from .verdicts import NOT_MEASURED, verdict
from .wanted import Wanted


def tested(seed: Seed, shelf: Shelf, verdicts: list[str]) -> list[str]:
    """The table of claims and the notes to it. Of a claim count the works that it could be tested
    with; where there is none it counts once, as not measured."""
    body, notes = [], []
    for number, claim in enumerate(seed.claims, 1):
        table = seed.table(claim.table)
        on = [wanted for wanted in claim.on if shelf.cells(wanted)] or list(claim.on[:1])
        found = [] if claim.unmeasured else [_tested(claim, table, one, shelf) for one in on]
        for turn, (wanted, (ours, judged)) in enumerate(zip(on, found, strict=False)):
            said = [str(number), claim.says] if turn == 0 else ["", ""]
            body.append([*said, _claimed(claim), f"`{wanted}`", ours, judged])
        if claim.unmeasured:
            said = [str(number), claim.says, "-", "-"]
            body.append([*said, claim.unmeasured, NOT_MEASURED])
        measured = [judged for _, judged in found if judged != NOT_MEASURED]
        verdicts += measured or [NOT_MEASURED]
        why = [text for one in claim.why if (text := filled(one, shelf, on[0], table.metric))]
        if why and len(on) > 1 and quotes(claim.why):
            why.append(f"(CPU time and requests of `{on[0]}`.)")
        if why:
            notes.append(f"{number}. {' '.join(why)}")
    titles = ["", "claim", "report", "tested with", "ours [95 %]", "verdict"]
    return [*formatting.table(titles, body), "", *notes]


def _claimed(claim: Claim) -> str:
    claimed = claim.claimed
    if claimed is None:
        return "-"
    if claimed.low is None or claimed.high is None:
        return {"more": "> 1", "less": "< 1", "equal": "= 1", "not more": "≤ 1"}[claimed.side]
    low, high = formatting.number(claimed.low), formatting.number(claimed.high)
    return low if low == high else f"{low} to {high}"


def _tested(claim: Claim, table: Table, wanted: Wanted, shelf: Shelf) -> tuple[str, str]:
    """Our figure, or why there is none, and the verdict."""
    assert claim.over is not None
    assert claim.under is not None
    assert claim.claimed is not None
    ends = []
    for side in (claim.over, claim.under):
        point = _end(side, table, wanted, shelf)
        if isinstance(point, Missing):
            return point.reason, NOT_MEASURED
        ends.append(point)
    found = shelf.ratio(ends[0], ends[1], claim.metric)
    if found is None:
        return f"no {claim.metric} in the record", NOT_MEASURED
    return ratio_text(found.estimate, found.paired), verdict(claim.claimed, found.estimate)


def _end(side: Side, table: Table, wanted: Wanted, shelf: Shelf) -> Point | Missing:
    row = table.row(side.row)
    if not row.clients:
        return Missing(row.without)
    client, place = row.clients[0], side.on or wanted
    found = shelf.find(place, client, table.metric)
    return Missing(f"{client}: {found.reason}") if isinstance(found, Missing) else found
