"""The drivers in Python: their protocol, and that wrong bytes do not pass for work done."""

import itertools
import json
import subprocess
import sys
import urllib.request

import pytest
from wirespeed_lab import places
from wirespeed_lab.contender import Contender, ContenderFailed, Running
from wirespeed_lab.origin import Origin, Synthetic

sys.path.insert(0, str(places.step_protocol()))

import step_protocol
import synthetic_bytes

#: Gets one object over plain HTTP, and spoils what it is told to.
DRIVER = """
import step_protocol, urllib.request
p = step_protocol.parser("a driver", ("get", "list"))
p.add_argument("--spoil", type=int, default=-1)
work = p.parse_args()

def get(done):
    with done.clock:
        url = f"{work.endpoint}/{work.bucket}/{work.key}"
        body = bytearray(urllib.request.urlopen(url).read())
    if work.spoil >= 0:
        body[work.spoil] ^= 1
    done.received(work.key, body)
    done.objects = 1

def listing(done):
    keys = step_protocol.numbered(work)
    with done.clock:
        found = list(keys)[: len(keys) - max(work.spoil, 0)]
    done.listed(found)

step_protocol.serve(work, {"get": get, "list": listing})
"""
SIZE = 3 << 20


@pytest.fixture(scope="module")
def origin():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "origin", lambda: places.target() / "debug" / "wirespeed-origin")
        server = Origin(0, synthetic=(Synthetic("bench", "one", SIZE),))
    with server:
        yield server


def contender(endpoint, *arguments):
    command = (
        sys.executable,
        "-c",
        DRIVER,
        "--endpoint",
        endpoint,
        "--bucket",
        "bench",
        *arguments,
    )
    return Contender("it", "peer", command, {"PYTHONPATH": str(places.step_protocol())})


def test_a_round_says_what_was_moved_and_what_it_cost(origin):
    get = contender(origin.endpoint, *("--mode", "get", "--key", "one", "--step"))
    with Running(get, 0) as running:
        for _ in range(2):
            round = running.go()
            assert (round["bytes"], round["objects"]) == (SIZE, 1)
            assert round["seconds"] > 0
            assert round["user_s"] + round["system_s"] > 0
            assert round["peak_rss_bytes"] > SIZE


@pytest.mark.parametrize("at", [0, 1_500_000, SIZE - 1])
def test_one_wrong_byte_ends_the_driver(origin, at):
    get = contender(origin.endpoint, "--mode", "get", "--key", "one", "--spoil", str(at), "--step")
    with Running(get, 0) as running, pytest.raises(ContenderFailed, match=f"them is at {at}"):
        running.go()


def test_a_listing_that_misses_a_key_ends_the_driver():
    series = ("--mode", "list", "--prefix", "p/", "--count", "50", "--step")
    with Running(contender("http://x", *series), 0) as running:
        assert running.go()["objects"] == 50
    with (
        Running(contender("http://x", *series, "--spoil", "1"), 0) as running,
        pytest.raises(ContenderFailed, match="wrong listing: 49 keys"),
    ):
        running.go()


def test_without_steps_there_is_one_round():
    it = contender("http://x", "--mode", "list", "--prefix", "p/", "--count", "5")
    environment = {"PYTHONPATH": str(places.step_protocol())}
    done = subprocess.run(it.command, capture_output=True, check=True, env=environment)
    assert json.loads(done.stdout)["objects"] == 5


def test_the_server_counts_requests_and_bytes(origin):
    before = origin.counts()
    with urllib.request.urlopen(f"{origin.endpoint}/bench/one") as answer:
        answer.read()
    after = origin.counts()
    assert after["server_requests"] - before["server_requests"] == 1
    assert SIZE < after["server_bytes"] - before["server_bytes"] < SIZE + 4_000


def test_the_server_computes_the_same_bytes(origin):
    with urllib.request.urlopen(f"{origin.endpoint}/bench/one") as answer:
        body = memoryview(answer.read())
    assert synthetic_bytes.first_difference("one", body, 0, every=True) is None
    assert synthetic_bytes.first_difference("one", body[70_000:], 70_000, every=True) is None
    assert synthetic_bytes.first_difference("other", body, 0, every=False) is not None
    assert synthetic_bytes.first_difference("one", body, 1, every=False) is not None


def test_scattered_ranges_are_the_same_for_all_and_never_overlap():
    arguments = ("--mode", "x", "--endpoint", "e", "--bucket", "b", "--size", "1MiB")
    parse = step_protocol.parser("", ("x",)).parse_args
    work = parse([*arguments, "--count", "100", "--range", "8KiB"])
    ranges = step_protocol.scattered(work)
    assert ranges == step_protocol.scattered(work)
    assert ranges != sorted(ranges)
    ordered = sorted(ranges)
    assert all(end - start == 8 << 10 for start, end in ranges)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(ordered))
    assert ordered[-1][1] <= 1 << 20
    assert [*step_protocol.parts(parse([*arguments, "--part", "700KiB"]))] == [
        (0, 716_800),
        (716_800, 1 << 20),
    ]
