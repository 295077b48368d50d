"""One object from memory, from a file, from a reader, from an iterable."""

from __future__ import annotations

import asyncio
import io
import os
import random
import signal
import threading
import time
from pathlib import Path

import numpy
import pytest

import wirespeed

MIB = 1 << 20
PART = 5 * MIB
PAYLOAD = random.Random(6).randbytes(12 * MIB + 5)


def stored(s3, bucket, key="k"):
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read()


def nothing_is_left(s3, bucket):
    """Neither an object nor a part of one; an abort behind the back may take a moment."""
    deadline = time.monotonic() + 5
    while s3.list_multipart_uploads(Bucket=bucket).get("Uploads") and time.monotonic() < deadline:
        time.sleep(0.05)
    uploads = s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    return (uploads, s3.list_objects_v2(Bucket=bucket)["KeyCount"]) == ([], 0)


@pytest.fixture(autouse=True)
def _small_parts(request):
    """A client that uploads in several parts what is above 5 MiB."""
    if "verbs" in request.fixturenames:
        verbs = request.getfixturevalue("verbs")
        new_client = request.getfixturevalue("new_client")
        verbs.client = new_client(part_size=PART, multipart_threshold=PART)


class Reader:
    """A file-like object with nothing but `read`, which gives at most `most` bytes at once."""

    def __init__(self, data: bytes, most: int = 100_000) -> None:
        self.data, self.most, self.threads = io.BytesIO(data), most, set()

    def read(self, size: int) -> bytes:
        self.threads.add(threading.current_thread())
        assert size > 0
        return self.data.read(min(size, self.most))


SOURCES = {
    "bytes": lambda data: data,
    "bytearray": bytearray,
    "array": lambda data: numpy.frombuffer(data, "u1"),
    "reader": Reader,
    "slow reader": lambda data: Reader(data, 1000),
    "BytesIO": io.BytesIO,
    "list": lambda data: [data[: len(data) // 2], data[len(data) // 2 :]],
    "generator": lambda data: (data[at : at + 70_000] for at in range(0, len(data), 70_000)),
    "views": lambda data: iter([memoryview(data), b"", bytearray()]),
}


@pytest.mark.every_store
@pytest.mark.parametrize("size", [0, 1, 300_000, len(PAYLOAD)])
@pytest.mark.parametrize("source", SOURCES)
def test_an_object_is_written_from_whatever_gives_bytes(verbs, s3, bucket, source, size):
    data = PAYLOAD[:size]
    result = verbs.put(f"s3://{bucket}/k", SOURCES[source](data), content_type="text/x")
    answer = s3.get_object(Bucket=bucket, Key="k")
    assert answer["Body"].read() == data
    assert (answer["ETag"], answer["ContentType"]) == (result.etag, "text/x")
    assert result.parts == max(1, -(-size // PART))


def test_a_file_is_put_by_its_name_or_opened(verbs, s3, bucket, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(PAYLOAD)
    with path.open("rb") as file:
        verbs.put("opened", file, bucket=bucket)
    verbs.put_file("named", path, bucket=bucket)
    assert stored(s3, bucket, "opened") == stored(s3, bucket, "named") == PAYLOAD
    with pytest.raises(TypeError, match="put_file"):
        verbs.put("k", path, bucket=bucket)
    with pytest.raises(wirespeed.LocalIOError, match="no-such"):
        verbs.put_file("k", tmp_path / "no-such", bucket=bucket)


def test_a_stream_is_put_elsewhere(verbs, client, s3, bucket):
    client.put("a", PAYLOAD, bucket=bucket)
    with client.stream("a", bucket=bucket) as stream:
        verbs.put("b", stream, bucket=bucket)
    assert stored(s3, bucket, "b") == PAYLOAD


def test_pieces_may_be_changed_when_the_next_is_asked_for(verbs, s3, bucket):
    def pieces():
        buffer = bytearray(MIB)
        for number in range(8):
            buffer[:] = bytes([number]) * MIB
            yield buffer

    verbs.put("k", pieces(), bucket=bucket)
    assert stored(s3, bucket) == b"".join(bytes([number]) * MIB for number in range(8))


class OddError(Exception):
    pass


@pytest.mark.parametrize("before", [0, 1000, 12 * MIB])
@pytest.mark.parametrize("form", ["reader", "generator"])
def test_what_a_reader_raises_comes_out_unchanged_and_nothing_is_left(
    verbs, s3, bucket, form, before
):
    error = OddError("no more")

    def pieces():
        if before:
            yield PAYLOAD[:before]
        raise error

    source = pieces()
    if form == "reader":
        pieces_of = source

        class Failing:
            def read(self, size: int) -> bytes:
                return next(pieces_of)

        source = Failing()
    with pytest.raises(OddError) as raised:
        verbs.put("k", source, bucket=bucket)
    assert raised.value is error
    assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []
    assert nothing_is_left(s3, bucket)


class Nothing:
    def read(self, size: int) -> None:
        return None


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ("text", TypeError, "encode"),
        (17, TypeError, "a int cannot be put"),
        (None, TypeError, "a NoneType cannot be put"),
        (Path("x"), TypeError, "put_file"),
        (["text"], TypeError, "piece 0 is str, not bytes; encode it"),
        ([b"a", 7], TypeError, "piece 1 is int, not bytes"),
        (io.StringIO("text"), TypeError, "the reader gave str, not bytes; open the file in binary"),
        (Nothing(), BlockingIOError, "does not wait"),
        (numpy.zeros((4, 4))[:, 1], BufferError, "one piece"),
        ([memoryview(b"abcd")[::2]], BufferError, "one piece"),
    ],
)
def test_what_is_no_bytes_is_refused(verbs, s3, bucket, data, error, words):
    with pytest.raises(error, match=words):
        verbs.put("k", data, bucket=bucket)
    assert nothing_is_left(s3, bucket)


def test_asynchronous_pieces_are_for_a_writer(client, bucket):
    async def pieces():
        yield b"x"

    with pytest.raises(TypeError, match="writer"):
        client.put("k", pieces(), bucket=bucket)


def test_progress_is_told(verbs, bucket):
    told = []
    verbs.put("k", Reader(PAYLOAD), bucket=bucket, progress=told.append)
    assert (told[-1].bytes, told[-1].expected, told[-1].objects) == (len(PAYLOAD), len(PAYLOAD), 1)
    told.clear()
    verbs.put("k", PAYLOAD, bucket=bucket, progress=told.append)
    assert (told[-1].bytes, told[-1].expected, told[-1].objects) == (len(PAYLOAD), len(PAYLOAD), 1)


def test_what_a_progress_function_raises_stops_the_upload(verbs, s3, bucket):
    def progress(_):
        raise OddError

    def pieces():
        for _ in range(5):
            yield PAYLOAD
            time.sleep(0.1)

    with pytest.raises(OddError):
        verbs.put("k", pieces(), bucket=bucket, progress=progress)
    assert nothing_is_left(s3, bucket)


def test_where_the_reader_runs(new_client, bucket):
    client = new_client()
    reader = Reader(PAYLOAD)
    client.put("k", reader, bucket=bucket)
    assert reader.threads == {threading.current_thread()}

    async def run() -> None:
        went_on = 0

        async def tick() -> None:
            nonlocal went_on
            while True:
                await asyncio.sleep(0.01)
                went_on += 1

        ticking = asyncio.create_task(tick())

        class Slow(Reader):
            def read(self, size: int) -> bytes:
                time.sleep(0.05)
                return super().read(size)

        reader = Slow(PAYLOAD[: 10 * MIB], 2 * MIB)
        await client.aio.put("k", reader, bucket=bucket)
        ticking.cancel()
        assert threading.current_thread() not in reader.threads
        assert went_on > 5

    asyncio.run(run())


def test_a_condition_that_fails_is_said(verbs, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"first")
    for data in (b"second", [b"second"]):
        with pytest.raises(wirespeed.PreconditionError):
            verbs.put("k", data, bucket=bucket, if_none_match="*")
    assert stored(s3, bucket) == b"first"


def test_an_upload_that_fails_stops_the_reader(misbehaving):
    fault = "action=error:403:AccessDenied,verb=upload-part"
    client, s3 = misbehaving(fault, part_size=PART, multipart_threshold=PART)
    asked = 0

    def pieces():
        nonlocal asked
        for _ in range(1000):
            asked += 1
            yield PAYLOAD

    with pytest.raises(PermissionError):
        client.put("k", pieces(), bucket="scratch")
    assert asked < 1000
    asked = 0
    with pytest.raises(PermissionError):
        asyncio.run(_put(client, pieces()))
    assert asked < 1000
    assert nothing_is_left(s3, "scratch")


async def _put(client, source):
    await client.aio.put("k", source, bucket="scratch")


def test_cancelling_stops_the_upload_and_the_reader(new_client, s3, bucket):
    client = new_client(part_size=PART, multipart_threshold=PART)
    ended = threading.Event()

    def pieces():
        try:
            while True:
                time.sleep(0.02)
                yield PAYLOAD[:MIB]
        finally:
            ended.set()

    async def run() -> None:
        source = pieces()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.aio.put("k", source, bucket=bucket), 0.5)
        del source
        await asyncio.to_thread(ended.wait, 5)

    asyncio.run(run())
    assert ended.is_set()
    assert nothing_is_left(s3, bucket)


def test_ctrl_c_while_a_reader_is_read_leaves_nothing(new_client, s3, bucket):
    client = new_client(part_size=PART, multipart_threshold=PART)

    def endless():
        while True:
            yield PAYLOAD[:1000]

    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        client.put("k", endless(), bucket=bucket)
    assert nothing_is_left(s3, bucket)


def test_what_a_reader_raises_is_raised_also_after_it_closed_the_client(new_client, bucket):
    client = new_client()

    class Reader:
        def read(self, size):
            client.close()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        client.put("k", Reader(), bucket=bucket)
