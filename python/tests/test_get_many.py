"""Many objects and ranges in one call: as a list, as they finish, into memory of the caller's."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy
import pytest

import wirespeed

KIB = 1 << 10
MIB = 1 << 20
COUNT = 300


def body(index: int) -> bytes:
    return random.Random(index).randbytes(index * 37 % 5000)


@pytest.fixture
def small(client: wirespeed.Client, bucket: str) -> list[str]:
    """The locations of COUNT small objects, of which the i-th is `body(i)`."""

    async def fill() -> None:
        puts = (client.aio.put(f"k/{i}", body(i), bucket=bucket) for i in range(COUNT))
        await asyncio.gather(*puts)

    asyncio.run(fill())
    return [f"s3://{bucket}/k/{index}" for index in range(COUNT)]


def comes_back(client: wirespeed.Client) -> bool:
    """Whether all of the client's memory comes back; stopped tasks end at their next turn."""
    deadline = time.monotonic() + 5
    while client.metrics()["memory_in_use"] and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    return client.metrics()["memory_in_use"] == 0


def test_a_list_is_in_the_order_of_the_items(verbs: Any, small: list[str]) -> None:
    order = random.Random(1).sample(range(COUNT), COUNT)
    got = verbs.get_many([small[index] for index in order])
    assert [bytes(one) for one in got] == [body(index) for index in order]
    assert {type(one) for one in got} == {wirespeed.Buffer}
    assert [one.info.size for one in got] == [len(body(index)) for index in order]


def test_a_small_object_is_one_request(verbs: Any, small: list[str], stats: Any) -> None:
    before = verbs.client.metrics()["requests"]
    verbs.get_many(small)
    assert verbs.client.metrics()["requests"] - before == COUNT


def test_as_bytes_gives_real_bytes(verbs: Any, small: list[str]) -> None:
    got = verbs.get_many(small, as_bytes=True)
    assert {type(one) for one in got} == {bytes}
    assert got == [body(index) for index in range(COUNT)]
    items = [(where, (1, 3)) for where in small]
    got = verbs.get_many([item for item in items if int(item[0].rpartition("/")[2]) % 100 == 1])
    assert [bytes(one) for one in got] == [body(index)[1:3] for index in (1, 101, 201)]


def test_ranges_as_bytes_are_made_before_they_arrive(verbs: Any, small: list[str]) -> None:
    wanted = [(1, (0, 10)), (2, (5, 60)), (3, (-4, None)), (4, (100, 9999)), (5, (3, None))]
    got = verbs.get_many([(small[index], range) for index, range in wanted], as_bytes=True)
    assert got == [body(index)[slice(*range)] for index, range in wanted]
    known = verbs.get_many([(small[index], range) for index, range in wanted[:4]], as_bytes=True)
    assert known == got[:4]


def test_each_object_lands_in_its_destination(verbs: Any, small: list[str]) -> None:
    array = numpy.full((COUNT, 5000), 255, "u1")
    lengths = verbs.get_many(small, into=list(array))
    assert lengths == [len(body(index)) for index in range(COUNT)]
    for index, length in enumerate(lengths):
        assert array[index, :length].tobytes() == body(index)
        assert (array[index, length:] == 255).all()


def test_as_completed_gives_each_index_once(verbs: Any, small: list[str]) -> None:
    for options in ({}, {"as_bytes": True}):
        pairs = verbs.each(verbs.get_many(small, as_completed=True, **options))
        assert sorted(index for index, _ in pairs) == list(range(COUNT))
        assert all(bytes(got) == body(index) for index, got in pairs)


def test_as_completed_into_says_lengths(verbs: Any, small: list[str]) -> None:
    into = [bytearray(len(body(index))) for index in range(COUNT)]
    pairs = verbs.each(verbs.get_many(small, as_completed=True, into=into))
    assert sorted(pairs) == [(index, len(body(index))) for index in range(COUNT)]
    assert into == [body(index) for index in range(COUNT)]


def test_what_finishes_first_is_given_first(verbs: Any, origin: Any, small: list[str]) -> None:
    bucket, _, key = small[0].removeprefix("s3://").partition("/")
    fault = {"action": "delay:700", "verb": "get", "bucket": bucket, "key": key}
    with origin.misbehaving(fault):
        pairs = verbs.each(verbs.get_many(small, as_completed=True))
    assert pairs[-1][0] == 0


def test_more_than_memory_holds_comes_as_it_is_taken(
    new_client: Any, client: wirespeed.Client, bucket: str
) -> None:
    tight = new_client(memory=32 * MIB)
    for index in range(24):
        client.put(f"m/{index}", bytes([index]) * (4 * MIB), bucket=bucket)
    keys = [f"m/{index}" for index in range(24)]
    seen = set()
    for index, got in tight.get_many(keys, bucket=bucket, as_completed=True):
        assert bytes(got[-4:]) == bytes([index]) * 4
        assert tight.metrics()["memory_in_use"] <= 40 * MIB
        seen.add(index)
    assert len(seen) == 24


def test_a_large_object_may_be_among_small_ones(verbs: Any, small: list[str], bucket: str) -> None:
    large = random.Random(9).randbytes(21 * MIB + 5)
    verbs.put("large", large, bucket=bucket)
    items = [*small[:20], f"s3://{bucket}/large", *small[20:40]]
    expected = [body(index) for index in range(40)]
    expected.insert(20, large)
    assert [bytes(one) for one in verbs.get_many(items)] == expected
    assert verbs.get_many(items, as_bytes=True) == expected
    into = [bytearray(len(one)) for one in expected]
    verbs.get_many(items, into=into)
    assert into == expected


def test_the_first_failure_is_raised(verbs: Any, small: list[str], bucket: str) -> None:
    items = [*small, f"s3://{bucket}/absent"]
    into = [bytearray(5000) for _ in items]
    for options in ({}, {"as_bytes": True}, {"into": into}):
        with pytest.raises(wirespeed.NotFoundError) as raised:
            verbs.get_many(items, **options)
        assert raised.value.key == "absent"
        assert comes_back(verbs.client)
        for destination in into:
            destination.append(0)  # it is not lent any more
        completions = verbs.get_many(items, as_completed=True, **options)
        with pytest.raises(wirespeed.NotFoundError):
            verbs.each(completions)
        verbs.result(completions.close)
        assert comes_back(verbs.client)
        for destination in into:
            destination.pop()


def test_errors_can_stand_in_their_places(verbs: Any, small: list[str], bucket: str) -> None:
    items = [small[3], f"s3://{bucket}/absent", small[5], "s3://no-such-bucket-here/k"]
    for options in ({}, {"as_bytes": True}, {"into": [bytearray(5000) for _ in items]}):
        got = verbs.get_many(items, errors="return", **options)
        assert [isinstance(one, wirespeed.NotFoundError) for one in got] == [
            False,
            True,
            False,
            True,
        ]
        assert (got[1].key, got[1].code) == ("absent", "NoSuchKey")
        assert (got[3].bucket, got[3].code) == ("no-such-bucket-here", "NoSuchBucket")
        pairs = verbs.each(verbs.get_many(items, errors="return", as_completed=True, **options))
        assert sorted(index for index, one in pairs if isinstance(one, Exception)) == [1, 3]


def test_buckets_may_differ(verbs: Any, new_bucket: Any) -> None:
    buckets = [new_bucket() for _ in range(3)]
    for bucket in buckets:
        verbs.put("k", bucket.encode(), bucket=bucket)
    wanted = [buckets[index % 3] for index in range(10)]
    got = verbs.get_many([f"s3://{bucket}/k" for bucket in wanted])
    assert [bytes(one).decode() for one in got] == wanted
    pairs = verbs.each(verbs.get_many([f"s3://{b}/k" for b in wanted], as_completed=True))
    assert {index: bytes(one).decode() for index, one in pairs} == dict(enumerate(wanted))


def test_the_same_object_may_be_asked_for_twice(verbs: Any, small: list[str]) -> None:
    items = [small[7], small[8], small[7], (small[7], (0, 3)), small[7]]
    got = verbs.get_many(items)
    assert [bytes(one) for one in got] == [body(7), body(8), body(7), body(7)[:3], body(7)]


def test_nothing_asked_is_nothing_given(verbs: Any) -> None:
    before = verbs.client.metrics()["requests"]
    assert verbs.get_many([]) == []
    assert verbs.get_many([], as_bytes=True) == []
    assert verbs.get_many([], into=[]) == []
    assert verbs.each(verbs.get_many([], as_completed=True)) == []
    assert verbs.client.metrics()["requests"] == before


def test_items_may_come_from_a_generator(verbs: Any, small: list[str], bucket: str) -> None:
    got = verbs.get_many((f"k/{index}" for index in range(10)), bucket=bucket)
    assert [bytes(one) for one in got] == [body(index) for index in range(10)]

    def breaks() -> Any:
        yield small[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        verbs.get_many(breaks())


def test_a_bucket_argument_makes_every_item_a_key(verbs: Any, bucket: str) -> None:
    verbs.put("s3://not/a/uri", b"literal", bucket=bucket)
    assert verbs.get_many(["s3://not/a/uri"], bucket=bucket)[0] == b"literal"


def test_progress_counts_objects(verbs: Any, small: list[str]) -> None:
    total = sum(len(body(index)) for index in range(COUNT))
    for options in ({}, {"as_bytes": True}, {"into": [bytearray(5000) for _ in small]}):
        seen: list[wirespeed.Progress] = []
        verbs.get_many(small, progress=seen.append, **options)
        assert (seen[-1].objects, seen[-1].bytes) == (COUNT, total)


def test_what_a_progress_callback_raises_stops_the_call(verbs: Any, small: list[str]) -> None:
    def refuse(progress: wirespeed.Progress) -> None:
        raise ZeroDivisionError

    for options in ({}, {"as_bytes": True}):
        with pytest.raises(ZeroDivisionError):
            verbs.get_many(small, progress=refuse, **options)
        with pytest.raises(ZeroDivisionError):
            verbs.each(verbs.get_many(small, progress=refuse, as_completed=True, **options))
    assert comes_back(verbs.client)


def test_an_iterator_that_is_closed_gives_nothing_more(verbs: Any, small: list[str]) -> None:
    completions = verbs.get_many(small, as_completed=True)
    verbs.result(completions.close)
    assert verbs.each(completions) == []
    verbs.result(completions.close)
    del completions
    assert comes_back(verbs.client)


def test_an_iterator_that_is_dropped_stops_the_rest(
    client: wirespeed.Client, origin: Any, small: list[str]
) -> None:
    bucket, _, key = small[0].removeprefix("s3://").partition("/")
    into = [bytearray(5000) for _ in small]
    with origin.misbehaving({"action": "stall", "verb": "get", "bucket": bucket, "key": key}):
        completions = client.get_many(small, as_completed=True, into=into)
        next(completions)
        del completions
        for destination in into:
            destination.append(0)  # it is not lent any more
        with client.get_many(small, as_completed=True) as completions:
            next(completions)
        del completions
        assert comes_back(client)


def test_an_async_iterator_is_a_context_manager(client: wirespeed.Client, small: list[str]) -> None:
    async def first() -> int:
        async with client.aio.get_many(small, as_completed=True) as completions:
            async for index, got in completions:
                assert bytes(got) == body(index)
                return index
        raise AssertionError("nothing came")

    assert asyncio.run(first()) in range(COUNT)
    assert comes_back(client)


def test_as_completed_begins_at_once(verbs: Any, small: list[str]) -> None:
    before = verbs.client.metrics()["requests"]
    completions = verbs.get_many(small, as_completed=True)
    deadline = time.monotonic() + 5
    while verbs.client.metrics()["requests"] == before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert verbs.client.metrics()["requests"] > before
    verbs.result(completions.close)


def test_options_apply_to_every_item(verbs: Any, s3: Any, versioned_bucket: str) -> None:
    first = s3.put_object(Bucket=versioned_bucket, Key="k", Body=b"first")["VersionId"]
    s3.put_object(Bucket=versioned_bucket, Key="k", Body=b"second")
    got = verbs.get_many(["k", "k"], bucket=versioned_bucket, version_id=first)
    assert [bytes(one) for one in got] == [b"first", b"first"]
    got = verbs.get_many(["k"], bucket=versioned_bucket, if_match='"other"', errors="return")
    assert isinstance(got[0], wirespeed.PreconditionError)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "advice"),
    [
        (("s3://b/k",), {}, TypeError, r"write \[location\]"),
        ((None,), {}, TypeError, "iter"),
        ((5,), {}, TypeError, "iter"),
        (([b"s3://b/k"],), {}, TypeError, "decode"),
        (([("s3://b/k", 0, 5)],), {}, TypeError, "pair"),
        (([("s3://b/k", (5, 3))],), {}, ValueError, "0 <= start <= stop"),
        (([("s3://b/k", "0-5")],), {}, TypeError, r"\(start, stop\)"),
        ((["k"],), {}, ValueError, "bucket="),
        ((["s3://b/k"],), {"into": []}, ValueError, "0 destinations for 1 items"),
        ((["s3://b/k"],), {"into": [b"x"]}, BufferError, "writable"),
        ((["s3://b/k"],), {"into": 7}, TypeError, "iter"),
        ((["s3://b/k"],), {"into": [bytearray(1)], "as_bytes": True}, ValueError, "choose one"),
        ((["s3://b/k"],), {"errors": "ignore"}, ValueError, '"raise" or "return"'),
        ((["s3://b/k"],), {"max_gap": -1}, ValueError, "max_gap"),
        ((["s3://b/k"],), {"no_range": (0, 1)}, TypeError, "no option"),
    ],
)
def test_what_cannot_be_done_is_said(
    verbs: Any, arguments: Any, options: dict[str, Any], error: type[Exception], advice: str
) -> None:
    with pytest.raises(error, match=advice):
        verbs.get_many(*arguments, **options)


def test_destinations_are_free_after_a_refusal(verbs: Any) -> None:
    destination = bytearray(8)
    with pytest.raises(BufferError):
        verbs.get_many(["s3://b/a", "s3://b/b"], into=[destination, b"read-only"])
    destination.append(0)
    with pytest.raises(ValueError, match="destinations"):
        verbs.get_many(["s3://b/a", "s3://b/b"], into=[destination])
    destination.append(0)


@pytest.fixture
def slow(new_client: Any, origin: Any, small: list[str]) -> Any:
    """A client whose objects come one by one, each after some milliseconds."""
    bucket = small[0].removeprefix("s3://").partition("/")[0]
    with origin.misbehaving({"action": "delay:20", "verb": "get", "bucket": bucket}):
        yield new_client(concurrency=1)


OPTIONS = ({"as_bytes": True}, {"as_bytes": True, "as_completed": True}, {"as_completed": True})


@pytest.mark.parametrize("options", OPTIONS)
def test_progress_is_told_also_where_something_always_comes(
    slow: Any, small: list[str], options: dict[str, Any]
) -> None:
    seen: list[wirespeed.Progress] = []
    got = slow.get_many(small[:60], progress=seen.append, **options)
    assert len(list(got)) == 60
    assert 3 < len(seen) < 40
    assert seen[-1].objects == 60


@pytest.mark.parametrize("options", OPTIONS)
def test_ctrl_c_is_heard_also_where_something_always_comes(
    slow: Any, small: list[str], options: dict[str, Any]
) -> None:
    before = slow.metrics()["requests"]
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        list(slow.get_many(small[:200], **options))
    assert slow.metrics()["requests"] - before < 100


def test_a_progress_callback_may_wait_for_another_thread(
    small: list[str], environment: dict[str, str]
) -> None:
    # Run elsewhere: a thread that waited for a lock would hold the interpreter for ever.
    script = """
import sys, threading
import wirespeed

entered, done = threading.Event(), threading.Event()

def told(progress):
    if not entered.is_set():
        entered.set()
        assert done.wait(20)

def other():
    assert entered.wait(20)
    for _ in completions:
        pass
    done.set()

items = sys.argv[1:]
completions = wirespeed.get_many(items, as_completed=True, progress=told)
thread = threading.Thread(target=other)
thread.start()
for _ in completions:
    pass
assert done.is_set()
"""
    run = subprocess.run(
        [sys.executable, "-c", script, *small], env=environment, timeout=60, capture_output=True
    )
    assert (run.returncode, run.stderr) == (0, b"")


def test_a_length_that_is_not_true_is_not_believed(verbs: Any, bucket: str) -> None:
    for verb in (verbs.get_many, verbs.put_many, verbs.download, verbs.upload):
        with pytest.raises(TypeError):
            verb(range(10**12), bucket=bucket)


def test_closing_does_not_wait_for_what_stalls(
    client: wirespeed.Client, origin: Any, small: list[str]
) -> None:
    bucket, _, key = small[0].removeprefix("s3://").partition("/")
    into = bytearray(5000)
    with origin.misbehaving({"action": "stall", "verb": "get", "bucket": bucket, "key": key}):
        completions = client.get_many(small[:1], as_completed=True, into=[into])
        rest: list[Any] = []
        thread = threading.Thread(target=lambda: rest.extend(completions))
        thread.start()
        time.sleep(0.3)
        began = time.monotonic()
        completions.close()
        into.append(0)  # it is not lent any more
        thread.join(10)
        assert time.monotonic() - began < 3
        assert rest == []

        async def run() -> float:
            completions = client.aio.get_many(small[:1], as_completed=True)
            waiting = asyncio.ensure_future(anext(completions))
            await asyncio.sleep(0.3)
            began = time.monotonic()
            closed = completions.close()
            took = time.monotonic() - began
            await asyncio.wait_for(closed, 3)
            with pytest.raises(StopAsyncIteration):
                await asyncio.wait_for(waiting, 3)
            return took

        assert asyncio.run(run()) < 0.2


def test_as_bytes_takes_no_memory_for_what_may_not_come(
    client: wirespeed.Client, small: list[str]
) -> None:
    def peak() -> int:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmPeak")) * KIB

    before = peak()
    items = [(where, (0, 60 * MIB)) for where in small[1:]] * 2
    expected = [body(index) for index in range(1, COUNT)] * 2
    full = [(item, one) for item, one in zip(items, expected, strict=True) if one]
    items, expected = [item for item, _ in full], [one for _, one in full]
    assert client.get_many(items, as_bytes=True) == expected
    for index, got in client.get_many(items, as_bytes=True, as_completed=True):
        assert got == expected[index]
    assert peak() - before < 8192 * MIB


@pytest.mark.parametrize("with_into", [False, True])
def test_a_failure_that_is_raised_stops_the_rest(
    new_client: Any, origin: Any, bucket: str, small: list[str], with_into: bool
) -> None:
    one_by_one = new_client(concurrency=1)
    items = [f"s3://{bucket}/absent", *small]
    into = [bytearray(5000) for _ in items]
    options = {"into": into} if with_into else {}
    with origin.misbehaving({"action": "delay:30", "verb": "get", "bucket": bucket}):
        completions = one_by_one.get_many(items, as_completed=True, **options)
        with pytest.raises(wirespeed.NotFoundError):
            list(completions)
        for destination in into:
            destination.append(0)  # it is not lent any more
        before = one_by_one.metrics()["requests"]
        assert list(completions) == []
        time.sleep(0.3)
        assert one_by_one.metrics()["requests"] - before < 3


def test_destinations_that_overlap_are_refused(verbs: Any, small: list[str]) -> None:
    memory = bytearray(10_000)
    view = memoryview(memory)
    for into in ([memory, memory], [view[:5001], view[5000:]], [view[5000:], view[:5001]]):
        for as_completed in (False, True):
            with pytest.raises(ValueError, match="overlap"):
                verbs.get_many(small[:2], into=into, as_completed=as_completed)
    assert verbs.get_many(small[3:5], into=[view[:5000], view[5000:]]) == [111, 148]
    empty = bytearray()
    verbs.get_many(small[:1] * 2, into=[empty, empty])
    view.release()


def test_closing_after_the_client_raises_nothing(new_client: Any, small: list[str]) -> None:
    client = new_client()
    completions = client.get_many(small, as_completed=True)
    with pytest.raises(ZeroDivisionError), client.get_many(small, as_completed=True):
        client.close()
        raise ZeroDivisionError
    completions.close()

    async def run() -> None:
        client = new_client()
        completions = client.aio.get_many(small, as_completed=True)
        client.close()
        await completions.close()

    asyncio.run(run())
