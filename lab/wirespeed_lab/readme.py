"""The README's tables of figures, each between its two markers, from the samples of records:
the engine's, those of whole commands over many objects, the Python package's, and the Python
package beside its peers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import checks, places, readme_peers
from .checks import METRICS, Finding
from .record import together

#: The markers' names; what is between a pair of them is ours.
ENGINE, BULK, PYTHON, PEERS = "figures", "bulk figures", "python figures", "python peers"
#: What the names of the Python package's rows begin with, and those of whole commands.
OF_PYTHON, OF_BULK = "python", "bulk"


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


def write(records: Sequence[dict], paths: Sequence[Path], readme: Path) -> None:
    """Puts each table that the records hold rows of, and the names of those records, between its
    markers, in place of what is there. Of a row in several records the last one counts."""
    text = readme.read_text()
    of_python = [row for row in together(records)["rows"] if row["id"].startswith(OF_PYTHON)]
    beside = [row for row in of_python if readme_peers.has_peers(row)]
    alone = [row for row in of_python if not readme_peers.has_peers(row)]
    bulk = [row for row in together(records)["rows"] if row["id"].startswith(OF_BULK)]
    engine = [row for row in together(records)["rows"] if row not in of_python + bulk]
    for marker, rows, lines in (
        (ENGINE, engine, table),
        (BULK, bulk, table),
        (PYTHON, alone, table),
        (PEERS, beside, readme_peers.tables),
    ):
        if rows:
            ids = {row["id"] for row in rows}
            pairs = zip(records, paths, strict=True)
            sources = [pair for pair in pairs if ids & {row["id"] for row in pair[0]["rows"]}]
            text = _put(text, marker, [*lines(rows), "", _said(sources)], readme)
    readme.write_text(text)


def _put(text: str, marker: str, lines: list[str], readme: Path) -> str:
    begin, end = f"<!-- {marker} -->\n", f"<!-- /{marker} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise NoMarkers(f"{readme} has no {begin.strip()} followed by {end}")
    return before + begin + "\n".join(lines) + "\n" + end + after


def _said(sources: list[tuple[dict, Path]]) -> str:
    links = []
    for _, path in sources:
        named = path.resolve()
        if named.is_relative_to(places.REPOSITORY):
            named = named.relative_to(places.REPOSITORY)
        links.append(f"[{path.name}]({named})")
    machine = sources[-1][0]["machine"]
    word = "Record" if len(links) == 1 else "Records"
    return f"{word}: {', '.join(links)}, {machine['cores']} cores of an {machine['cpu']}."
