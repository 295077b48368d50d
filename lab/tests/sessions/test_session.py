"""What a session does with clients that work, fail and lie, and with whatever ends it early."""

import errno
import os

import pytest
from wirespeed_lab.measuring import Noise
from wirespeed_lab.records import verify


def test_every_client_has_its_rounds_in_every_block(make):
    made = make({"one": "", "two": ""})
    assert made.run().state == "complete"
    for client in ("one", "two"):
        lines = [line for line in made.lines() if line["client"] == client]
        assert [line["phase"] for line in lines] == ["verified", "first"] + ["steady"] * 3
        assert [line["block"] for line in lines] == [0, 0, 1, 2, 3]
        assert {line["process"] for line in lines} == {1}
        assert all(line["bytes"] == 4096 and line["objects"] == 4 for line in lines)
        assert made.summed(client)["rounds"] == 3
    assert made.record.summary["complete"]
    assert verify(made.record) == []


def test_blocks_are_shuffled_by_the_seed(make):
    made = make({name: "" for name in "abcdef"}, settings={"seed": 7, "blocks": 2})
    made.run()
    steady = made.lines("steady")
    orders = [[line["client"] for line in steady if line["block"] == block] for block in (1, 2)]
    assert sorted(orders[0]) == sorted(orders[1]) == list("abcdef")
    assert orders[0] != orders[1]
    assert [line["position"] for line in steady] == [*range(6), *range(6)]


def test_a_client_that_dies_is_named_and_the_rest_goes_on(make):
    made = make({"good": "", "dies": "die=4"})
    assert made.run().state == "complete"
    (event,) = made.events("failed")
    assert event["client"] == "dies"
    assert "pretended to crash" in event["text"]
    assert made.summed("dies")["state"] == "failed"
    assert made.summed("good")["rounds"] == 3
    # Its one steady round before that stays.
    assert len([line for line in made.lines("steady") if line["client"] == "dies"]) == 1


@pytest.mark.parametrize(("wrong", "says"), [("lie=1", "1025 bytes"), ("fail=3", "SlowDown")])
def test_a_client_with_wrong_bytes_is_disqualified(make, wrong, says):
    made = make({"good": "", "lies": wrong})
    assert made.run().state == "complete"
    said = made.summed("lies")
    assert said["state"] == "disqualified"
    assert says in said["reason"]
    assert said["ratios"] == []
    assert all(ratio["to"] != "lies" for ratio in made.summed("good")["ratios"])


def test_a_client_without_a_setting_for_it_takes_part_with_its_own_number_in_flight(make):
    pretend = {"asked": "own=2", "own": "own=2 without=concurrency", "none": "without=checksums"}
    made = make(pretend, checksums=True)
    made.run()
    assert "concurrency in effect was 2" in made.summed("asked")["reason"]
    assert made.summed("own")["state"] == "measured"
    assert made.summed("own")["effective"]["concurrency"] == 2
    assert "does not let checksums be chosen" in made.summed("none")["reason"]


def test_a_put_that_left_other_bytes_is_disqualified(make):
    made = make({"one": ""}, operation="put")
    made.store.complaints = ["'a/00000002' is wrong at byte 7"]
    made.run()
    assert made.summed("one")["state"] == "disqualified"
    assert "wrong at byte 7" in made.summed("one")["reason"]


def test_files_are_looked_at_by_the_lab_itself(make):
    made = make({"one": ""}, sink="file")
    assert made.run().state == "complete"
    assert made.summed("one")["state"] == "measured"


def test_a_client_that_skips_says_why(make):
    made = make({"one": "skip", "two": ""})
    made.run()
    assert made.summed("one")["state"] == "skipped"
    assert "pretends that it can't" in made.summed("one")["reason"]
    assert made.summed("one")["metrics"] == {}


@pytest.mark.parametrize("mode", ["cold", "one-shot"])
def test_cold_and_whole_processes_are_fresh_in_every_block(make, mode):
    made = make({"one": ""}, mode=mode)
    assert made.run().state == "complete"
    counted = made.lines(mode)
    assert [line["block"] for line in counted] == [1, 2, 3]
    assert [line["process"] for line in counted] == [2, 3, 4]
    if mode == "one-shot":
        # The start of an interpreter is in it, and the round's own time is not all.
        assert all(line["seconds"] > line["outside_s"] for line in counted)
        assert all(line["user_s"] + line["system_s"] > 0.005 for line in counted)


def test_a_dead_server_ends_the_session_and_is_blamed(make):
    made = make({"one": "", "two": ""})
    made.store.dies_after = 9
    outcome = made.run()
    assert outcome.state == "stopped"
    assert "pretended server ended" in outcome.text
    assert made.events("failed") == []
    kept = len(made.lines())
    assert kept >= 3
    assert not made.record.summary["complete"]
    assert verify(made.record) == []


def test_an_interrupted_session_is_resumed_where_it_was(make):
    made = make({"one": "", "two": ""})

    def interrupt(line):
        if line["block"] == 2:
            raise KeyboardInterrupt

    made.view.after = interrupt
    assert made.run().state == "interrupted"
    before = made.lines()
    assert verify(made.record) == []
    made.view.after = lambda line: None
    assert made.run().state == "complete"
    assert made.lines()[: len(before)] == before
    counted = [(line["client"], line["block"]) for line in made.lines("steady")]
    assert sorted(counted) == [(name, block) for name in ("one", "two") for block in (1, 2, 3)]
    assert {line["process"] for line in made.lines()} == {1, 2}
    assert len(made.events("resumed")) == 1
    assert made.record.summary["complete"]
    assert verify(made.record) == []


def test_a_failed_client_is_tried_again_when_the_session_is_resumed(make):
    made = make({"dies": "die=4"})
    made.run()
    made.entries[0].client.pretend = ""
    assert made.run().state == "complete"
    assert made.summed("dies")["state"] == "measured"
    assert made.summed("dies")["rounds"] == 3


def test_a_full_disk_leaves_a_record_that_can_be_read(make, monkeypatch):
    made = make({"one": ""})
    real, writes = os.pwrite, []

    def full(file, data, place):
        writes.append(place)
        if len(writes) > 6:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, data, place)

    monkeypatch.setattr(os, "pwrite", full)
    outcome = made.run()
    assert outcome.state == "stopped"
    assert "No space left" in outcome.text
    kept = made.lines()
    assert len(kept) >= 3
    monkeypatch.undo()
    assert made.run().state == "complete"
    assert made.lines()[: len(kept)] == kept


def test_a_disturbed_round_is_repeated_and_both_stay(make, monkeypatch):
    made = make({"one": "", "two": ""}, settings={"repeats": 1})
    reasons = iter([()] * 4 + [("steal 9%",)])

    def judged(*_):
        return Noise(0.0, 0.0, None, 0.0, next(reasons, ()))

    monkeypatch.setattr("wirespeed_lab.sessions.session.Watch.end", judged)
    made.run()
    disturbed = [line for line in made.lines() if line["disturbed"]]
    (first,) = disturbed
    assert (first["block"], first["attempt"]) == (1, 0)
    (again,) = [line for line in made.lines() if line["attempt"] == 1]
    assert (again["client"], again["block"]) == (first["client"], 1)
    said = made.summed(first["client"])
    assert (said["rounds"], said["disturbed"], said["still_disturbed"]) == (3, 1, 0)


def test_a_machine_that_is_never_quiet_is_not_repeated_for_ever(make, monkeypatch):
    made = make({"one": "", "two": ""}, settings={"repeats": 5, "blocks": 4})
    monkeypatch.setattr(
        "wirespeed_lab.sessions.session.Watch.end",
        lambda *_: Noise(0.5, 0.0, None, 0.0, ("steal 50%",)),
    )
    assert made.run().state == "complete"
    assert len(made.lines("steady")) == 8 + 4
    assert made.summed("one")["still_disturbed"] == 4


def test_nothing_pinned_is_said_and_survived(make, monkeypatch):
    made = make({"one": ""})

    def refused(*_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "sched_setaffinity", refused)
    assert made.run().state == "complete"
    assert any("nothing is pinned" in note for note in made.record.summary["notes"])


def test_short_memory_has_clients_take_turns_alone(make, monkeypatch):
    monkeypatch.setattr("wirespeed_lab.sessions.session._memory_is_short", lambda: True)
    made = make({"one": "", "two": ""}, settings={"blocks": 2})
    assert made.run().state == "complete"
    one = [line for line in made.lines() if line["client"] == "one"]
    assert [line["phase"] for line in one] == [
        "verified",
        "first",
        "first",
        "steady",
        "first",
        "steady",
    ]
    assert made.summed("one")["rounds"] == 2


def test_cpu_and_memory_are_those_of_the_client(make):
    made = make({"one": "burn=0.2 hold=64"}, settings={"blocks": 1})
    made.run()
    (line,) = made.lines("steady")
    assert 0.19 < line["user_s"] + line["system_s"] < 0.6
    assert line["peak_memory_bytes"] > 64 << 20
