"""Records made by hand, without measuring anything."""

import pytest
from wirespeed_lab.plans import Item, Plan
from wirespeed_lab.records import Journal, Record, summarise

MIB = 1 << 20


def a_round(client, block, core_s=0.1, seconds=0.5, **changed):
    line = {
        "line": "round",
        "cell": "tiny",
        "client": client,
        "block": block,
        "position": 0,
        "attempt": 0,
        "process": 1,
        "phase": "steady",
        "seconds": seconds,
        "outside_s": seconds,
        "bytes": 4 * MIB,
        "objects": 4,
        "errors": 0,
        "user_s": core_s / 4,
        "system_s": core_s * 3 / 4,
        "peak_memory_bytes": MIB,
        "storage_read_bytes": 0,
        "storage_written_bytes": 0,
        "server_core_s": 0.05,
        "counts": {"requests": 4},
        "noise": {"steal": 0.0, "other": 0.0, "mhz": None, "load": 0.0},
        "disturbed": [],
        "faults": [],
        "effective": {"concurrency": 4},
        "error_texts": {},
        "samples": {
            "start": [0, 10, 20, 30],
            "first": [5, 5, None, 5],
            "end": [100, 100, 200, 100 + block],
            "worker": [0, 0, 0, 0],
        },
    }
    return {**line, **changed}


def an_event(event, client=None, text="", **more):
    where = {"cell": "tiny" if client else None, "client": client}
    return {"line": "event", "event": event, **where, "text": text, **more}


def a_record(folder, lines, clients=("limit", "one", "two"), **changed):
    work = tuple(Item(f"a/{n:08d}", MIB) for n in range(4))
    plan = Plan(**{"workload": "tiny", "operation": "get", "sink": "discard", **changed}, work=work)
    said = {
        "schema": 1,
        "started": "2026-01-01T00:00:00+00:00",
        "command": ["run", "tiny"],
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
        },
        "cells": [{"id": "tiny", "plan": plan.as_json()}],
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
        "absent": [{"client": "warp", "reason": "not to be had"}],
    }
    environment = {
        "schema": 1,
        "machine": {"cpu": "A CPU", "cores": 2},
        "versions": {},
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


class Made:
    round = staticmethod(a_round)
    event = staticmethod(an_event)
    record = staticmethod(a_record)


@pytest.fixture
def made():
    """Builders: ``made.round``, ``made.event``, ``made.record``."""
    return Made
