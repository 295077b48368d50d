"""What is said of events: which rounds count, who is out, and why."""

from wirespeed_lab import stats
from wirespeed_lab.hosts.rounds import HostRound, faults, merged
from wirespeed_lab.hosts.summary import Told

HEADER = {
    "type": "hosts",
    "hosts": {"a": {}, "b": {}},
    "clients": ["one", "two"],
    "blocks": 3,
    "plan": {"workload": "tiny"},
}


def a_sample(start, end, moved=100, **changed):
    return {"start_ns": start, "end_ns": end, "bytes": moved, "count": 1, "error": None, **changed}


def a_part(name, start, end, *samples, faults=()):
    return HostRound(name, start, end, 0, list(samples), {}, list(faults))


def a_round(client, block, *parts, segment_ns=10):
    return {"type": "round", "client": client, "block": block, **merged(parts, segment_ns)}


def told_of(*events):
    told = Told()
    for event in [HEADER, {"type": "client", "client": "one"}, *events]:
        told.take(event)
    return told


def both(moved=100, end=100):
    return [a_part(name, 0, end, a_sample(0, end, moved)) for name in "ab"]


def test_counted_are_all_blocks_but_the_first_at_the_level_of_so_few():
    rates = (100, 300, 200)
    events = [a_round("one", n, *both(moved)) for n, moved in enumerate((9, *rates))]
    found = told_of(*events).summary()["clients"]["one"]
    expected = stats.median_estimate(
        [2 * moved / 100e-9 for moved in rates], confidence=stats.expanded(3)
    )
    assert found["bytes_per_second"]["median"] == expected.median
    assert (found["bytes_per_second"]["low"], found["bytes_per_second"]["high"]) == (
        expected.low,
        expected.high,
    )
    assert found["common_seconds"]["count"] == 3


def test_hosts_that_never_ran_together_put_the_client_out():
    parts = [a_part("a", 0, 10, a_sample(0, 10)), a_part("b", 20, 30, a_sample(20, 30))]
    told = told_of(a_round("one", 1, *parts))
    assert told.running() == []
    assert "b had not begun when a ended" in told.summary()["out"]["one"]


def test_a_sample_that_ends_before_it_starts_is_no_crash_and_its_fault_is_the_reason():
    parts = [a_part("a", 0, 10, a_sample(8, 2), faults=["item 0 ends before it starts"])]
    event = a_round("one", 1, *parts)
    assert event["merged"] is None
    assert "not an operation" in event["reason"]
    fault = {"type": "disqualified", "client": "one", "faults": faults(parts)}
    assert told_of(event, fault).summary()["out"] == {"one": "a: item 0 ends before it starts"}


def test_operations_that_failed_moved_nothing():
    part = a_part("a", 0, 10, a_sample(0, 10, 70), a_sample(0, 10, 30, error="reset"))
    assert merged([part], 10)["merged"]["bytes"] == 70


def test_a_client_without_a_counted_round_has_no_figure():
    summary = told_of(a_round("one", 0, *both())).summary()
    assert (summary["clients"], summary["out"]) == ({}, {})
