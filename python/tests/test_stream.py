"""Objects in order: as parts, as a file to read, and what a stream does when it cannot go on."""

from __future__ import annotations

import asyncio
import io
import os
import random
import signal
import threading
import time

import pytest

import wirespeed

MIB = 1 << 20
PART = 256 << 10
PAYLOAD = random.Random(4).randbytes(3 * MIB + 17)


@pytest.fixture
def small_parts(new_client):
    """A client whose streams have many parts."""
    return new_client(part_size=PART, multipart_threshold=MIB)


@pytest.fixture
def stored(s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=PAYLOAD)
    return f"s3://{bucket}/k"


@pytest.mark.every_store
def test_iterating_gives_the_parts_in_order(verbs, stored):
    with_parts = verbs.stream(stored, window=2 * PART)
    parts = verbs.each(with_parts)
    assert len(parts) > 1
    assert all(isinstance(part, wirespeed.Buffer) and part.info is None for part in parts)
    assert b"".join(parts) == PAYLOAD
    assert with_parts.length == with_parts.tell() == with_parts.info.size == len(PAYLOAD)


def test_a_stream_reads_as_a_file_does(verbs, stored):
    stream = verbs.stream(stored, window=2 * PART)
    taken, sizes = [], [1, 0, 7, PART, 3 * PART + 1, 100]
    for size in sizes:
        taken.append(verbs.result(stream.read, size))
        assert isinstance(taken[-1], bytes)
        assert len(taken[-1]) == size
        assert stream.tell() == sum(map(len, taken))
    taken.append(verbs.result(stream.read))
    assert b"".join(taken) == PAYLOAD
    assert verbs.result(stream.read) == b""
    assert verbs.result(stream.read, 5) == b""
    assert stream.info.verified == "verified" or "not" not in stream.info.verified


def test_readinto_fills_memory_of_the_callers(verbs, stored):
    stream = verbs.stream(stored)
    array = bytearray(len(PAYLOAD))
    with memoryview(array) as view:
        assert verbs.result(stream.readinto, view[:100]) == 100
        assert verbs.result(stream.readinto, view[100:]) == len(PAYLOAD) - 100
    assert array == PAYLOAD
    rest = bytearray(b"unchanged")
    assert verbs.result(stream.readinto, rest) == 0
    assert rest == b"unchanged"
    rest.clear()  # nothing holds it any more


def test_parts_and_reads_can_be_mixed(small_parts, stored):
    with small_parts.stream(stored) as stream:
        assert stream.read(10) == PAYLOAD[:10]
        assert next(stream) == PAYLOAD[10:PART]
        assert stream.read(3) == PAYLOAD[PART : PART + 3]
        assert b"".join(stream) == PAYLOAD[PART + 3 :]


@pytest.mark.parametrize(
    ("range", "wanted"),
    [
        ((5, 2 * MIB), PAYLOAD[5 : 2 * MIB]),
        ((-MIB - 3, None), PAYLOAD[-MIB - 3 :]),
        ((10, None), PAYLOAD[10:]),
    ],
)
def test_a_range_is_streamed(small_parts, stored, range, wanted):
    with small_parts.stream(stored, range=range) as stream:
        assert stream.length == len(wanted)
        assert b"".join(stream) == wanted


def test_an_empty_object_is_an_empty_stream(verbs, s3, bucket):
    s3.put_object(Bucket=bucket, Key="empty", Body=b"")
    stream = verbs.stream(f"s3://{bucket}/empty")
    assert (stream.length, verbs.each(stream)) == (0, [])
    assert verbs.result(verbs.stream(f"s3://{bucket}/empty").read) == b""


def test_readers_of_the_standard_library_wrap_a_stream(client, s3, bucket):
    text = "".join(f"line {number} ä\n" for number in range(50_000))
    s3.put_object(Bucket=bucket, Key="t", Body=text.encode())
    with client.stream("t", bucket=bucket) as stream:
        assert (stream.readable(), stream.writable(), stream.seekable()) == (True, False, False)
        assert "".join(io.TextIOWrapper(stream, "utf-8")) == text
    with io.BufferedReader(client.stream("t", bucket=bucket)) as reader:
        assert reader.readline() == b"line 0 \xc3\xa4\n"
        assert reader.peek(4)[:4] == b"line"
        assert reader.read() == text.encode()[len(b"line 0 \xc3\xa4\n") :]


def test_what_is_not_there_is_said_when_the_stream_is_opened(verbs, bucket):
    with pytest.raises(FileNotFoundError, match="no-such"):
        verbs.stream(f"s3://{bucket}/no-such")
    with pytest.raises(ValueError, match="names a bucket"):
        verbs.stream(f"s3://{bucket}")
    with pytest.raises(TypeError, match="did you mean if_match"):
        verbs.stream(f"s3://{bucket}/k", if_mach="x")


def test_a_closed_stream_is_not_read(verbs, stored):
    stream = verbs.stream(stored)
    assert not stream.closed
    stream.close()
    stream.close()
    assert stream.closed
    for read in (stream.read, lambda: stream.readinto(bytearray(4))):
        with pytest.raises(ValueError, match="the stream is closed"):
            verbs.result(read)
    with pytest.raises(ValueError, match="the stream is closed"):
        verbs.each(stream)


def test_a_destination_that_cannot_be_filled_takes_nothing_from_the_stream(client, stored):
    with client.stream(stored) as stream:
        for wrong, error in [
            (b"read-only", BufferError),
            ("text", TypeError),
            (memoryview(bytearray(8))[::2], BufferError),
        ]:
            with pytest.raises(error):
                stream.readinto(wrong)
        assert stream.read() == PAYLOAD


def test_closing_stops_what_is_in_flight(new_client, stats, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=PAYLOAD * 8)
    with new_client(part_size=PART, concurrency=2).stream(
        "k", bucket=bucket, window=2 * PART
    ) as stream:
        next(stream)
    time.sleep(0.2)
    after = stats()["bytes_out"]
    time.sleep(0.3)
    assert stats()["bytes_out"] - after < PART


def test_the_window_bounds_what_is_fetched_ahead(new_client, stats, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=bytes(16 * MIB))
    client = new_client(part_size=PART)
    before = stats()["bytes_out"]
    with client.stream("k", bucket=bucket, window=MIB) as stream:
        next(stream)
        time.sleep(0.3)
        assert stats()["bytes_out"] - before < 3 * MIB


def test_wrong_bytes_are_said_at_the_end_of_an_exact_read(misbehaving):
    client, _ = misbehaving("action=corrupt:1,verb=get,key=k")
    client.put("k", PAYLOAD[:1000], bucket="scratch")
    for use in (list, lambda stream: stream.read(1000), lambda s: s.readinto(bytearray(1000))):
        stream = client.stream("k", bucket="scratch")
        with pytest.raises(wirespeed.IntegrityError):
            use(stream)
        with pytest.raises(wirespeed.IntegrityError):
            stream.read()


def test_a_failure_on_the_way_is_raised_and_the_stream_does_not_go_on(misbehaving):
    fault = "action=error:403:AccessDenied,verb=get,key=k,nth=3"
    client, _ = misbehaving(fault, part_size=PART)
    client.put("k", PAYLOAD, bucket="scratch")
    stream = client.stream("k", bucket="scratch", window=2 * PART)
    with pytest.raises(PermissionError):
        stream.read()
    with pytest.raises(PermissionError):
        stream.read(1)
    with pytest.raises(PermissionError):
        list(stream)


def test_threads_that_share_a_stream_take_turns(small_parts, stored):
    taken: list[wirespeed.Buffer] = []
    with small_parts.stream(stored) as stream:
        threads = [threading.Thread(target=lambda: taken.extend(stream)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stream.tell() == len(PAYLOAD)
    assert sorted(bytes(part) for part in taken) == sorted(
        PAYLOAD[start : start + PART] for start in range(0, len(PAYLOAD), PART)
    )


@pytest.fixture
def stalling(misbehaving):
    """A client of an object of which nothing comes after two parts, for a while."""
    fault = "action=delay:1500,verb=get,key=k,nth=3"
    client, _ = misbehaving(fault, part_size=PART, concurrency=1)
    client.put("k", PAYLOAD, bucket="scratch")
    return client


def test_a_cancelled_read_loses_nothing(stalling):
    async def run() -> bytes:
        async with await stalling.aio.stream("k", bucket="scratch") as stream:
            taken = await stream.read(2 * PART)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(stream.read(PART + 5), 0.3)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(stream), 0.3)
            assert stream.tell() == 2 * PART
            return taken + await stream.read()

    assert asyncio.run(run()) == PAYLOAD


def test_ctrl_c_ends_a_wait_and_the_stream_goes_on(stalling):
    with stalling.stream("k", bucket="scratch") as stream:
        taken = stream.read(2 * PART)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            stream.read(PART)
        assert time.monotonic() - began < 1.0
        assert taken + stream.read() == PAYLOAD


def test_closing_wakes_a_read_in_another_thread(stalling):
    stream = stalling.stream("k", bucket="scratch")
    assert stream.read(2 * PART) == PAYLOAD[: 2 * PART]
    threading.Timer(0.2, stream.close).start()
    with pytest.raises(ValueError, match="closed"):
        stream.read(PART)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_stream_from_before_a_fork_is_the_parents(small_parts, stored):
    with small_parts.stream(stored) as stream:
        first = next(stream)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                stream.read(1)
            except RuntimeError as error:
                code = 0 if "before the fork" in str(error) and first == PAYLOAD[:PART] else 2
            stream.close()
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert bytes(first) + stream.read() == PAYLOAD


def test_many_streams_that_are_dropped_give_their_memory_back(small_parts, stored):
    for _ in range(50):
        next(small_parts.stream(stored))
    deadline = time.monotonic() + 5
    while small_parts.metrics()["memory_in_use"] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert small_parts.metrics()["memory_in_use"] == 0
