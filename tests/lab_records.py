"""Records of the lab made by hand, without measuring anything."""

from wirespeed_lab.records import Journal, Record, summarise


def round_line(cell, client, block, seconds, core_s, objects, size, **changed):
    """A round of ``objects`` objects, ``size`` bytes in all, that nothing went wrong in."""
    line = {
        "line": "round",
        "cell": cell,
        "client": client,
        "block": block,
        "position": 0,
        "attempt": 0,
        "process": 1,
        "phase": "steady",
        "seconds": seconds,
        "outside_s": seconds,
        "bytes": size,
        "objects": objects,
        "errors": 0,
        "user_s": core_s / 4,
        "system_s": core_s * 3 / 4,
        "peak_memory_bytes": 1 << 20,
        "storage_read_bytes": 0,
        "storage_written_bytes": 0,
        "server_core_s": 0.05,
        "counts": {"requests": objects, "connections_used": 4},
        "noise": {"steal": 0.0, "other": 0.0, "mhz": None, "load": 0.0},
        "disturbed": [],
        "faults": [],
        "effective": {"concurrency": 4},
        "error_texts": {},
        "samples": {
            "start": [0] * objects,
            "first": [5] * objects,
            "end": [100] * objects,
            "worker": [0] * objects,
        },
    }
    return {**line, **changed}


def write(folder, cell, clients, lines, absent, **settings):
    """A record of one cell, ``{"id", "plan"}``, whose samples are ``lines``."""
    said = {
        "schema": 1,
        "started": settings.pop("started", "2026-01-01T00:00:00+00:00"),
        "command": ["run", cell["id"]],
        "seed": 1,
        "settings": {
            "server": "origin",
            "preset": None,
            "tls": False,
            "write_to": None,
            "blocks": 10,
            "repeats": 1,
            "server_cores": [0],
            "client_cores": [1],
            **settings,
        },
        "cells": [cell],
        "clients": [
            {
                "client": name,
                "id": name.partition("#")[0],
                "title": name,
                "language": "c",
                "family": name,
                "command": [name],
                "packages": {},
            }
            for name in clients
        ],
        "absent": [{"client": name, "reason": reason} for name, reason in absent.items()],
    }
    environment = {
        "schema": 1,
        "machine": {"cpu": "A CPU", "cores": 2, "kernel": "6.1"},
        "versions": {"commit": "0123456789abcdef"},
        "measuring": {"cpu": "proc"},
        "cores": {"server": [0], "client": [1], "why": None},
        "noise": {},
        "notes": [],
    }
    record = Record.create(folder, said, environment)
    with Journal(record.samples) as journal:
        for line in lines:
            journal.append(line)
    record.write_summary(summarise(record.plan, record.lines()))
    return record
