"""The reference driver, honest: what it did passes, whatever the work is."""

import dataclasses
import sys

import pytest
from wirespeed_lab.driving import (
    Driver,
    Skipped,
    check_files,
    describe,
    empty,
    judge,
    refusal,
    write_sources,
)


@pytest.mark.parametrize("work", ["small", "ranges", "listing"])
def test_an_honest_round_has_no_faults(lab, make, work):
    plan = getattr(make, work)()
    for made, counts in lab.rounds(plan, count=2):
        assert judge(plan, made, counts) == []
        assert made.stopped
        assert made.go_ns <= made.done["start_ns"] <= made.done["end_ns"] <= made.first_output_ns
        assert made.first_output_ns <= made.done_ns


@pytest.mark.parametrize("sink", ["memory", "stream"])
def test_other_sinks(lab, make, sink):
    plan = make.small(sink=sink)
    for made, counts in lab.rounds(plan):
        assert judge(plan, made, counts) == []


def test_what_it_lists_first(lab, make):
    plan = make.small(listing="small/")
    for made, counts in lab.rounds(plan):
        assert judge(plan, made, counts) == []
        assert counts["requests"] == 41


def test_files_are_what_they_must_be(lab, make, tmp_path):
    plan = make.small(sink="file")
    for made, counts in lab.rounds(plan, folder=tmp_path):
        assert judge(plan, made, counts) == []
    assert check_files(plan, tmp_path) == []
    content = (tmp_path / "7").read_bytes()
    (tmp_path / "7").write_bytes(content[:100] + b"?" + content[101:])
    (tmp_path / "8").write_bytes(content[:-1])
    (tmp_path / "9").write_bytes((tmp_path / "9").read_bytes() + b"?")
    (tmp_path / "10").unlink()
    assert check_files(plan, tmp_path) == [
        "file 7 is wrong at byte 100",
        "file 8 is wrong at byte 0",
        "file 9 has more than 65536 bytes",
        "file 10 cannot be read: No such file or directory",
    ]
    empty(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source", ["memory", "file"])
def test_puts(lab, make, tmp_path, source):
    plan = make.small(operation="put", source=source)
    if source == "file":
        write_sources(plan, tmp_path)
    for made, counts in lab.rounds(plan, folder=tmp_path):
        assert judge(plan, made, counts) == []


def test_sources_are_written_once_and_named_often(make, tmp_path):
    plan = make.small(operation="put", source="file")
    for _ in range(2):
        write_sources(plan, tmp_path)
    assert len(list(tmp_path.iterdir())) == 40
    as_if_read = dataclasses.replace(plan, operation="get", work=(plan.work[0],))
    wrong = check_files(as_if_read, tmp_path)
    assert len(wrong) == 1, "it has the bytes of `body`, not of its key"


def test_a_failed_item_is_a_sample_and_a_fault(lab, make):
    plan = make.small()
    line = lab.line(plan)
    line["work"][5]["key"] = "nowhere"
    with lab.driver() as driver:
        driver.start(line)
        made = driver.round(1)
    assert [sample["n"] for sample in made.samples] == list(range(40))
    (fault,) = judge(plan, made, {})
    assert fault.startswith("1 of 40 samples failed, first item 5: 404")


def test_it_describes_itself(lab):
    made = describe(lab.command()[:-1], lab.env)
    assert (made.name, made.client, made.protocol) == ("reference", "http.client", 1)
    assert made.version.startswith("3.")
    assert made.as_json()["type"] == "describe"


def test_what_a_driver_cannot_do_is_known_beforehand(lab, make):
    made = describe(lab.command()[:-1], lab.env)
    assert refusal(made, make.small()) is None
    assert refusal(made, make.small(tls=True)) == "reference has no TLS"
    # No item is longer than a part, so nothing has to be chosen.
    assert refusal(made, make.small(part_size=65_536)) is None
    assert "part_size" in refusal(made, make.small(part_size=65_535))
    less = dataclasses.replace(made, operations=("put",), sinks=("file",), sources=("file",))
    assert refusal(less, make.small()) == "reference has no get"
    assert "source 'memory'" in refusal(less, make.small(operation="put"))
    deaf = dataclasses.replace(made, settings=())
    assert "concurrency" in refusal(deaf, make.small())
    assert refusal(deaf, make.small(concurrency=None)) is None
    assert "listing" in refusal(deaf, make.small(concurrency=None, listing="small/"))
    assert "checksums" in refusal(made, make.small(checksums=False))


def test_the_lab_is_told_of_the_first_output_once(lab, make):
    called = []
    with lab.driver() as driver:
        driver.start(lab.line(make.small()))
        driver.round(1, at_first_output=lambda: called.append(1))
        assert called == [1]
        driver.round(2)
        assert driver.close() == "exit code 0"
    assert called == [1]


def test_a_plan_of_many_megabytes_gets_through(lab, make):
    line = lab.line(make.small())
    line["comment"] = "x" * (20 << 20)
    with lab.driver() as driver:
        driver.start(line)
        assert len(driver.round(1).samples) == 40


def test_what_a_driver_writes_on_standard_error_does_not_stop_it(lab, make):
    for made, counts in lab.rounds(make.small(), "chatter", count=2):
        assert judge(make.small(), made, counts) == []


def test_a_driver_sees_nothing_of_the_labs_own_environment(lab, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "private")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    program = (
        "import json, os; e = os.environ; c = e['AWS_CONFIG_FILE'] == os.devnull;"
        "n = [k for k in e if k.lower().endswith('_proxy') or k == 'AWS_PROFILE'];"
        "print(json.dumps({'type': 'skip', 'reason': f'{n} {c} {e[\"GIVEN\"]}'}));"
        "raise SystemExit(77)"
    )
    driver = Driver([sys.executable, "-c", program], {"GIVEN": "yes"}, name="it")
    with driver, pytest.raises(Skipped, match=r"it skips this plan: \[\] True yes"):
        driver.start({})
