"""What is computed of one round, and which of it is shown.

Owns names, units and which way is better. A metric that a round can't have (bytes of a listing,
requests at a server that doesn't count) is left out, never zero.
"""

from __future__ import annotations

import dataclasses

from . import columns

GIB = 1 << 30


@dataclasses.dataclass(frozen=True)
class Metric:
    """``unit`` is how a person reads it, after division by ``divide``."""

    name: str
    title: str
    unit: str
    divide: float = 1.0
    more_is_better: bool = False


METRICS = (
    Metric("bytes_per_s", "rate", "GB/s", 1e9, True),
    Metric("objects_per_s", "objects", "/s", 1, True),
    Metric("seconds", "seconds", "s"),
    Metric("core_s_per_gib", "CPU", "core-s/GiB"),
    Metric("user_s_per_gib", "user", "core-s/GiB"),
    Metric("system_s_per_gib", "system", "core-s/GiB"),
    Metric("core_us_per_object", "CPU", "core-µs/object"),
    Metric("peak_memory_bytes", "memory", "MiB", 1 << 20),
    Metric("first_done_s", "first done", "ms", 1e-3),
    Metric("last_done_s", "last done", "s"),
    Metric("requests", "requests", ""),
    Metric("connections", "connections", ""),
    Metric("server_core_s_per_gib", "server CPU", "core-s/GiB"),
    Metric("storage_written_bytes", "written", "MiB", 1 << 20),
)
BY_NAME = {metric.name: metric for metric in METRICS}


def of_round(line: dict) -> dict[str, float]:
    """The metrics of a round, in seconds and bytes, by name."""
    seconds, objects, gib = line["seconds"], line["objects"], line["bytes"] / GIB
    core_s = line["user_s"] + line["system_s"]
    found: dict[str, float | None] = {
        "seconds": seconds,
        "bytes_per_s": line["bytes"] / seconds if seconds and gib else None,
        "objects_per_s": objects / seconds if seconds and objects else None,
        "core_s_per_gib": core_s / gib if gib else None,
        "user_s_per_gib": line["user_s"] / gib if gib else None,
        "system_s_per_gib": line["system_s"] / gib if gib else None,
        "core_us_per_object": core_s / objects * 1e6 if objects else None,
        "peak_memory_bytes": line["peak_memory_bytes"],
        "storage_written_bytes": line["storage_written_bytes"] or None,
        "requests": line["counts"].get("requests"),
        "connections": line["counts"].get("connections_used"),
    }
    if line["server_core_s"] is not None and gib:
        found["server_core_s_per_gib"] = line["server_core_s"] / gib
    if line["samples"]["start"]:
        found["first_done_s"] = columns.first_done_us(line["samples"]) / 1e6
        found["last_done_s"] = columns.last_done_us(line["samples"]) / 1e6
    return {name: float(value) for name, value in found.items() if value is not None}


def costs(cell: dict) -> tuple[str, ...]:
    """By what clients are compared in a cell: CPU cost and time."""
    return ("core_s_per_gib" if cell["bytes"] else "core_us_per_object", "seconds")
