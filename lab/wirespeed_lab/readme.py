"""Writes the tables of docs/benchmarks.md and of the README's first page from the samples of
records, each between its two markers.

docs/benchmarks.md has the engine's figures, those of whole commands over many objects, those of the
Python package, and the Python package beside its peers. The first page has absolute rates and costs
of a few rows, beside the raw socket and the cheapest peer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from . import checks, places, readme_peers
from .checks import METRICS, Finding
from .record import together

#: The markers' names; what is between a pair of them is ours.
ENGINE, BULK, PYTHON, PEERS = "figures", "bulk figures", "python figures", "python peers"
FRONT_PAGE = "front page"
#: What the names of the Python package's rows begin with, and those of whole commands.
OF_PYTHON, OF_BULK = "python", "bulk"


class FrontRow(NamedTuple):
    """A row of the first page's table."""

    row: str
    """The id of the row in a record."""
    work: str
    metric: str
    """The cost, one of `checks.METRICS`."""


FRONT_ROWS = (
    FrontRow("get-memory", "Rust: GET of 1 GiB into memory", "core_s_per_gib"),
    FrontRow("put-memory", "Rust: PUT of 1 GiB from memory", "core_s_per_gib"),
    FrontRow("small-objects", "Rust: GET of 20,000 objects of 64 KiB", "core_us_per_request"),
    FrontRow("python-peers-other", "Python: GET of 2 GiB into memory", "core_s_per_gib"),
    FrontRow("python-list", "Python: list of 400,000 keys", "core_us_per_key"),
    FrontRow("bulk-tmpfs-all", "Shell: `cp` of 10,000 objects of 1 MiB", "core_us_per_object"),
)


class NoMarkers(Exception):
    """The file has no place for the table; the text says what is missing."""


def table(rows: list[dict]) -> list[str]:
    """The lines of the table: one for each figure that was asked for."""
    lines = ["| work | figure | over | asked | measured [95 %] |", "|---|---|---|---|---|"]
    for row in rows:
        if "bounds" in row:
            lines += [_bound(row, bound) for bound in row["bounds"]]
            continue
        if "facts" in row:
            lines += [_fact(row, fact) for fact in row["facts"]]
            continue
        for number, finding in enumerate(checks.judge_all(row)):
            lines.append(_line(row["title"] if number == 0 else "the same", finding))
    return lines


def _line(title: str, finding: Finding) -> str:
    check, estimate = finding.check, finding.estimate
    unit = METRICS[check.metric][1]
    figure = unit if not check.minus else f"{unit} beyond {check.minus}"
    if check.of:
        figure += f", {check.of}"
    over = " + ".join(finding.over) or "-"
    if estimate is None:
        return f"| {title} | {figure} | {over} | {check.asked} | not run |"
    measured = f"{estimate.median:.2f} [{estimate.low:.2f}..{estimate.high:.2f}]"
    if check.kind == "difference":
        measured = f"{estimate.median:+.1f} [{estimate.low:+.1f}..{estimate.high:+.1f}]"
    elif check.asked.margin <= 0.1:
        measured = f"{estimate.median:.3f} [{estimate.low:.3f}..{estimate.high:.3f}]"
    noted = "" if finding.verdict == "met" else f", {finding.verdict}"
    return f"| {title} | {figure} | {over} | {check.asked} | {measured}{noted} |"


def _bound(row: dict, bound: dict) -> str:
    peak, most = bound["peak_rss_bytes"] / (1 << 20), bound["at_most_bytes"] / (1 << 20)
    noted = "" if peak <= most else ", missed"
    title = f"{row['title']}: {bound['what']}"
    return f"| {title} | peak MiB | | ≤ {most:,.0f} | {peak:,.0f}{noted} |"


def _fact(row: dict, fact: dict) -> str:
    value, most = fact["measured"], fact["at_most"]
    shown = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3f}"
    noted = "" if value <= most else ", missed"
    title = f"{row['title']}: {fact['what']}"
    return f"| {title} | {fact['unit']} | | ≤ {most:,.4g} | {shown}{noted} |"


def write(
    records: Sequence[dict], paths: Sequence[Path], benchmarks: Path, front_page: Path
) -> None:
    """Puts each table that the records hold rows of, and the names of those records, between its
    markers, in place of what is there. Of a row in several records the last one counts. The first
    page's table is written when the records hold all of its rows."""
    text = benchmarks.read_text()
    rows = together(records)["rows"]
    of_python = [row for row in rows if row["id"].startswith(OF_PYTHON)]
    beside = [row for row in of_python if readme_peers.has_peers(row)]
    alone = [row for row in of_python if not readme_peers.has_peers(row)]
    bulk = [row for row in rows if row["id"].startswith(OF_BULK)]
    engine = [row for row in rows if row not in of_python + bulk]
    for marker, rows_of_table, lines in (
        (ENGINE, engine, table),
        (BULK, bulk, table),
        (PYTHON, alone, table),
        (PEERS, beside, readme_peers.tables),
    ):
        if rows_of_table:
            sources = _sources(rows_of_table, records, paths)
            said = _said(sources, benchmarks)
            text = _put(text, marker, [*lines(rows_of_table), "", said], benchmarks)
    benchmarks.write_text(text)
    by_id = {row["id"]: row for row in rows}
    if all(wanted.row in by_id for wanted in FRONT_ROWS):
        lines = front_table(by_id)
        front_page.write_text(_put(front_page.read_text(), FRONT_PAGE, lines, front_page))


def front_table(rows: Mapping[str, dict]) -> list[str]:
    """The lines of the first page's table: rate and cost of wirespeed, of the raw socket and of the
    cheapest peer, each the median over the rounds of one record."""
    lines = ["| work | wirespeed | raw socket | best peer |", "|---|---|---|---|"]
    for wanted in FRONT_ROWS:
        row = rows[wanted.row]
        peer = checks.cheapest(row, "peer", wanted.metric)
        cells = [
            _cell(row, checks.has_role(row, "engine")[0], wanted.metric),
            _cell(row, checks.cheapest(row, "limit", wanted.metric), wanted.metric),
            _cell(row, peer, wanted.metric) + (f" ({peer})" if peer else ""),
        ]
        lines.append(f"| {wanted.work} | {' | '.join(cells)} |")
    return lines


def _cell(row: dict, contender: str | None, metric: str) -> str:
    if contender is None:
        return ""
    cost = checks.level(row, contender, metric)
    if cost is None:
        return "failed"
    unit = METRICS[metric][1]
    return f"{readme_peers.rate(row, contender)}, {readme_peers.short(cost.median)} {unit}"


def _sources(
    rows: list[dict], records: Sequence[dict], paths: Sequence[Path]
) -> list[tuple[dict, Path]]:
    ids = {row["id"] for row in rows}
    pairs = zip(records, paths, strict=True)
    return [pair for pair in pairs if ids & {row["id"] for row in pair[0]["rows"]}]


def _put(text: str, marker: str, lines: list[str], page: Path) -> str:
    begin, end = f"<!-- {marker} -->\n", f"<!-- /{marker} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise NoMarkers(f"{page} has no {begin.strip()} followed by {end}")
    return before + begin + "\n".join(lines) + "\n" + end + after


def _said(sources: list[tuple[dict, Path]], page: Path) -> str:
    links = []
    for _, path in sources:
        named = path.resolve()
        if named.is_relative_to(places.REPOSITORY):
            named = os.path.relpath(named, page.resolve().parent)
        links.append(f"[{path.name}]({named})")
    machine = sources[-1][0]["machine"]
    word = "Record" if len(links) == 1 else "Records"
    return f"{word}: {', '.join(links)}, {machine['cores']} cores of an {machine['cpu']}."
