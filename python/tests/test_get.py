"""GET into the engine's memory, into bytes, and through a callback, in both views."""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import wirespeed

MIB = 1 << 20
# Several parts, and a last one that is short.
LARGE = 20 * MIB + 7


def noise(size: int, seed: int = 1) -> bytes:
    """Bytes in which no two places look alike."""
    return random.Random(seed).randbytes(size)


@pytest.fixture(scope="module")
def large() -> bytes:
    return noise(LARGE)


def in_use(client: wirespeed.Client) -> int:
    """The memory that a client has given out, in bytes."""
    return client.metrics()["memory_in_use"]


def comes_back(client: wirespeed.Client, to: int = 0) -> bool:
    """Whether the client's memory comes back; tasks that were stopped end at their next turn."""
    deadline = time.monotonic() + 5
    while in_use(client) > to and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    return in_use(client) <= to


@pytest.mark.every_store
@pytest.mark.parametrize("size", [0, 1, 4097, 3 * MIB + 1])
def test_what_was_put_comes_back(verbs: Any, s3: Any, bucket: str, size: int) -> None:
    data = noise(size)
    s3.put_object(Bucket=bucket, Key="a/b c+é", Body=data)
    got = verbs.get(f"s3://{bucket}/a/b c+é")
    assert isinstance(got, wirespeed.Buffer)
    assert bytes(got) == data
    assert got.info.size == size


@pytest.mark.every_store
def test_a_large_object_is_put_together_in_order(
    verbs: Any, s3: Any, bucket: str, large: bytes
) -> None:
    s3.put_object(Bucket=bucket, Key="large", Body=large)
    assert verbs.get("large", bucket=bucket) == large


@pytest.mark.every_store
def test_as_bytes_gives_real_bytes(verbs: Any, s3: Any, bucket: str, large: bytes) -> None:
    s3.put_object(Bucket=bucket, Key="large", Body=large)
    s3.put_object(Bucket=bucket, Key="empty", Body=b"")
    got = verbs.get("large", bucket=bucket, as_bytes=True)
    assert type(got) is bytes
    assert got == large
    assert verbs.get("empty", bucket=bucket, as_bytes=True) == b""
    assert verbs.get("large", bucket=bucket, as_bytes=True, range=(-5, None)) == large[-5:]


@pytest.mark.every_store
@pytest.mark.parametrize(
    ("range", "expected"),
    [
        ((0, 1), slice(0, 1)),
        ((10, 20), slice(10, 20)),
        ((1 * MIB, 19 * MIB + 3), slice(1 * MIB, 19 * MIB + 3)),
        ((20 * MIB, None), slice(20 * MIB, None)),
        ((None, 100), slice(0, 100)),
        ((-100, None), slice(-100, None)),
        (slice(5, 7), slice(5, 7)),
        (slice(-3, None), slice(-3, None)),
        ((None, None), slice(None)),
        ((LARGE - 3, LARGE + 100), slice(LARGE - 3, None)),
        ((-2 * LARGE, None), slice(None)),
    ],
)
def test_a_range_is_that_of_a_slice(
    verbs: Any, s3: Any, bucket: str, large: bytes, range: Any, expected: slice
) -> None:
    s3.put_object(Bucket=bucket, Key="large", Body=large)
    assert verbs.get("large", bucket=bucket, range=range) == large[expected]


def test_a_range_says_the_size_of_the_whole(verbs: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    got = verbs.get("k", bucket=bucket, range=(2, 5))
    assert (bytes(got), got.info.size) == (b"234", 10)


def test_an_empty_range_is_refused(verbs: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    with pytest.raises(wirespeed.ConfigError, match="the range is empty"):
        verbs.get("k", bucket=bucket, range=(5, 5))


def test_info_says_what_the_server_knows(verbs: Any, s3: Any, bucket: str) -> None:
    s3.put_object(
        Bucket=bucket,
        Key="k",
        Body=b"hello",
        ContentType="text/x-test",
        CacheControl="no-store",
        Metadata={"colour": "blue"},
    )
    before = datetime.now(UTC) - timedelta(minutes=1)
    info = verbs.get("k", bucket=bucket).info
    head = s3.head_object(Bucket=bucket, Key="k")
    assert info.size == 5
    assert info.etag == head["ETag"]
    assert info.content_type == "text/x-test"
    assert info.cache_control == "no-store"
    assert info.metadata == {"colour": "blue"}
    assert info.last_modified == head["LastModified"]
    assert before < info.last_modified


def test_a_version_is_read_by_its_id(verbs: Any, s3: Any, versioned_bucket: str) -> None:
    first = s3.put_object(Bucket=versioned_bucket, Key="k", Body=b"first")["VersionId"]
    s3.put_object(Bucket=versioned_bucket, Key="k", Body=b"second")
    got = verbs.get("k", bucket=versioned_bucket, version_id=first)
    assert (bytes(got), got.info.version_id) == (b"first", first)
    assert verbs.get("k", bucket=versioned_bucket) == b"second"


def test_conditions_decide(verbs: Any, s3: Any, bucket: str) -> None:
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"x")["ETag"]
    future, past = datetime.now(UTC) + timedelta(hours=1), datetime(2000, 1, 1, tzinfo=UTC)
    where = {"bucket": bucket}
    assert verbs.get("k", **where, if_match=etag) == b"x"
    assert verbs.get("k", **where, if_none_match='"other"') == b"x"
    assert verbs.get("k", **where, if_modified_since=past) == b"x"
    assert verbs.get("k", **where, if_unmodified_since=future) == b"x"
    for unmet in (
        {"if_match": '"other"'},
        {"if_none_match": etag},
        {"if_unmodified_since": past},
    ):
        with pytest.raises(wirespeed.PreconditionError):
            verbs.get("k", **where, **unmet)


def test_a_customers_key_opens_what_it_locked(verbs: Any, bucket: str) -> None:
    key = os.urandom(32)
    verbs.put("k", b"locked", bucket=bucket, sse_customer_key=key)
    assert verbs.get("k", bucket=bucket, sse_customer_key=key) == b"locked"
    with pytest.raises(wirespeed.WirespeedError):
        verbs.get("k", bucket=bucket)


def test_bytes_are_compared_with_the_objects_checksum(
    verbs: Any, bucket: str, large: bytes
) -> None:
    verbs.put("large", large, bucket=bucket)
    assert verbs.get("large", bucket=bucket, verify=True).info.verified == "verified"
    assert verbs.get("large", bucket=bucket, verify=False).info.verified != "verified"


def test_flipped_bits_are_not_handed_over(verbs: Any, origin: Any, bucket: str) -> None:
    verbs.put("k", noise(MIB), bucket=bucket)
    fault = {"action": "corrupt:1", "verb": "get", "bucket": bucket, "key": "k"}
    with origin.misbehaving(fault), pytest.raises(wirespeed.IntegrityError) as raised:
        verbs.get("k", bucket=bucket)
    assert raised.value.key == "k"


def test_a_broken_connection_is_retried_unseen(
    verbs: Any, origin: Any, bucket: str, large: bytes
) -> None:
    verbs.put("large", large, bucket=bucket)
    fault = {"action": "close-after:1000", "verb": "get", "bucket": bucket, "times": 2}
    with origin.misbehaving(fault):
        assert verbs.get("large", bucket=bucket) == large
    assert verbs.client.metrics()["retries"] >= 2


def test_on_part_sees_every_byte_once(verbs: Any, bucket: str, large: bytes) -> None:
    verbs.put("large", large, bucket=bucket)
    out, seen = bytearray(LARGE), bytearray(LARGE)
    kinds = set()

    def on_part(offset: int, view: memoryview) -> None:
        kinds.add((type(view), view.readonly, view.format))
        assert not any(seen[offset : offset + len(view)])
        seen[offset : offset + len(view)] = b"\1" * len(view)
        out[offset : offset + len(view)] = view

    info = verbs.get("large", bucket=bucket, on_part=on_part)
    assert out == large
    assert all(seen)
    assert kinds == {(memoryview, True, "B")}
    assert info.size == LARGE


def test_on_part_counts_offsets_in_the_object(verbs: Any, bucket: str, large: bytes) -> None:
    verbs.put("large", large, bucket=bucket)
    parts: dict[int, bytes] = {}
    start, stop = MIB + 3, 12 * MIB
    verbs.get(
        "large",
        bucket=bucket,
        range=(start, stop),
        on_part=lambda o, v: parts.update({o: bytes(v)}),
    )
    assert min(parts) == start
    assert b"".join(parts[offset] for offset in sorted(parts)) == large[start:stop]


def test_on_part_is_called_in_the_thread_that_waits(verbs: Any, bucket: str, large: bytes) -> None:
    verbs.put("large", large, bucket=bucket)
    threads = set()
    verbs.get("large", bucket=bucket, on_part=lambda o, v: threads.add(threading.get_ident()))
    assert threads == {threading.get_ident()}


def test_parts_that_are_let_go_give_their_memory_back(new_client: Any, bucket: str) -> None:
    # More than the client may hold: it ends only if memory comes back part by part.
    size = 96 * MIB
    small = new_client(memory=32 * MIB)
    small.put("big", bytes(size), bucket=bucket)
    lengths: list[int] = []
    before = in_use(small)
    small.get("big", bucket=bucket, on_part=lambda o, v: lengths.append(len(v)))
    assert sum(lengths) == size
    assert comes_back(small, before)


def test_views_outlive_the_call_and_the_client(new_client: Any, bucket: str, large: bytes) -> None:
    client = new_client()
    client.put("large", large, bucket=bucket)
    kept: list[tuple[int, memoryview]] = []
    client.get("large", bucket=bucket, on_part=lambda o, v: kept.append((o, v)))
    client.close()
    del client
    gc.collect()
    assert b"".join(view for _, view in sorted(kept)) == large


def test_a_buffer_gives_its_memory_back(verbs: Any, bucket: str, large: bytes) -> None:
    verbs.put("large", large, bucket=bucket)
    before = in_use(verbs.client)
    got = verbs.get("large", bucket=bucket)
    assert in_use(verbs.client) >= before + LARGE
    del got
    assert comes_back(verbs.client, before)


class Refusal(Exception):
    """What a callback of these tests raises."""


def test_what_on_part_raises_surfaces_and_stops_the_transfer(verbs: Any, bucket: str) -> None:
    size = 64 * MIB
    verbs.put("big", bytes(size), bucket=bucket)
    calls: list[int] = []

    def refuse(offset: int, view: memoryview) -> None:
        calls.append(offset)
        del view
        raise Refusal("enough")

    before = in_use(verbs.client)
    with pytest.raises(Refusal, match="enough") as raised:
        verbs.get("big", bucket=bucket, on_part=refuse)
    assert len(calls) == 1
    # Even while its traceback is held, as a debugger or a logger does.
    assert raised.value is not None
    assert comes_back(verbs.client, before)
    # And the client goes on.
    assert len(verbs.get("big", bucket=bucket)) == size


def test_what_a_progress_callback_raises_surfaces_and_stops_the_transfer(
    verbs: Any, origin: Any, bucket: str, large: bytes
) -> None:
    verbs.put("large", large, bucket=bucket)

    def refuse(progress: wirespeed.Progress) -> None:
        raise Refusal("enough")

    for options in ({}, {"as_bytes": True}, {"on_part": lambda o, v: None}):
        with pytest.raises(Refusal):
            verbs.get("large", bucket=bucket, progress=refuse, **options)
    assert comes_back(verbs.client)
    fault = {"action": "stall-after:1000", "verb": "get", "bucket": bucket}
    with origin.misbehaving(fault), pytest.raises(Refusal):
        verbs.get("large", bucket=bucket, progress=refuse)


def test_progress_ends_with_all_of_it(verbs: Any, bucket: str, large: bytes) -> None:
    verbs.put("large", large, bucket=bucket)
    for options in ({}, {"as_bytes": True}, {"on_part": lambda o, v: None}):
        seen: list[wirespeed.Progress] = []
        verbs.get("large", bucket=bucket, progress=seen.append, **options)
        last = seen[-1]
        assert (last.bytes, last.expected, last.objects) == (LARGE, LARGE, 1)
        assert [one.bytes for one in seen] == sorted(one.bytes for one in seen)


def test_a_missing_object_says_what_is_missing(verbs: Any, bucket: str) -> None:
    for options in ({}, {"as_bytes": True}, {"on_part": lambda o, v: None}):
        with pytest.raises(wirespeed.NotFoundError) as raised:
            verbs.get("absent", bucket=bucket, **options)
        error = raised.value
        assert isinstance(error, FileNotFoundError)
        assert (error.bucket, error.key, error.status, error.code) == (
            bucket,
            "absent",
            404,
            "NoSuchKey",
        )
        assert error.operation == "get"
        assert error.attempts == 1
        assert f"s3://{bucket}/absent" in str(error) or "absent" in str(error)


def test_keys_are_taken_literally(verbs: Any, s3: Any, bucket: str) -> None:
    keys = ["a%20b", "a b", "a+b", "é/ü", "?q=1", "#f", "a//b", "..", "k\n", "'\"<>&"]
    for index, key in enumerate(keys):
        s3.put_object(Bucket=bucket, Key=key, Body=str(index))
    for index, key in enumerate(keys):
        assert verbs.get(f"s3://{bucket}/{key}") == str(index).encode(), key


def test_the_modules_verbs_work_on_a_client_of_the_environment(
    environment: dict[str, str], bucket: str
) -> None:
    import asyncio

    wirespeed.set_default_client(None)
    try:
        wirespeed.put("k", b"default", bucket=bucket)
        assert wirespeed.get(f"s3://{bucket}/k") == b"default"

        async def awaited() -> bytes:
            return bytes(await wirespeed.aio.get(f"s3://{bucket}/k"))

        assert asyncio.run(awaited()) == b"default"
    finally:
        wirespeed.set_default_client(None)
