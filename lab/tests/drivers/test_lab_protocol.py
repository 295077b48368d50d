"""The protocol as drivers in Python share it: what is kept in flight, and what is checked."""

import json
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from wirespeed_lab import places
from wirespeed_lab.driving import Driver, DriverFailed, Skipped
from wirespeed_lab.driving.errors import BadPlan
from wirespeed_lab.plans import Item, Plan

sys.path.insert(0, str(places.step_protocol()))

import lab_protocol

FAKE = Path(__file__).with_name("fake_client.py")
ENV = {"PYTHONPATH": str(places.step_protocol())}
KINDS = ("threads", "tasks", "completions")
ITEMS = tuple(Item(f"k/{n}", 10 + 999 * n) for n in range(9))


def plan(operation="get", work=ITEMS, **fields):
    return Plan(
        workload="t",
        operation=operation,
        work=tuple(work),
        **{"sink": "discard", "concurrency": 3, **fields},
    )


def rounds(kind, made, count=1, fault=(), folder=None, **line):
    """What each of so many verified rounds printed."""
    with Driver([sys.executable, str(FAKE), kind, *fault, "run"], ENV) as driver:
        told = made.for_driver("http://127.0.0.1:1", "us-east-1", "b", None, folder)
        driver.start({**told, **line}, 30)
        return [driver.round(number, True, 30) for number in range(count)]


def digest(data):
    return f"{zlib.crc32(data):08x}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sink", ["discard", "memory", "stream"])
def test_every_item_is_done_once_and_in_each_round(kind, sink):
    for made in rounds(kind, plan(sink=sink), count=2):
        assert [sample["n"] for sample in made.samples] == list(range(9))
        assert [sample["error"] for sample in made.samples] == [None] * 9
        for item, sample in zip(ITEMS, made.samples, strict=True):
            assert sample["bytes"] == item.size
            assert sample["digest"] == digest(lab_protocol.formula(item.key, item.size))
            assert 0 <= sample["worker"] < 3
        assert made.done["effective"]["concurrency"] == 3
        assert made.stopped


def test_ranges_end_before_their_end():
    work = [Item("k", 5000, (0, 1)), Item("k", 5000, (4321, 5000))]
    (made,) = rounds("threads", plan(work=work))
    whole = lab_protocol.formula("k", 5000)
    assert [s["digest"] for s in made.samples] == [digest(whole[:1]), digest(whole[4321:])]


def test_a_file_is_whole_and_an_empty_one_is_there(tmp_path):
    work = [Item("a", 2500), Item("b", 0)]
    (made,) = rounds("threads", plan(work=work, sink="file"), folder=str(tmp_path))
    assert [sample["error"] for sample in made.samples] == [None, None]
    assert (tmp_path / "0").read_bytes() == lab_protocol.formula("a", 2500)
    assert (tmp_path / "1").read_bytes() == b""


@pytest.mark.parametrize("kind", KINDS)
def test_an_item_that_fails_says_so_and_the_others_go_on(kind):
    work = [Item("absent", 5), *ITEMS, *[Item("absent", 5)] * 2000]
    (made,) = rounds(kind, plan(work=work))
    failed = [sample["n"] for sample in made.samples if sample["error"]]
    assert failed == [0, *range(10, 2010)]
    assert made.samples[0]["error"] == "LookupError: there is no such key"


def test_a_body_that_is_too_short_is_an_error_of_its_item():
    (made,) = rounds("threads", plan(work=[Item("k", 100)]), fault=["short"])
    assert made.samples[0]["error"] == "99 bytes, not 100"


@pytest.mark.parametrize("source", ["memory", "file"])
def test_what_is_put_is_the_formula_of_one_key(source, tmp_path):
    sizes = [3, 1_100_000, 3, 7]
    for n, size in enumerate(sizes):
        (tmp_path / str(n)).write_bytes(lab_protocol.formula("body", size))
    work = [Item(f"p/{n}", size) for n, size in enumerate(sizes)]
    (made,) = rounds("threads", plan("put", work, source=source), folder=str(tmp_path))
    for size, sample in zip(sizes, made.samples, strict=True):
        assert sample["error"] is None
        assert sample["digest"] == digest(lab_protocol.formula("body", size))


@pytest.mark.parametrize("kind", KINDS)
def test_a_listing_is_of_all_keys_in_order(kind):
    (made,) = rounds(kind, plan("list", [Item("l/", 0, None, 10, 2)]))
    keys = "\n".join(f"l/{n:02d}" for n in range(10))
    assert made.samples[0]["keys"] == 10
    assert made.samples[0]["digest"] == digest(keys.encode())


def test_a_listing_of_other_keys_than_the_plan_has_is_an_error():
    (made,) = rounds("threads", plan("list", [Item("l/", 0, None, 11, 2)]))
    assert made.samples[0]["error"] == "listed 10 keys, not 11"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_got_can_be_what_was_listed(kind):
    work = [Item(f"l/{n:02d}", 100) for n in range(10)]
    (made,) = rounds(kind, plan(work=work, listing="l/"))
    assert [sample["error"] for sample in made.samples] == [None] * 10
    assert made.samples[9]["digest"] == digest(lab_protocol.formula("l/09", 100))


def test_a_plan_that_cannot_be_done_is_skipped_with_the_reason():
    with pytest.raises(Skipped, match="does not feel like it"):
        rounds("threads", plan(), fault=["skips"])


@pytest.mark.parametrize(
    "line",
    [
        {"version": 2},
        {"type": "go"},
        {"work": []},
        {"work": [{"key": "k"}]},
        {"operation": "delete"},
        {"concurrency": 0},
        {"part_size": "8MiB"},
        {"sink": "file"},
    ],
)
def test_a_malformed_plan_is_refused(line):
    with pytest.raises(BadPlan):
        rounds("threads", plan(), **line)


def test_what_a_library_prints_is_not_taken_for_the_protocol():
    (made,) = rounds("threads", plan(), fault=["prints"])
    assert len(made.samples) == 9


def test_a_line_that_is_no_go_ends_it():
    told = plan().for_driver("http://127.0.0.1:1", "us-east-1", "b", None, None)
    command = [sys.executable, str(FAKE), "threads", "run"]
    text = json.dumps(told) + '\n{"type":"stop"}\n'
    ended = subprocess.run(
        command, input=text, capture_output=True, text=True, env=ENV, check=False, timeout=30
    )
    assert ended.returncode == 1
    assert "says go" in ended.stderr


def test_a_driver_that_is_called_otherwise_says_how():
    with pytest.raises(DriverFailed), Driver([sys.executable, str(FAKE), "threads"], ENV) as driver:
        driver.start({}, 30)
