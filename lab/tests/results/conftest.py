"""Small records of workloads of the lab, and small reports, without measuring anything."""

import pytest
from wirespeed_lab.plans import load
from wirespeed_lab.records import Journal, Record, summarise

REPORT = """
title = "A report"
date = "a day"
machine = "a machine"
about = "Moves objects."

[[wrong]]
what = "Sinks"
text = "They are mixed."
here = ["Ours costs {core_s_per_gib:minio-go@seed004-get} core-s/GiB."]

[[tables]]
id = "get"
caption = "Downloads"
quantity = "download rate"
unit = "GB/s"
beside = ["limit"]
repeats = [{ workload = "seed004-get" }]
rows = [
    { name = "warp", value = 10.0, clients = ["minio-go"] },
    { name = "sdk", value = 5.0, clients = ["rust-sdk"] },
    { name = "other", value = 4.0, clients = ["boto3-get"] },
    { name = "gone", value = 3.0, without = "nobody has it" },
]

[[claims]]
says = "The SDK is half as fast as warp"
table = "get"
over = "sdk"
under = "warp"
why = [
    "It spends {core_s_per_gib:rust-sdk/minio-go} of its CPU time.",
    "This is left out: {core_s_per_gib:s3fs}.",
]

[[claims]]
says = "The other is slower still"
table = "get"
over = "other"
under = "sdk"
"""


def a_round(cell, client, block, seconds, core_s=0.1):
    size = sum(item["size"] for item in cell["plan"]["work"])
    count = len(cell["plan"]["work"])
    return {
        "line": "round",
        "cell": cell["id"],
        "client": client,
        "block": block,
        "position": 0,
        "attempt": 0,
        "process": 1,
        "phase": "steady",
        "seconds": seconds,
        "outside_s": seconds,
        "bytes": size,
        "objects": count,
        "errors": 0,
        "user_s": core_s / 2,
        "system_s": core_s / 2,
        "peak_memory_bytes": 1 << 20,
        "storage_read_bytes": 0,
        "storage_written_bytes": 0,
        "server_core_s": 0.05,
        "counts": {"requests": count, "connections_used": 4},
        "noise": {"steal": 0.0, "other": 0.0, "mhz": None, "load": 0.0},
        "disturbed": [],
        "faults": [],
        "effective": {"concurrency": cell["plan"]["concurrency"]},
        "error_texts": {},
        "samples": {
            "start": [0] * count,
            "first": [5] * count,
            "end": [100] * count,
            "worker": [0] * count,
        },
    }


def a_record(
    folder, seconds, workload="seed004-get", scale=0.001, failed=(), point=None, **changed
):
    """``seconds`` of a round by client; ``failed`` are texts by client, ``point`` is of a sweep."""
    plan = load(workload).compile(scale, **(point or {}))
    words = [f"{name}={value}" for name, value in (point or {}).items()]
    cell = {"id": " ".join([workload, *words]), "plan": plan.as_json()}
    settings = {
        "server": "origin",
        "preset": None,
        "tls": False,
        "write_to": None,
        "blocks": 10,
        "repeats": 1,
        "server_cores": [0],
        "client_cores": [1],
    }
    names = [*seconds, *dict(failed)]
    said = {
        "schema": 1,
        "started": changed.pop("started", "2026-01-01T00:00:00+00:00"),
        "command": ["run", workload],
        "seed": 1,
        "settings": {**settings, **changed},
        "cells": [cell],
        "clients": [
            {
                "client": name,
                "id": name,
                "title": name,
                "language": "c",
                "family": name,
                "command": [name],
                "packages": {},
            }
            for name in names
        ],
        "absent": [{"client": "boto3-get", "reason": "not installed"}],
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
        for client, text in dict(failed).items():
            event = {"line": "event", "event": "failed", "cell": cell["id"], "client": client}
            journal.append({**event, "text": text})
        for block in range(1, 11):
            for client, each in seconds.items():
                journal.append(a_round(cell, client, block, each * (1 + block / 1000)))
    record.write_summary(summarise(record.plan, record.lines()))
    return record


class Made:
    report = REPORT
    record = staticmethod(a_record)


@pytest.fixture
def made():
    """``made.record`` builds a record, ``made.report`` is the text of a report's file."""
    return Made
