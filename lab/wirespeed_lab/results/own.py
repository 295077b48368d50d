"""The section of the workloads that no report had: every cell of theirs in the records."""

from __future__ import annotations

from collections.abc import Sequence

from ..plans import load as load_workload
from ..plans import names as workloads
from ..stats import Estimate
from . import formatting, rows
from .shelf import Cell, Point, Shelf, reason


def section(shelf: Shelf) -> tuple[list[str], list[Cell]]:
    """Lines of the page, and the cells that they rest on."""
    lines: list[str] = []
    cells = _cells(shelf)
    for cell in cells:
        lines += [*_cell(cell), ""]
    return lines, cells


def _cells(shelf: Shelf) -> list[Cell]:
    """Of each cell the newest, by workload and then as the record has them."""
    newest: dict[tuple, Cell] = {}
    for record in shelf.records:
        for cell in record.cells:
            if not _of_a_report(cell.plan["workload"]):
                newest.setdefault((*_where(cell), cell.id), cell)
    return sorted(newest.values(), key=lambda cell: (cell.plan["workload"], _where(cell)))


def _where(cell: Cell) -> tuple[str, str, bool]:
    settings = cell.shelved.settings
    return settings["server"], settings["preset"] or "", settings["tls"] or cell.plan["tls"]


def _of_a_report(workload: str) -> bool:
    return workload in workloads() and load_workload(workload).seed is not None


def _cell(cell: Cell) -> list[str]:
    name = cell.shelved.name
    found = [one for one in cell.said["clients"] if one["state"] == "measured"]
    points = [Point(cell, one["client"], one) for one in found]
    cost = rows.cost_metric(cell)
    rate = rows.rate_metric(cell)
    points.sort(key=lambda point: _rank(point, cost))
    titles = ["client", rows.rate_title(rate), rows.cost_title(cost) + " [95 %]"]
    titles += ["CPU x limit", "CPU x best peer", "memory, MiB", "requests each", "connections"]
    body = [
        [
            f"`{point.client}`",
            rows.figure(point, rate),
            rows.figure(point, cost),
            _ratio(point, "limit", cost),
            _ratio(point, "best peer", cost),
            rows.figure(point, "peak_memory_bytes"),
            rows.requests(point),
            rows.connections(point),
            "; ".join(rows.remarks(point)) or "-",
        ]
        for point in points
    ]
    lines = [f"### {_title(cell)}", "", f"{_about(cell)} [{name}](records/{name})", ""]
    lines += formatting.table([*titles, "remarks"], body) if body else ["No client was measured."]
    return [*lines, *_best(points, cost), *rows.absent(_missing(cell))]


def _best(points: Sequence[Point], metric: str) -> list[str]:
    """Who the best peer is: one client for all others, and another for itself."""
    to: dict[str, list[str]] = {}
    for point in points:
        for found in point.said["ratios"]:
            if (found["role"], found["metric"]) == ("best peer", metric):
                to.setdefault(found["to"], []).append(point.client)
    if not to:
        return []
    most = max(to, key=lambda name: len(to[name]))
    told = [f"`{most}`"]
    told += [f"for `{who}` it is `{name}`" for name in to if name != most for who in to[name]]
    return ["", f"Best peer: {', '.join(told)}."]


def _title(cell: Cell) -> str:
    server, preset, tls = _where(cell)
    words = [f"`{cell.id}`"]
    words += [f"on the modelled {rows.preset(cell)}"] if preset else []
    words += [f"on {server}"] if server != "origin" else []
    words += ["over TLS"] if tls else []
    return " ".join(words)


def _about(cell: Cell) -> str:
    said, plan = cell.said, cell.plan
    title = load_workload(said["workload"]).title if said["workload"] in workloads() else "Own work"
    kind = [f"sink {said['sink']}"] if said["operation"] == "get" else [said["operation"]]
    kind += [said["mode"]] if said["mode"] != "warm" else []
    kind += rows.setting(cell)
    if plan["checksums"] is not None:
        kind.append("with checksums" if plan["checksums"] else "without checksums")
    return f"{title[0].upper()}{title[1:]} ({', '.join(kind)}); {rows.scale(cell)}."


def _rank(point: Point, cost: str) -> tuple[bool, float, str]:
    found = point.estimate(cost)
    return found is None, found.median if found else 0.0, point.client


def _ratio(point: Point, role: str, metric: str) -> str:
    for found in point.said["ratios"]:
        if (found["role"], found["metric"]) == (role, metric):
            return formatting.ratio(_estimate(found))
    return "-"


def _estimate(found: dict) -> Estimate:
    return Estimate(found["median"], found["low"], found["high"], found["count"])


def _missing(cell: Cell) -> list[tuple[str, str]]:
    return [
        (one["client"], reason(one)) for one in cell.said["clients"] if one["state"] != "measured"
    ]
