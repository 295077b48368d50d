import dataclasses
import random
import sys

import pytest
from wirespeed_lab import checks, rounds
from wirespeed_lab.checks import Check
from wirespeed_lab.contender import Contender, ContenderFailed, Running

DRIVER = """
import json, sys
cost, moved, lives = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
for n, line in enumerate(sys.stdin):
    if n == lives:
        sys.exit("gave up")
    print(json.dumps({"seconds": 0.1, "bytes": moved, "objects": 1, "requests": 1,
                      "user_s": cost * (1 + n % 3 / 100), "system_s": 0.0}), flush=True)
"""
BYTES = 1 << 20


class StillServer:
    """A server that uses no time and counts ten requests whenever it is asked."""

    def __init__(self):
        self.requests = 0

    def cpu_seconds(self):
        return 1.0

    def counts(self):
        self.requests += 10
        return {"server_requests": self.requests}


def fake(name, role, cost, moved=BYTES, lives=1000):
    command = (sys.executable, "-c", DRIVER, str(cost), str(moved), str(lives))
    return Contender(name, role, command)


def measure(*contenders, fresh=False, most_blocks=12):
    row = rounds.Row(
        "fake",
        "fake",
        contenders,
        (Check("core_s_per_gib", ("limit",), 1.15),),
        BYTES,
        1,
        fresh,
    )
    effort = rounds.Effort(most_blocks=most_blocks, most_seconds=60)
    said = []
    shuffle = random.Random(1)
    found = rounds.run(row, StillServer(), 0, effort, shuffle, said.append)
    assert said
    return found


def test_rounds_alternate_until_the_ratio_is_known():
    found = measure(
        fake("wirespeed", "engine", 0.011),
        fake("good", "limit", 0.010),
        fake("dear", "limit", 0.030),
    )
    assert found["stopped"] == "resolved"
    assert found["failures"] == {}
    assert found["dropped"] == ["dear"]
    assert len([s for s in found["samples"] if s["contender"] == "dear"]) == rounds.TRIM_AFTER + 1
    assert [s["block"] for s in found["samples"] if s["first"]] == [0, 0, 0]
    orders = {}
    for sample in found["samples"]:
        orders.setdefault(sample["block"], []).append(sample["contender"])
    assert len({tuple(order) for block, order in orders.items() if block > 5}) > 1
    assert checks.judge_all(found)[0].verdict == "met"


def test_a_client_that_moves_other_bytes_is_disqualified():
    found = measure(fake("wirespeed", "engine", 0.01, moved=7), fake("good", "limit", 0.01))
    assert "disqualified" in found["failures"]["wirespeed"]
    assert checks.judge_all(found)[0].verdict == "not run"


def test_a_slow_client_does_its_share_and_no_less():
    less = fake("slow", "limit", 0.01, moved=BYTES // 4)
    cheat = fake("cheat", "limit", 0.01, moved=BYTES // 8)
    found = measure(
        fake("wirespeed", "engine", 0.01),
        dataclasses.replace(less, share=4),
        dataclasses.replace(cheat, share=2),
    )
    assert set(found["failures"]) == {"cheat"}
    assert [c.get("share") for c in found["contenders"]] == [None, 4, 2]


def test_versions_and_what_the_server_counted_stand_in_the_record():
    versions = {"peer": "1.2.3"}
    found = measure(
        fake("wirespeed", "engine", 0.01),
        dataclasses.replace(fake("peer", "limit", 0.01), packages=versions),
    )
    assert [c.get("packages") for c in found["contenders"]] == [None, versions]
    assert {sample["server_requests"] for sample in found["samples"]} == {10}


def test_a_client_that_dies_is_named_and_the_rest_goes_on():
    found = measure(fake("wirespeed", "engine", 0.01, lives=3), fake("good", "limit", 0.01))
    assert "gave up" in found["failures"]["wirespeed"]
    assert len([s for s in found["samples"] if s["contender"] == "wirespeed"]) == 3


def test_fresh_processes_each_run_one_round():
    found = measure(
        fake("wirespeed", "engine", 0.01, lives=1), fake("good", "limit", 0.01, lives=1), fresh=True
    )
    assert found["failures"] == {}
    assert all(sample["first"] for sample in found["samples"])
    assert checks.judge_all(found)[0].estimate.count >= 10


def test_a_program_that_is_no_driver_is_refused():
    with pytest.raises(ContenderFailed, match="instead of ready"):
        Running(Contender("echo", "peer", ("echo", "hello")), 0)
    with pytest.raises(ContenderFailed, match="ended"):
        Running(Contender("false", "peer", ("false",)), 0)
