"""What samples say, and when a record is not what its samples say."""

import copy
import datetime
import io
import json

import pytest
from rich.console import Console
from wirespeed_lab.command import tables
from wirespeed_lab.records import BadRecord, Record, folder_name, verify
from wirespeed_lab.records.comparing import between, unpaired, within


def lines_of(made, **costs):
    """Ten blocks of every client, each a little dearer than the block before."""
    return [
        made.round(client, block, core_s=cost * (1 + block / 100))
        for block in range(1, 11)
        for client, cost in costs.items()
    ]


def client_in(record, name):
    return next(said for said in record.summary["cells"][0]["clients"] if said["client"] == name)


def ratio(record, name, role, metric="core_s_per_gib"):
    return next(
        found
        for found in client_in(record, name)["ratios"]
        if (found["role"], found["metric"]) == (role, metric)
    )


def test_ratios_are_paired_to_the_limit_and_the_best_peer(tmp_path, made):
    record = made.record(tmp_path / "r", lines_of(made, limit=0.1, one=0.2, two=0.3))
    assert ratio(record, "one", "limit")["median"] == pytest.approx(2.0)
    assert ratio(record, "two", "best peer")["to"] == "one"
    assert ratio(record, "two", "best peer")["median"] == pytest.approx(1.5)
    assert ratio(record, "one", "best peer")["to"] == "two"
    assert ratio(record, "one", "limit")["differs"]
    assert not ratio(record, "one", "limit", "seconds")["differs"]
    assert client_in(record, "limit")["ratios"] == []
    assert client_in(record, "one")["metrics"]["core_s_per_gib"]["count"] == 10
    assert client_in(record, "warp")["reason"] == "not to be had"


def test_too_few_rounds_are_no_difference(tmp_path, made):
    lines = [
        made.round(name, block, cost)
        for block in (1, 2, 3)
        for name, cost in (("limit", 0.1), ("one", 0.2))
    ]
    record = made.record(tmp_path / "r", lines)
    assert ratio(record, "one", "limit")["median"] == pytest.approx(2.0)
    assert not ratio(record, "one", "limit")["differs"]


def test_a_repeat_counts_in_place_of_the_disturbed_round(tmp_path, made):
    lines = [
        made.round("one", 1, 9.0, disturbed=["steal 9%"]),
        made.round("one", 1, 0.1, attempt=1),
        made.round("one", 0, 5.0, phase="first"),
    ]
    said = client_in(made.record(tmp_path / "r", lines), "one")
    assert said["metrics"]["core_s_per_gib"]["median"] == pytest.approx(25.6)
    assert (said["rounds"], said["disturbed"], said["still_disturbed"]) == (1, 1, 0)
    assert said["first_round"]["core_s_per_gib"] == pytest.approx(1280)


def test_a_rate_above_the_limits_is_impossible(tmp_path, made):
    lines = [
        made.round(name, block, seconds=seconds)
        for block in range(1, 6)
        for name, seconds in (("limit", 0.5), ("one", 0.4), ("two", 0.5))
    ]
    record = made.record(tmp_path / "r", lines)
    assert "above the limit's best" in client_in(record, "one")["impossible"][0]
    assert client_in(record, "two")["impossible"] == []


def test_outliers_are_marked_and_kept(tmp_path, made):
    lines = lines_of(made, one=0.1)
    lines[4]["seconds"] = 50.0
    lines[5]["seconds"], lines[6]["seconds"] = 0.51, 0.49
    lines[7]["seconds"], lines[8]["seconds"], lines[9]["seconds"] = 0.52, 0.48, 0.47
    lines[3]["seconds"] = 0.53
    said = client_in(made.record(tmp_path / "r", lines), "one")
    assert {"block": 5, "metric": "seconds", "value": 50.0} in said["outliers"]
    assert said["rounds"] == 10


def test_latencies_of_all_rounds_are_merged(tmp_path, made):
    said = client_in(made.record(tmp_path / "r", lines_of(made, one=0.1)), "one")
    assert said["latency"]["count"] == 40
    assert said["latency"]["p50_s"] == pytest.approx(104e-6, rel=0.05)
    assert said["latency"]["max_s"] == pytest.approx(200e-6, rel=0.01)
    assert said["first_byte"]["count"] == 30
    assert said["metrics"]["first_done_s"]["median"] == pytest.approx(100e-6)
    assert said["metrics"]["last_done_s"]["median"] == pytest.approx(220e-6)


def test_samples_that_stand_for_many_say_nothing_of_latency(tmp_path, made):
    samples = {"start": [0], "first": [None], "end": [900], "worker": [None], "count": [4]}
    record = made.record(tmp_path / "r", [made.round("one", 1, samples=samples)])
    assert client_in(record, "one")["latency"] is None
    assert client_in(record, "one")["metrics"]["objects_per_s"]["median"] == 8


def test_a_disqualified_client_is_in_no_ratio(tmp_path, made):
    lines = lines_of(made, limit=0.1, one=0.2, two=0.15)
    lines.append(made.event("disqualified", "two", "item 0 has wrong bytes"))
    record = made.record(tmp_path / "r", lines)
    assert client_in(record, "two")["state"] == "disqualified"
    assert client_in(record, "two")["metrics"]
    assert [found["to"] for found in client_in(record, "one")["ratios"]] == ["limit", "limit"]


def test_a_good_record_verifies(tmp_path, made):
    assert verify(made.record(tmp_path / "r", lines_of(made, limit=0.1, one=0.2))) == []


def test_a_changed_summary_is_found_and_placed(tmp_path, made):
    record = made.record(tmp_path / "r", lines_of(made, limit=0.1, one=0.2))
    summary = record.summary
    summary["cells"][0]["clients"][1]["metrics"]["core_s_per_gib"]["median"] *= 0.9
    record.write_summary(summary)
    (complaint,) = verify(record)
    assert "summary.cells[tiny].clients[one].metrics.core_s_per_gib.median" in complaint


def test_a_changed_sample_is_found(tmp_path, made):
    record = made.record(tmp_path / "r", lines_of(made, limit=0.1, one=0.2))
    with made_journal(record) as journal:
        journal.append(made.round("one", 11, 0.9))
    assert any("clients[one].rounds is 10, the samples say 11" in c for c in verify(record))


def made_journal(record):
    from wirespeed_lab.records import Journal

    return Journal(record.samples)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("plan.json", {"schema": 2}, "is of schema 2"),
        ("plan.json", {"seed": "x"}, "data.seed must be integer"),
        ("environment.json", {"notes": 7}, "data.notes must be array"),
        ("summary.json", {"complete": None}, "data.complete must be boolean"),
    ],
)
def test_files_of_another_form_are_refused(tmp_path, made, name, change, says):
    record = made.record(tmp_path / "r", lines_of(made, one=0.1))
    path = record.folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    (complaint,) = verify(Record.open(record.folder))
    assert says in complaint
    assert name in complaint


def test_a_line_of_another_form_is_refused(tmp_path, made):
    record = made.record(tmp_path / "r", [made.round("one", 1) | {"phase": "warm-ish"}])
    assert "line 1" in verify(record)[0]


def test_a_folder_is_a_record_once(tmp_path, made):
    record = made.record(tmp_path / "r", [])
    with pytest.raises(BadRecord, match="holds a record"):
        Record.create(record.folder, record.plan, record.environment)
    with pytest.raises(BadRecord, match="holds no record"):
        Record.open(tmp_path)


def test_clients_of_a_record_are_compared_in_pairs(tmp_path, made):
    record = made.record(tmp_path / "r", lines_of(made, one=0.2, two=0.1))
    found = {line.metric: line for line in within(record, "one", "two")}
    assert found["core_s_per_gib"].ratio.median == pytest.approx(2.0)
    assert found["core_s_per_gib"].differs
    assert not found["seconds"].differs


def test_records_are_compared_cell_by_cell(tmp_path, made):
    a = made.record(tmp_path / "a", lines_of(made, one=0.2))
    b = made.record(tmp_path / "b", lines_of(made, one=0.1))
    found = {line.metric: line for line in between(a, b)}
    assert found["core_s_per_gib"].ratio.median == pytest.approx(2.0)
    assert found["core_s_per_gib"].differs


def test_other_sinks_are_not_compared(tmp_path, made):
    a = made.record(tmp_path / "a", lines_of(made, one=0.2))
    b = made.record(tmp_path / "b", lines_of(made, one=0.1), sink="memory")
    assert all(line.ratio is None and "sink differ" in line.reason for line in between(a, b))


def test_equal_sides_are_no_difference():
    values = [1.0, 1.1, 0.9, 1.05, 0.95] * 2
    found = unpaired(values, values)
    assert found.low <= 1 <= found.high


def test_folders_are_named_by_time_and_machine():
    now = datetime.datetime(2026, 11, 22, 22, 30, tzinfo=datetime.UTC)
    machine = {"cpu": "Intel(R) Xeon(R) CPU @ 2.60GHz", "cores": 2}
    assert folder_name(machine, now) == "20261122T223000Z-intel-xeon-2c"


def test_who_is_in_no_cell_is_told_once_with_the_reason(tmp_path, made):
    summary = made.record(tmp_path / "r", lines_of(made, limit=0.1, one=0.2)).summary
    other = copy.deepcopy(summary["cells"][0])
    other["id"] = "other"
    other["clients"][2]["reason"] = "has no list"
    out = io.StringIO()
    both = {**summary, "cells": [*summary["cells"], other]}
    tables.print_summary(Console(file=out, width=200), both)
    said = out.getvalue()
    assert said.count("warp") == 1
    assert "warp: in no cell: skipped: not to be had" in said
    assert said.count("two: ") == 2
    assert "two: not run: has no list" in said
    out.truncate(0)
    tables.print_summary(Console(file=out, width=200), both, only="other")
    assert "warp: skipped: not to be had" in out.getvalue()
