"""What a row of figures says of one client at one cell, in whatever table it stands."""

from __future__ import annotations

from collections.abc import Iterable

from ..records.metrics import BY_NAME
from . import formatting
from .shelf import Cell, Point

#: Objects below this many bytes are priced each, larger ones by the GiB.
SMALL = 1 << 20
PER_GIB, PER_OBJECT = "core_s_per_gib", "core_us_per_object"


def cost_metric(cell: Cell) -> str:
    """By which metric CPU time is told in a cell."""
    said = cell.said
    return PER_GIB if said["bytes"] >= SMALL * max(1, said["objects"]) else PER_OBJECT


def cost_title(metric: str) -> str:
    return "CPU, " + ("core-s/GiB" if metric == PER_GIB else "core-µs each")


def rate_metric(cell: Cell) -> str:
    return "bytes_per_s" if cost_metric(cell) == PER_GIB else "objects_per_s"


def rate_title(metric: str) -> str:
    unit = BY_NAME[metric].unit
    return "objects/s" if unit == "/s" else unit


def figure(point: Point, metric: str) -> str:
    """A median with its interval, in the unit in which people read it."""
    estimate = point.estimate(metric)
    return formatting.interval(estimate, BY_NAME[metric].divide) if estimate else "-"


def requests(point: Point) -> str:
    """Requests for each object, as the server counted them."""
    estimate = point.estimate("requests")
    if estimate is None:
        return "-"
    return formatting.number(estimate.median / max(1, point.cell.said["objects"]))


def connections(point: Point) -> str:
    """Connections that carried requests in a round."""
    estimate = point.estimate("connections")
    return f"{estimate.median:.0f}" if estimate else "-"


def setting(cell: Cell) -> list[str]:
    """The point of a sweep at which this is."""
    plan = cell.plan
    found = [f"{plan['concurrency']} in flight"] if plan["concurrency"] else []
    found += [f"parts of {formatting.bytes_text(plan['part_size'])}"] if plan["part_size"] else []
    return found


def remarks(point: Point) -> list[str]:
    """What has to be known before the row is believed."""
    said, asked = point.said, point.cell.plan["concurrency"]
    found = [f"IMPOSSIBLE: {text}" for text in said["impossible"]]
    effective = said["effective"].get("concurrency")
    if asked and effective not in (None, asked):
        found.append(f"{effective} in flight")
    if said["errors"]:
        found.append(f"{said['errors']} errors")
    if point.gaps:
        found.append(f"no figure at {len(point.gaps)} points of the sweep ({point.gaps[0]})")
    if said["still_disturbed"]:
        found.append(f"{said['still_disturbed']} of {said['rounds']} rounds disturbed")
    return found


def scale(cell: Cell) -> str:
    """How much a round is, and of how much."""
    said = cell.said
    things = "keys" if said["operation"] == "list" else "objects"
    count = f"{said['objects']:,} {things if said['objects'] != 1 else things[:-1]}"
    moved = f", {formatting.bytes_text(said['bytes'])}" if said["bytes"] else ""
    shrunk = "" if said["scale"] == 1 else f", {said['scale']:g} of its full size"
    return f"{count}{moved} a round{shrunk}"


def preset(cell: Cell) -> str:
    """The modelled store, and by what it was scaled to fit the machine."""
    said = cell.shelved.preset or {}
    found = [f"`{cell.shelved.settings['preset']}`"]
    if said.get("bytes_factor", 1) != 1:
        found.append(f"rates x {said['bytes_factor']:g}")
    if said.get("burst_factor", 1) != 1:
        found.append(f"length of bursts x {said['burst_factor']:.3g}")
    return found[0] + (f" ({', '.join(found[1:])})" if found[1:] else "")


def absent(missing: Iterable[tuple[str, str]]) -> list[str]:
    """Lines on clients without a row, by reason; none where there are none."""
    by_reason: dict[str, list[str]] = {}
    for client, why in missing:
        by_reason.setdefault(why, []).append(f"`{client}`")
    told = [f"- {', '.join(names)}: {why}" for why, names in by_reason.items()]
    return ["", "Not in the table:", "", *told] if told else []
