"""The page as a whole. The same reports and records give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence

from . import formatting, own, repeated
from .repeated import Section
from .seeds import Seed
from .shelf import Cell, Shelf
from .verdicts import ALL, EQUAL, FACTOR

OPENING = """\
# Results

Written by `make results` from the records in [records/](records/) and the reports in
[seeds/](seeds/); `make check` says when it is stale. How it was measured is in
[METHODOLOGY.md](METHODOLOGY.md), who measured it, and what they would like to see, in
[BIAS.md](BIAS.md).
"""

CANNOT_SAY = """\
## What these numbers can't say

- How fast a client is on the reports' machines. Theirs had 2 to 72 processors and a network; ours
  are the ones above and a loopback interface, where a client has as many cores as its column
  says. What a report saw as one thread that others waited for is here CPU time.
- What a report's authors would have measured with today's versions. The clients here are current
  ones, named in each record.
- What a smaller round hides. Where a heading names a factor there are fewer objects, or smaller
  ones; parts and chunks keep their size, so that a smaller object has fewer of them.
- Anything from a rate alone. On loopback the rate of a client is mostly the inverse of its CPU
  time; on a modelled store it is mostly the model's. Ratios are within one machine.
- That two clients are the same where it says "no difference": that the interval includes 1, which
  a wide interval does more easily.
"""


def document(seeds: Sequence[Seed], shelf: Shelf) -> str:
    """The page as Markdown. Raises BadRecord and Ambiguous."""
    sections = [repeated.section(seed, shelf) for seed in seeds]
    ours, own_cells = own.section(shelf)
    cells = [cell for made in sections for cell in made.cells] + own_cells
    lines = [OPENING, "## What they rest on", "", *_records(cells), "", CANNOT_SAY]
    lines += ["## How to read verdicts", "", *_verdicts(seeds, sections), ""]
    for made in sections:
        lines += made.lines
    lines += ["## Ours: the lab's other workloads", "", *_own_opening(ours), *ours]
    return "\n".join(lines).rstrip() + "\n"


def _records(cells: Sequence[Cell]) -> list[str]:
    shelved = {cell.shelved.name: cell.shelved for cell in cells}
    if not shelved:
        return ["There are no records yet."]
    body = []
    for name, one in sorted(shelved.items()):
        environment, settings = one.record.environment, one.settings
        machine = environment["machine"]
        works = dict.fromkeys(cell.plan["workload"] for cell in one.cells)
        body.append(
            [
                f"[{name}](records/{name})",
                ", ".join(f"`{work}`" for work in works),
                f"{machine['cores']} cores of {machine['cpu']}",
                _cores(settings),
                str(machine.get("kernel", "-")),
                settings["server"] + (f", {settings['preset']}" if settings["preset"] else ""),
                f"{settings['blocks']}" + ("" if one.summary["complete"] else ", not complete"),
                str(environment["versions"].get("commit", "-"))[:10],
            ]
        )
    titles = ["record", "workloads", "machine", "client / server", "kernel", "server", "blocks"]
    return formatting.table([*titles, "commit"], body)


def _cores(settings: dict) -> str:
    sides = (len(settings["client_cores"]), len(settings["server_cores"]))
    return " / ".join(
        f"{count} core{'s' if count != 1 else ''}" if count else "-" for count in sides
    )


def _verdicts(seeds: Sequence[Seed], sections: Sequence[Section]) -> list[str]:
    body = [
        [f"[{seed.number}](#{_anchor(seed)})", seed.title]
        + [str(made.verdicts.count(one)) for one in ALL]
        for seed, made in zip(seeds, sections, strict=True)
    ]
    told = [
        f"A claim is a ratio. Ours {ALL[0]} when its 95 % interval lies on the report's side of 1 "
        f"and its median is within a factor of {FACTOR:g} of what was published; it {ALL[1]} when "
        "only the side is the same. Where the interval includes 1 there is "
        f"{ALL[2]}. Published figures within {(EQUAL - 1) * 100:.0f} % of each other claim no "
        "difference, since no report has an interval. `~` marks a ratio of rounds that were not "
        "run in turns: of two cells, or two records; its interval is wider for it and knows "
        "nothing of what the machine did in between. A claim is tested with every workload that "
        "repeats its table, and counts below as often as it could be.",
        "",
    ]
    return told + formatting.table(["", "report", *ALL], body)


def _anchor(seed: Seed) -> str:
    """As GitHub makes one of a heading."""
    kept = (c for c in f"report {seed.number}: {seed.title}".lower() if c.isalnum() or c in " -_")
    return "".join(kept).replace(" ", "-")


def _own_opening(lines: Sequence[str]) -> list[str]:
    if not lines:
        return ["No records of them yet."]
    return [
        "Sorted by CPU time, the cheapest first; an order that an interval does not separate is no "
        "order. Ratios are of CPU time, paired by block: to the raw socket loop where it took "
        "part, and to the cheapest other client, which is named.",
        "",
    ]
