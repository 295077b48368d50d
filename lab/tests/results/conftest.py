"""Small records of workloads of the lab, and small reports, without measuring anything."""

import lab_records
import pytest
from wirespeed_lab.plans import load

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


def a_round(cell, client, block, seconds):
    work = cell["plan"]["work"]
    size = sum(item["size"] for item in work)
    asked = {"concurrency": cell["plan"]["concurrency"]}
    return lab_records.round_line(
        cell["id"], client, block, seconds, 0.1, len(work), size, effective=asked
    )


def a_record(
    folder, seconds, workload="seed004-get", scale=0.001, failed=(), point=None, **changed
):
    """``seconds`` of a round by client; ``failed`` are texts by client, ``point`` is of a sweep."""
    plan = load(workload).compile(scale, **(point or {}))
    words = [f"{name}={value}" for name, value in (point or {}).items()]
    cell = {"id": " ".join([workload, *words]), "plan": plan.as_json()}
    lines = [
        {"line": "event", "event": "failed", "cell": cell["id"], "client": client, "text": text}
        for client, text in dict(failed).items()
    ]
    lines += [
        a_round(cell, client, block, each * (1 + block / 1000))
        for block in range(1, 11)
        for client, each in seconds.items()
    ]
    clients = [*seconds, *dict(failed)]
    return lab_records.write(
        folder, cell, clients, lines, {"boto3-get": "not installed"}, **changed
    )


class Made:
    report = REPORT
    record = staticmethod(a_record)


@pytest.fixture
def made():
    """``made.record`` builds a record, ``made.report`` is the text of a report's file."""
    return Made
