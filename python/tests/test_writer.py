"""Objects written as files are: what is stored, what is never stored, and how errors come out."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pickle
import random
import signal
import tarfile
import threading
import time
import zipfile

import numpy
import pytest

import wirespeed

MIB = 1 << 20
PART = 5 * MIB
PAYLOAD = random.Random(5).randbytes(13 * MIB + 11)


@pytest.fixture
def small_parts(new_client):
    """A client that uploads in several parts what is above 5 MiB."""
    return new_client(part_size=PART, multipart_threshold=PART)


def stored(s3, bucket, key="k"):
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read()


def nothing_is_left(s3, bucket):
    """Neither an object nor a part of one; an abort behind the back may take a moment."""
    deadline = time.monotonic() + 5
    while s3.list_multipart_uploads(Bucket=bucket).get("Uploads") and time.monotonic() < deadline:
        time.sleep(0.05)
    uploads = s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    return (uploads, s3.list_objects_v2(Bucket=bucket)["KeyCount"]) == ([], 0)


def write_on(writer):
    """Writes more than a client would hold."""
    for _ in range(100):
        writer.write(PAYLOAD)


@pytest.mark.every_store
@pytest.mark.parametrize(
    "sizes", [[], [0], [1], [300_000, 5], [7 * MIB, 1, 0, 6 * MIB], [1000] * 700]
)
def test_what_is_written_is_stored_when_it_is_closed(verbs, s3, bucket, sizes):
    writer, written = verbs.writer(f"s3://{bucket}/k", content_type="text/x"), b""
    for size in sizes:
        piece = PAYLOAD[len(written) : len(written) + size]
        assert verbs.result(writer.write, piece) == size
        written += piece
        assert writer.tell() == len(written)
    assert writer.result is None
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    verbs.result(writer.close)
    verbs.result(writer.close)
    assert writer.closed
    answer = s3.get_object(Bucket=bucket, Key="k")
    assert answer["Body"].read() == written
    assert (answer["ETag"], answer["ContentType"]) == (writer.result.etag, "text/x")


def test_what_is_long_goes_out_in_parts_while_it_is_written(small_parts, s3, bucket, stats):
    before = stats()["bytes_in"]
    with small_parts.writer("k", bucket=bucket) as writer:
        for start in range(0, len(PAYLOAD), 100_000):
            writer.write(PAYLOAD[start : start + 100_000])
        deadline = time.monotonic() + 5
        while stats()["bytes_in"] - before < 2 * PART and time.monotonic() < deadline:
            time.sleep(0.05)
        assert stats()["bytes_in"] - before >= 2 * PART
        writer.write(b"the end")
    assert writer.result.parts == 3
    assert stored(s3, bucket) == PAYLOAD + b"the end"


@pytest.mark.parametrize(
    "data",
    [
        bytearray(b"abcd"),
        memoryview(b"xabcd")[1:],
        numpy.frombuffer(b"abcd", "u2"),
        numpy.zeros((2, 2), "u1"),
    ],
)
def test_anything_with_bytes_in_one_piece_is_written(client, s3, bucket, data):
    with client.writer("k", bucket=bucket) as writer:
        assert writer.write(data) == 4
    assert stored(s3, bucket) == bytes(memoryview(data))


@pytest.mark.parametrize("size", [1000, MIB])
def test_memory_that_was_written_may_be_used_again(verbs, s3, bucket, size):
    writer, buffer = verbs.writer("k", bucket=bucket), bytearray(size)
    for number in range(4):
        buffer[:] = bytes([number]) * size
        verbs.result(writer.write, buffer)
    buffer.clear()  # nothing holds it any more
    verbs.result(writer.close)
    assert stored(s3, bucket) == b"".join(bytes([number]) * size for number in range(4))


def test_a_buffer_is_written_from_where_it_lies(client, s3, bucket):
    client.put("a", PAYLOAD, bucket=bucket)
    with client.writer("k", bucket=bucket) as writer:
        for part in client.stream("a", bucket=bucket):
            writer.write(part)
    assert stored(s3, bucket) == PAYLOAD


def test_python_writes_its_formats_to_it(client, s3, bucket):
    rows = {"rows": list(range(1000)), "name": "ä"}
    with client.writer("json", bucket=bucket) as writer, io.TextIOWrapper(writer, "utf-8") as text:
        json.dump(rows, text)
    assert json.loads(stored(s3, bucket, "json")) == rows
    with client.writer("pickle", bucket=bucket) as writer:
        pickle.dump(rows, writer)
    assert pickle.loads(stored(s3, bucket, "pickle")) == rows
    with client.writer("zip", bucket=bucket) as writer, zipfile.ZipFile(writer, "w") as archive:
        archive.writestr("a/b", PAYLOAD[:MIB])
    assert zipfile.ZipFile(io.BytesIO(stored(s3, bucket, "zip"))).read("a/b") == PAYLOAD[:MIB]
    with (
        client.writer("tar", bucket=bucket) as writer,
        tarfile.open(fileobj=writer, mode="w|") as tar,
    ):
        member = tarfile.TarInfo("a")
        member.size = MIB
        tar.addfile(member, io.BytesIO(PAYLOAD))
    with tarfile.open(fileobj=io.BytesIO(stored(s3, bucket, "tar"))) as tar:
        assert tar.extractfile("a").read() == PAYLOAD[:MIB]
    with client.writer("npy", bucket=bucket) as writer:
        numpy.save(writer, numpy.arange(10_000))
    assert (numpy.load(io.BytesIO(stored(s3, bucket, "npy"))) == numpy.arange(10_000)).all()
    with io.BufferedWriter(client.writer("buffered", bucket=bucket)) as buffered:
        buffered.write(b"abc")
    assert stored(s3, bucket, "buffered") == b"abc"


def test_it_says_what_it_is(client, bucket):
    writer = client.writer("k", bucket=bucket)
    assert (writer.writable(), writer.readable(), writer.seekable()) == (True, False, False)
    assert repr(writer) == "<wirespeed.Writer at 0 bytes>"
    assert writer.flush() is None
    writer.abort()
    assert repr(writer) == "<wirespeed.Writer at 0 bytes, closed>"


@pytest.mark.parametrize("size", [10, 12 * MIB])
def test_an_exception_in_the_block_leaves_nothing(small_parts, s3, bucket, size):
    writer = small_parts.writer("k", bucket=bucket)

    def use() -> None:
        with writer:
            writer.write(PAYLOAD[:size])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    assert writer.closed
    assert writer.result is None
    assert nothing_is_left(s3, bucket)


def test_an_exception_in_an_awaitable_block_leaves_nothing(small_parts, s3, bucket):
    async def run() -> None:
        async with small_parts.aio.writer("k", bucket=bucket) as writer:
            await writer.write(PAYLOAD)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(run())
    assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []
    assert nothing_is_left(s3, bucket)


def test_abort_leaves_nothing_and_ends_the_writer(verbs, new_client, s3, bucket):
    verbs.client = new_client(part_size=PART, multipart_threshold=PART)
    writer = verbs.writer("k", bucket=bucket)
    verbs.result(writer.write, PAYLOAD)
    verbs.result(writer.abort)
    assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []
    verbs.result(writer.abort)
    verbs.result(writer.close)
    assert writer.closed
    with pytest.raises(ValueError, match="the writer is closed"):
        verbs.result(writer.write, b"x")
    assert nothing_is_left(s3, bucket)


def test_what_an_aborted_writer_was_given_never_becomes_an_object(verbs, s3, bucket):
    # The end of its bytes and the word that they are no object race: often enough to lose once.
    for number in range(5000):
        writer = verbs.writer(str(number), bucket=bucket)
        verbs.result(writer.write, b"half")
        verbs.result(writer.abort)
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_a_writer_that_is_dropped_leaves_nothing(small_parts, s3, bucket):
    writer = small_parts.writer("k", bucket=bucket)
    writer.write(PAYLOAD)
    assert s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    del writer
    assert nothing_is_left(s3, bucket)


def test_a_condition_that_fails_is_said_at_close(verbs, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"first")
    writer = verbs.writer("k", bucket=bucket, if_none_match="*")
    verbs.result(writer.write, b"second")
    with pytest.raises(wirespeed.PreconditionError):
        verbs.result(writer.close)
    assert writer.closed
    assert stored(s3, bucket) == b"first"


def test_an_upload_that_fails_says_so_at_the_next_write_and_at_close(misbehaving):
    fault = "action=error:403:AccessDenied,verb=upload-part"
    client, s3 = misbehaving(fault, part_size=PART, multipart_threshold=PART)
    writer = client.writer("k", bucket="scratch")
    with pytest.raises(PermissionError):
        write_on(writer)
    with pytest.raises(PermissionError):
        writer.write(b"small")
    with pytest.raises(PermissionError):
        writer.close()
    assert nothing_is_left(s3, "scratch")


def test_a_bucket_that_is_not_there_is_said(verbs):
    writer = verbs.writer("s3://no-such-bucket/k")
    verbs.result(writer.write, b"x")
    with pytest.raises(FileNotFoundError):
        verbs.result(writer.close)


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ("text", TypeError, "encode"),
        (17, TypeError, "not int"),
        (None, TypeError, "not NoneType"),
        ([b"a"], TypeError, "not list"),
        (memoryview(b"abcdef")[::2], BufferError, "one piece"),
    ],
)
def test_what_is_no_bytes_is_refused_and_the_writer_goes_on(verbs, s3, bucket, data, error, words):
    writer = verbs.writer("k", bucket=bucket)
    with pytest.raises(error, match=words):
        verbs.result(writer.write, data)
    verbs.result(writer.write, b"good")
    verbs.result(writer.close)
    assert stored(s3, bucket) == b"good"


def test_bad_arguments_are_refused_at_once(client, bucket):
    with pytest.raises(ValueError, match="names a bucket"):
        client.writer(f"s3://{bucket}")
    with pytest.raises(TypeError, match="did you mean content_type"):
        client.writer("k", bucket=bucket, content_typ="x")
    for size in (-1, 1 << 70):
        with pytest.raises(ValueError, match="expected_size is a number of bytes from 0 on"):
            client.writer("k", bucket=bucket, expected_size=size)
        with pytest.raises(ValueError, match="window is a number of bytes from 0 on"):
            client.stream("k", bucket=bucket, window=size)
        with pytest.raises(ValueError, match="max_gap is a number of bytes from 0 on"):
            client.get_ranges("k", [], bucket=bucket, max_gap=size)


def test_threads_may_write_at_once(small_parts, s3, bucket):
    pieces = [bytes([number]) * 300_000 for number in range(16)]
    with small_parts.writer("k", bucket=bucket) as writer:
        threads = [threading.Thread(target=writer.write, args=(piece,)) for piece in pieces]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    got = stored(s3, bucket)
    assert len(got) == writer.tell() == 16 * 300_000
    assert sorted(got[start : start + 300_000] for start in range(0, len(got), 300_000)) == pieces


def test_ctrl_c_in_a_write_that_waits_ends_the_upload(misbehaving):
    fault = "action=stall,verb=upload-part"
    settings = {"part_size": PART, "multipart_threshold": PART, "memory": 32 * MIB}
    client, s3 = misbehaving(fault, **settings)
    began = time.monotonic()
    writer = client.writer("k", bucket="scratch")
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        write_on(writer)
    with pytest.raises(wirespeed.CancelledError, match="nothing is stored"):
        writer.write(b"x")
    with pytest.raises(wirespeed.CancelledError, match="nothing is stored"):
        writer.close()
    assert time.monotonic() - began < 3
    assert nothing_is_left(s3, "scratch")


def test_a_close_that_is_cancelled_stores_nothing(misbehaving):
    client, s3 = misbehaving("action=delay:1000,verb=put")

    async def run() -> None:
        writer = client.aio.writer("k", bucket="scratch")
        await writer.write(b"x")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(writer.close(), 0.2)
        assert writer.result is None

    asyncio.run(run())
    time.sleep(1.2)
    assert nothing_is_left(s3, "scratch")


def test_closing_the_client_ends_its_writers(new_client, s3, bucket):
    client = new_client(part_size=PART, multipart_threshold=PART)
    writer = client.writer("k", bucket=bucket)
    writer.write(PAYLOAD)
    client.close()
    with pytest.raises(wirespeed.CancelledError):
        writer.write(b"x")
    with pytest.raises(wirespeed.CancelledError):
        writer.close()
    assert nothing_is_left(s3, bucket)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_writer_from_before_a_fork_is_the_parents(client, s3, bucket):
    with client.writer("k", bucket=bucket) as writer:
        writer.write(b"parent")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                writer.write(b"child")
            except RuntimeError as error:
                code = 0 if "before the fork" in str(error) else 2
            del writer
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert stored(s3, bucket) == b"parent"


def test_a_write_that_is_cancelled_before_its_turn_leaves_no_gap(misbehaving):
    settings = {"part_size": PART, "multipart_threshold": PART, "memory": 32 * MIB}
    client, s3 = misbehaving("action=delay:500,verb=upload-part", **settings)

    async def run() -> None:
        writer = client.aio.writer("k", bucket="scratch")
        first = writer.write(bytes(64 * MIB))
        second = writer.write(bytes(MIB))
        await asyncio.sleep(0.1)
        second.cancel()
        with pytest.raises(wirespeed.CancelledError, match="nothing is stored"):
            await first
        with pytest.raises(wirespeed.CancelledError, match="nothing is stored"):
            await writer.close()

    asyncio.run(run())
    assert nothing_is_left(s3, "scratch")


def test_writes_that_nobody_awaits_keep_their_order(small_parts, s3, bucket):
    pieces = [bytes([at % 256]) * (300_000 if at % 3 == 0 else 50 + at) for at in range(150)]

    async def run() -> None:
        writer = small_parts.aio.writer("k", bucket=bucket)
        writes = [writer.write(piece) for piece in pieces]
        await writer.close()
        await asyncio.gather(*writes)

    for _ in range(5):
        asyncio.run(run())
        assert stored(s3, bucket) == b"".join(pieces)
