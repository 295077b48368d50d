"""Whether a record holds together: its files follow their schemas, and its summary is what its
samples say. Owns the comparison; changes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

from . import histograms
from .record import BadRecord, Record
from .summary import summarise

#: Intervals come from a random generator and a library that may round otherwise elsewhere.
TOLERANCE = 1e-6
#: Differences that are worth printing; a summary of another plan differs everywhere.
MOST = 50


def verify(record: Record) -> list[str]:
    """What is wrong with a record, in words; empty when nothing is."""
    try:
        plan, lines = record.plan, list(record.lines(checked=True))
        _ = record.environment
        kept = record.summary
    except BadRecord as error:
        return [str(error)]
    if kept is None:
        return [f"{record.folder} has no summary: the session did not come to its end"]
    cells = {cell["id"] for cell in plan["cells"]}
    clients = {client["client"] for client in plan["clients"]}
    strangers = [
        f"samples.jsonl.gz, line {n}: {line['cell']}, {line['client']} is not in the plan"
        for n, line in enumerate(lines, 1)
        if line["line"] == "round" and (line["cell"] not in cells or line["client"] not in clients)
    ]
    found = strangers + list(differences(kept, summarise(plan, lines)))
    return shortened(found)


def shortened(found: list[str]) -> list[str]:
    """As many complaints as are worth printing."""
    return found[:MOST] + ([f"and {len(found) - MOST} more"] if len(found) > MOST else [])


def differences(
    kept: object, computed: object, where: str = "summary", tolerance: float = TOLERANCE
) -> Iterator[str]:
    """Where two values differ, by place. Whole numbers must be equal, others up to this share."""
    match kept, computed:
        case dict(), dict():
            for name in sorted(kept.keys() | computed.keys()):
                if name not in kept or name not in computed:
                    has = "kept" if name in kept else "computed"
                    yield f"{where}.{name} is only in what is {has}"
                elif name == "histogram":
                    if not histograms.same(kept[name], computed[name]):
                        yield f"{where}.{name} holds other counts than the samples"
                else:
                    at = f"{where}.{name}"
                    yield from differences(kept[name], computed[name], at, tolerance)
        case list(), list():
            if len(kept) != len(computed):
                yield f"{where} has {len(kept)} entries, the samples say {len(computed)}"
            for n, (one, other) in enumerate(zip(kept, computed, strict=False)):
                yield from differences(one, other, f"{where}[{_label(one, n)}]", tolerance)
        case (float(), int() | float()) | (int(), float()):
            if not math.isclose(kept, computed, rel_tol=tolerance, abs_tol=min(tolerance, 1e-12)):
                yield f"{where} is {kept}, the samples say {computed}"
        case _ if kept != computed:
            yield f"{where} is {kept!r}, the samples say {computed!r}"


def _label(entry: object, n: int) -> object:
    if not isinstance(entry, dict):
        return n
    return entry.get("id") or entry.get("client") or entry.get("name") or n
