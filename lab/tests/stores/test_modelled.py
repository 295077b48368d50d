"""The embedded server keeps to a preset, as far as a busy machine lets one see it: never sooner,
never faster, never more. How near it keeps to it is for check_presets to say."""

from urllib.parse import urlsplit

import pytest
from wirespeed_lab.plans import Item
from wirespeed_lab.stores import independent, load_preset

SMALL, ENDLESS = Item("m/small", 16), Item("m/endless", 1 << 40)


@pytest.fixture
def serving(origin, plan_of):
    """The preset's server, where it listens, and the paths of a small and an endless object."""

    def start(preset):
        store = origin(preset=preset)
        store.prepare(plan_of(SMALL, ENDLESS))
        at = urlsplit(store.endpoint)
        paths = (f"/{store.bucket}/{item.key}" for item in (SMALL, ENDLESS))
        return store, (at.hostname, at.port), *paths

    return start


def test_a_patient_store_is_never_early_and_sees_every_request_in_flight(serving):
    store, address, small, _ = serving("patient")
    store.counts()
    calls = independent.call(address, "HEAD", small, 8, calls=64)
    assert min(call.seconds for call in calls) >= 0.05
    counts = store.counts()
    assert counts.get("requests_in_flight_peak", 8) == 8
    assert counts["requests_head"] >= 64


def test_a_burst_ends_and_no_connection_is_faster_than_claimed(serving):
    claims = load_preset("t3.medium").claims
    store, address, _, endless = serving("t3.medium")
    store.renew()
    came = independent.download(address, endless, 8, seconds=1.0)
    # What timers were late by is made up for, at most so much of it: 50 ms a connection.
    at_most = 8 * claims.down * (1.0 + 0.05) + 8 * (1 << 20)
    total = sum(count for _, count in came)
    assert 0 < total <= min(at_most, claims.nic.burst * 1.05 + 8 * (1 << 20))


def test_a_prefix_takes_no_more_than_claimed_and_says_slow_down(serving):
    claims = load_preset("s3").claims
    store, address, small, _ = serving("s3")
    before = store.counts()["throttled"]
    calls = independent.call(address, "HEAD", small, 300, seconds=1.5)
    length = max(call.first for call in calls) - min(call.sent for call in calls)
    taken = sum(call.status == 200 for call in calls)
    refused = sum(call.status == 503 for call in calls)
    # A bucket of tokens: a tenth of a second's worth at the start, and then its rate.
    assert 0 < taken <= claims.reads * (0.1 + length) + 1
    assert taken + refused == len(calls)
    assert refused <= store.counts()["throttled"] - before
