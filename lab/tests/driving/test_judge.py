"""The judge alone: one thing of a sound round is changed at a time."""

import dataclasses

import pytest
from wirespeed_lab.driving import Round, digests, judge
from wirespeed_lab.plans import Item, Plan

ITEMS = 12
PLAN = Plan(
    "w",
    "get",
    "discard",
    tuple(Item(f"k/{n:08d}", 1000) for n in range(ITEMS)),
    concurrency=3,
    part_size=1 << 20,
)
#: What a server counts in a sound round.
COUNTS = {
    "requests": ITEMS,
    "bytes_out": ITEMS * 1300,
    "requests_in_flight_peak": 3,
    "held_back": ITEMS,
}


def sound(plan=PLAN, verify=False, in_flight=3):
    samples = [
        {
            "type": "sample",
            "n": n,
            "worker": n % in_flight,
            "start_ns": 100 + 10 * (n // in_flight),
            "first_ns": None,
            "end_ns": 110 + 10 * (n // in_flight),
            "bytes": item.bytes,
            "error": None,
            "count": 1,
        }
        for n, item in enumerate(plan.work)
    ]
    if verify:
        for sample, item in zip(samples, plan.work, strict=True):
            sample["digest"] = digests.expected([item], plan.operation)
    effective = {"concurrency": in_flight, "part_size": plan.part_size, "checksums": None}
    done = {"type": "done", "round": 1, "start_ns": 100, "end_ns": 900, "effective": effective}
    return Round(1, verify, samples, done, go_ns=90, first_output_ns=1000, done_ns=1100)


@pytest.mark.parametrize("verify", [False, True])
def test_a_sound_round_has_no_faults(verify):
    assert judge(PLAN, sound(verify=verify), COUNTS) == []
    assert judge(PLAN, sound(verify=verify), {}) == []


def test_what_nobody_knows_is_not_judged():
    made = sound()
    made.done["effective"] = {"concurrency": None, "part_size": None}
    assert judge(PLAN, made, {}) == []


def change_sample(**changed):
    def change(made):
        made.samples[4].update(changed)

    return change


def change_done(**changed):
    return lambda made: made.done.update(changed)


def change_effective(**changed):
    return lambda made: made.done["effective"].update(changed)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda made: made.samples.pop(0), "1 of 12 items are missing, first 0"),
        (lambda made: made.samples.clear(), "12 of 12 items are missing, first 0"),
        (lambda made: made.samples.append(made.samples[2]), "more than once, first 2"),
        (lambda made: made.samples.reverse(), "not in the order of the items"),
        (change_sample(n=99), "a sample is of item 99, and the plan ends with 11"),
        (change_sample(count=2), "more than once, first 5"),
        (change_sample(error="404"), "1 of 12 samples failed, first item 4: 404"),
        (change_sample(bytes=999), "item 4 has 999 bytes and must have 1000"),
        (change_sample(digest=None), "item 4 has no digest, and the round verifies"),
        (change_sample(digest="00000000"), "item 4 has wrong bytes"),
        (change_sample(start_ns=99), "item 4 has its start, first byte and end at 99"),
        (change_sample(end_ns=901), "not within 100 to 900"),
        (change_sample(first_ns=1), "not in order"),
        (change_sample(start_ns=115, end_ns=112), "not in order"),
        (change_done(start_ns=80), "go was given at 90"),
        (change_done(end_ns=99), "the clock ran from 100 to 99"),
        (change_done(end_ns=1001), "its clock still ran"),
        (change_effective(concurrency=4), "concurrency in effect was 4, and 3 was asked for"),
        (change_effective(concurrency=2), "3 samples overlap, and 2 at most"),
        (change_effective(part_size=10), "part_size in effect was 10"),
    ],
)
def test_each_fault_is_told(change, said):
    made = sound(verify=True)
    change(made)
    found = judge(PLAN, made, COUNTS)
    assert any(said in fault for fault in found), found


@pytest.mark.parametrize(
    ("counted", "said"),
    [
        ({"requests": 11}, "the server saw 11 requests for 12 items"),
        ({"bytes_out": 11_999}, "12000 bytes are claimed, and the server had seen 11999"),
        ({"requests_in_flight_peak": 6}, "the server had 6 requests in flight, and 3 at most"),
        ({"requests_in_flight_peak": 1}, "3 requests in flight are claimed, and the server had 1"),
    ],
)
def test_the_server_is_believed(counted, said):
    (fault,) = judge(PLAN, sound(), {**COUNTS, **counted})
    assert said in fault


def test_fewer_in_flight_than_claimed_are_seen_in_the_samples():
    made = sound(in_flight=1)
    made.done["effective"]["concurrency"] = 3
    (fault,) = judge(PLAN, made, COUNTS)
    assert fault == "3 items in flight are claimed, and 1 samples overlap"


def test_where_answers_come_at_once_fewer_may_be_in_flight():
    made = sound(in_flight=1)
    made.done["effective"]["concurrency"] = 3
    assert judge(PLAN, made, {**COUNTS, "held_back": 0, "requests_in_flight_peak": 1}) == []


def test_what_is_put_whole_below_a_threshold_is_one_request():
    plan = Plan("w", "put", "discard", tuple(Item(f"k{n}", 10 << 20) for n in range(4)))
    made = sound(plan)
    made.done["effective"] = {"concurrency": None, "part_size": 8 << 20}
    counts = {"requests": 4, "bytes_in": 41 << 20}
    (fault,) = judge(plan, made, counts)
    assert "parts of 8388608 bytes make 8" in fault
    made.done["effective"]["multipart_threshold"] = 16 << 20
    assert judge(plan, made, counts) == []
    (fault,) = judge(plan, made, {**counts, "requests": 40})
    assert "make 4" in fault


def test_parts_are_counted_at_the_server():
    plan = Plan("w", "get", "memory", (Item("k", 64 << 20),), concurrency=4, part_size=8 << 20)
    made = sound(plan)
    made.done["effective"]["concurrency"] = 4
    counts = {"requests": 8, "bytes_out": 65 << 20}
    assert judge(plan, made, counts) == []
    assert judge(plan, made, {**counts, "requests": 9}) == []
    for requests in (1, 4, 32):
        (fault,) = judge(plan, made, {**counts, "requests": requests})
        assert fault.startswith(f"the server saw {requests} requests, and parts of 8388608 bytes")


def test_one_sample_can_stand_for_many_items():
    made = sound(verify=True)
    one = {**made.samples[0], "count": ITEMS, "bytes": PLAN.bytes}
    one["digest"] = digests.expected(PLAN.work, "get")
    made = dataclasses.replace(made, samples=[one])
    assert judge(PLAN, made, COUNTS) == []
    one["digest"] = digests.expected(PLAN.work[:-1], "get")
    assert any("item 0 has wrong bytes" in fault for fault in judge(PLAN, made, COUNTS))


def test_ten_thousand_faults_are_told_in_a_few_words():
    plan = dataclasses.replace(PLAN, work=tuple(Item(f"{n}", 9) for n in range(10_000)))
    made = sound(plan)
    for sample in made.samples:
        sample["bytes"] = 8
    found = judge(plan, made, {})
    assert "and 9997 more like these" in found
    assert len(found) < 10
