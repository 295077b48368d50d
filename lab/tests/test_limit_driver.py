"""The raw loop as a driver of the lab's protocol: right bytes, and plans that it must refuse."""

import json
import subprocess

import pytest
from wirespeed_lab import places
from wirespeed_lab.driving.conformance import conform
from wirespeed_lab.origin import Origin, Synthetic

FOLDER = places.DRIVERS / "limit"
SIZE = 1_000_003


@pytest.fixture(scope="module")
def limit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limit")
    subprocess.run(["make", "-s", "-C", FOLDER, f"BUILD={folder}"], check=True)
    return str(folder / "limit")


@pytest.fixture(scope="module")
def origin():
    try:
        server = Origin((0,), (Synthetic("lab", "large", SIZE), Synthetic("lab", "s/", 100, 30, 2)))
    except places.MissingProgram as error:
        pytest.skip(str(error))
    with server:
        yield server


def plan(**changes):
    return {
        **{"type": "plan", "version": 1, "workload": "test", "operation": "get", "sink": "discard"},
        **{"source": "memory", "concurrency": 2, "part_size": None, "checksums": False},
        **{"endpoint": "http://127.0.0.1:9", "region": "us-east-1", "bucket": "lab"},
        **{"path_style": True, "ca_file": None, "folder": None},
        "work": [{"key": "large", "size": SIZE}],
        **changes,
    }


def run(limit, first, *rounds):
    lines = [first if isinstance(first, str) else json.dumps(first)]
    lines += [json.dumps({"type": "go", "round": n, "verify": v}) for n, v in enumerate(rounds)]
    return subprocess.run(
        [limit, "run"], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60
    )


def said(done, kind):
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["type"] == kind]


def test_it_conforms(limit):
    try:
        report = conform([limit])
    except places.MissingProgram as error:
        pytest.skip(str(error))
    assert report.failures == []
    assert not {"get", "put", "list"} & set(report.skipped)


@pytest.mark.parametrize("sink", ["discard", "memory"])
def test_the_parts_of_one_object_are_one_sample_with_one_digest(limit, origin, sink):
    both = [
        run(limit, plan(endpoint=origin.endpoint, sink=sink, part_size=part), True)
        for part in (300_000, 8 << 20)
    ]
    samples = [said(done, "sample") for done in both]
    assert [len(one) for one in samples] == [1, 1], both[0].stderr
    assert [one[0]["bytes"] for one in samples] == [SIZE, SIZE]
    assert samples[0][0]["digest"] == samples[1][0]["digest"]
    effective = [said(done, "done")[0]["effective"] for done in both]
    assert [one["part_size"] for one in effective] == [300_000, None]


def test_a_failed_item_is_a_sample_and_the_others_go_on(limit, origin):
    work = [{"key": key, "size": 100} for key in ("s/00", "absent", "s/01", "s/02")]
    done = run(limit, plan(endpoint=origin.endpoint, work=work), True, False)
    assert done.returncode == 0, done.stderr
    samples = said(done, "sample")
    assert [sample["error"] is None for sample in samples] == [True, False, True, True] * 2
    assert "404" in samples[1]["error"]
    assert [sample["bytes"] for sample in samples] == [100, 0, 100, 100] * 2


def test_a_server_that_is_not_there_fails_each_item(limit):
    work = [{"key": f"s/{n}", "size": 100} for n in range(5)]
    done = run(limit, plan(work=work), False)
    assert done.returncode == 0, done.stderr
    assert all("refused" in sample["error"] for sample in said(done, "sample"))
    assert len(said(done, "sample")) == 5


BAD = {
    "nothing": "",
    "no JSON": "{nonsense",
    "cut off": json.dumps(plan())[:-2],
    "more behind": json.dumps(plan()) + "{}",
    "too deep": '{"a":' + "[" * 10_000,
    "half an escape": '{"type":"plan\\u12',
    "another line": '{"type":"go","round":0}',
    "a newer version": plan(version=2),
    "an unknown operation": plan(operation="delete"),
    "no work": plan(work=[]),
    "a range beyond the end": plan(work=[{"key": "large", "size": 10, "range": [5, 11]}]),
    "an empty range": plan(work=[{"key": "large", "size": 10, "range": [5, 5]}]),
    "half a range": plan(work=[{"key": "large", "size": 10, "range": [5]}]),
    "a negative size": plan(work=[{"key": "large", "size": -1}]),
    "an item without a key": plan(work=[{"size": 1}]),
    "no concurrency": plan(concurrency=0),
    "a fraction": plan(concurrency=1.5),
    "no parts": plan(part_size=0),
    "no URL": plan(endpoint="localhost:9000"),
}


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
def test_bad_plans_are_refused(limit, line):
    done = run(limit, line)
    assert (done.returncode, done.stdout) == (65, "")
    assert done.stderr.startswith("limit: ")


SKIPPED = {
    "sink": plan(sink="file", folder="/tmp"),
    "source": plan(operation="put", source="file"),
    "checksums": plan(checksums=True),
    "TLS": plan(endpoint="https://127.0.0.1:9"),
    "virtual hosts": plan(path_style=False),
    "range": plan(operation="put", work=[{"key": "k", "size": 10, "range": [0, 5]}]),
    "listing": plan(listing="s/"),
}


@pytest.mark.parametrize("line", SKIPPED.values(), ids=SKIPPED)
def test_plans_that_the_loop_cannot_do_are_skipped(limit, line):
    done = run(limit, line)
    assert done.returncode == 77
    assert len(said(done, "skip")) == 1
    assert said(done, "skip")[0]["reason"]


def test_anything_but_go_ends_it(limit):
    done = subprocess.run(
        [limit, "run"], input=json.dumps(plan()) + "\nnonsense\n", capture_output=True, text=True
    )
    assert done.returncode == 65
    assert said(done, "ready") == [{"type": "ready"}]
