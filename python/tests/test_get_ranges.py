"""Many ranges of one object in one call, joined where they lie near each other."""

from __future__ import annotations

import random
from typing import Any

import pytest

import wirespeed

KIB = 1 << 10
MIB = 1 << 20
SIZE = 2 * MIB


@pytest.fixture(scope="module")
def data() -> bytes:
    return random.Random(4).randbytes(SIZE)


@pytest.fixture
def where(s3: Any, bucket: str, data: bytes) -> str:
    s3.put_object(Bucket=bucket, Key="k", Body=data)
    return f"s3://{bucket}/k"


def requests(client: wirespeed.Client) -> int:
    return client.metrics()["requests"]


def test_ranges_come_in_their_order(verbs: Any, where: str, data: bytes) -> None:
    ranges = [(at, at + 100) for at in range(0, SIZE - 100, 50_000)]
    random.Random(5).shuffle(ranges)
    for as_bytes in (False, True):
        got = verbs.get_ranges(where, ranges, as_bytes=as_bytes)
        assert {type(one) for one in got} == {bytes if as_bytes else wirespeed.Buffer}
        assert [bytes(one) for one in got] == [data[slice(*range)] for range in ranges]


@pytest.mark.parametrize(
    ("ranges", "max_gap", "expected"),
    [
        ([(0, 10), (10, 20), (20, 30)], 0, 1),
        ([(0, 10), (11, 20)], 0, 2),
        ([(0, 10), (11, 20)], 1, 1),
        ([(0, 10), (1010, 1020)], 999, 2),
        ([(0, 10), (1010, 1020)], 1000, 1),
        ([(0, 100), (50, 150), (20, 30)], 0, 1),
        ([(5, 9), (5, 9), (5, 9)], 0, 1),
        ([(1 * MIB, 1 * MIB + 9), (0, 9)], 64 * KIB, 2),
        ([(at * 1000, at * 1000 + 8) for at in range(1000)], 992, 1),
    ],
)
def test_ranges_that_lie_near_are_one_request(
    verbs: Any, where: str, data: bytes, ranges: list[tuple[int, int]], max_gap: int, expected: int
) -> None:
    before = requests(verbs.client)
    got = verbs.get_ranges(where, ranges, max_gap=max_gap)
    assert requests(verbs.client) - before == expected
    assert [bytes(one) for one in got] == [data[slice(*range)] for range in ranges]


def test_get_many_joins_ranges_object_by_object(
    verbs: Any, s3: Any, bucket: str, where: str, data: bytes
) -> None:
    s3.put_object(Bucket=bucket, Key="other", Body=data[::-1])
    items = [("k", (0, 10)), ("other", (0, 10)), ("k", (12, 20)), ("other", (12, 20)), "other"]
    before = requests(verbs.client)
    got = verbs.get_many(items, bucket=bucket, max_gap=2)
    assert requests(verbs.client) - before == 3
    assert [bytes(one) for one in got] == [
        data[:10],
        data[::-1][:10],
        data[12:20],
        data[::-1][12:20],
        data[::-1],
    ]
    assert [
        type(one) for one in verbs.get_many(items, bucket=bucket, max_gap=2, as_bytes=True)
    ] == [bytes] * 5


def test_open_and_suffix_ranges_are_ranges_too(verbs: Any, where: str, data: bytes) -> None:
    ranges = [
        (-5, None),
        (SIZE - 10, None),
        (None, 7),
        (None, None),
        slice(3, 9),
        (SIZE - 2, SIZE + 9),
    ]
    got = verbs.get_ranges(where, ranges)
    slices = [one if isinstance(one, slice) else slice(*one) for one in ranges]
    assert [bytes(one) for one in got] == [data[one] for one in slices]


def test_joined_ranges_share_memory_and_free_it_together(verbs: Any, where: str) -> None:
    ranges = [(at * 4 * KIB, at * 4 * KIB + 1) for at in range(256)]
    got = verbs.get_ranges(where, ranges, max_gap=4 * KIB)
    held = verbs.client.metrics()["memory_in_use"]
    assert 0 < held <= 2 * MIB
    kept = got[128]
    del got
    assert verbs.client.metrics()["memory_in_use"] <= held
    del kept
    assert verbs.client.metrics()["memory_in_use"] == 0


def test_no_ranges_are_no_requests(verbs: Any, where: str) -> None:
    before = requests(verbs.client)
    assert verbs.get_ranges(where, []) == []
    assert requests(verbs.client) == before


def test_a_missing_object_is_said(verbs: Any, bucket: str) -> None:
    with pytest.raises(wirespeed.NotFoundError) as raised:
        verbs.get_ranges("absent", [(0, 5), (100, 105)], bucket=bucket)
    assert raised.value.key == "absent"


def test_a_range_behind_the_end_is_an_error(verbs: Any, where: str) -> None:
    with pytest.raises(wirespeed.WirespeedError) as raised:
        verbs.get_ranges(where, [(0, 5), (SIZE + 100, SIZE + 105)])
    assert raised.value.key == "k"


def test_an_object_that_changes_meanwhile_is_noticed(
    new_client: Any, origin: Any, bucket: str, where: str
) -> None:
    one_by_one = new_client(concurrency=1)
    fault = {"action": "replace:1000000", "verb": "get", "bucket": bucket, "nth": 3}
    with origin.misbehaving(fault), pytest.raises(wirespeed.PreconditionError):
        one_by_one.get_ranges(where, [(at * 100_000, at * 100_000 + 9) for at in range(8)])


@pytest.mark.parametrize(
    ("ranges", "options", "error", "advice"),
    [
        ([(5, 3)], {}, ValueError, "0 <= start <= stop"),
        ([(-5, 3)], {}, ValueError, "0 <= start <= stop"),
        ([(0, -3)], {}, ValueError, "last n bytes"),
        ([(0, 1, 2)], {}, TypeError, r"\(start, stop\)"),
        ([[0, 1]], {}, TypeError, r"\(start, stop\)"),
        ([5], {}, TypeError, r"\(start, stop\)"),
        ([("0", "5")], {}, TypeError, r"\(start, stop\)"),
        ([(0.5, 1.5)], {}, TypeError, r"\(start, stop\)"),
        ([slice(0, 10, 2)], {}, ValueError, "no step"),
        ([(1 << 70, None)], {}, (ValueError, TypeError, OverflowError), "range"),
        (5, {}, TypeError, "iter"),
        ([(0, 1)], {"max_gap": -1}, ValueError, "max_gap"),
        ([(0, 1)], {"max_gap": 1.5}, TypeError, "max_gap"),
    ],
)
def test_what_is_no_range_is_refused(
    verbs: Any, where: str, ranges: Any, options: dict[str, Any], error: Any, advice: str
) -> None:
    before = requests(verbs.client)
    with pytest.raises(error, match=advice):
        verbs.get_ranges(where, ranges, **options)
    assert requests(verbs.client) == before
