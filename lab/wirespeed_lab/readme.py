"""The README's table of figures, between its two markers, from a record's samples."""

from __future__ import annotations

from pathlib import Path

from . import checks, places
from .checks import METRICS, Finding

BEGIN, END = "<!-- figures -->\n", "<!-- /figures -->"


class NoMarkers(Exception):
    """The file has no place for the table; the text says what is missing."""


def table(record: dict) -> list[str]:
    """The lines of the table: one for each figure that was asked for."""
    lines = ["| work | figure | over | asked | measured [95 %] |", "|---|---|---|---|---|"]
    for row in record["rows"]:
        if "bounds" in row:
            lines += [_bound(row, bound) for bound in row["bounds"]]
            continue
        for number, finding in enumerate(checks.judge_all(row)):
            lines.append(_line(row["title"] if number == 0 else "the same", finding))
    return lines


def _line(title: str, finding: Finding) -> str:
    check, estimate = finding.check, finding.estimate
    unit = METRICS[check.metric][1]
    figure = unit if not check.minus else f"{unit} beyond {check.minus}"
    over = " + ".join(finding.over) or "-"
    if estimate is None:
        return f"| {title} | {figure} | {over} | {check.asked} | not run |"
    measured = f"{estimate.median:.2f} [{estimate.low:.2f}..{estimate.high:.2f}]"
    noted = "" if finding.verdict == "met" else f", {finding.verdict}"
    return f"| {title} | {figure} | {over} | {check.asked} | {measured}{noted} |"


def _bound(row: dict, bound: dict) -> str:
    peak, most = bound["peak_rss_bytes"] / (1 << 20), bound["at_most_bytes"] / (1 << 20)
    noted = "" if peak <= most else ", missed"
    title = f"{row['title']}: {bound['what']}"
    return f"| {title} | peak MiB | | ≤ {most:,.0f} | {peak:,.0f}{noted} |"


def write(record: dict, path: Path, readme: Path) -> None:
    """Puts the table and the record's name between the markers, in place of what is there."""
    text = readme.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise NoMarkers(f"{readme} has no {BEGIN.strip()} followed by {END}")
    machine = record["machine"]
    named = path.resolve()
    if named.is_relative_to(places.REPOSITORY):
        named = named.relative_to(places.REPOSITORY)
    said = f"Record: [{path.name}]({named}), {machine['cores']} cores of an {machine['cpu']}."
    body = "\n".join([*table(record), "", said])
    readme.write_text(f"{before}{BEGIN}{body}\n{END}{after}")
