"""Bad input: every kind is an exception that says what to do, never a crash, and sends nothing."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import wirespeed

MIB = 1 << 20

# What is given for the first argument of every verb of one object.
NO_LOCATIONS: list[tuple[Any, type[Exception], str]] = [
    (b"s3://bucket/key", TypeError, "str such as .*decode it"),
    (bytearray(b"s3://bucket/key"), TypeError, "a location is a str"),
    (None, TypeError, "a location is a str"),
    (5, TypeError, "a location is a str"),
    (Path("bucket/key"), TypeError, "a location is a str"),
    ([], TypeError, "a location is a str"),
    ("", ValueError, "write s3://bucket/key"),
    ("key", ValueError, "give the bucket as bucket="),
    ("http://bucket/key", ValueError, "write s3://bucket/key"),
    ("s3:/bucket/key", ValueError, "write s3://bucket/key"),
    ("S3://bucket/key", ValueError, "write s3://bucket/key"),
    ("s3://", ValueError, "names no bucket"),
    ("s3:///key", ValueError, "names no bucket"),
    ("s3://bucket", ValueError, "no object; write s3://bucket/key"),
    ("s3://bucket/", ValueError, "no object"),
    ("s3://bucket/a\0b", ValueError, "contains NUL"),
    ("s3://bucket/\ud800", ValueError, "surrogates"),
    ("s3://b/key", ValueError, "3 to 63 characters"),
    ("s3://UPPER CASE/key", ValueError, "bucket"),
    ("s3://bucket/" + "k" * 1025, ValueError, "1024|1,024|long"),
]
CALLS: dict[str, Any] = {
    "get": lambda verbs, where, **options: verbs.get(where, **options),
    "get as bytes": lambda verbs, where, **options: verbs.get(where, as_bytes=True, **options),
    "get_into": lambda verbs, where, **options: verbs.get_into(where, bytearray(9), **options),
    "get_many": lambda verbs, where, **options: verbs.get_many([where], **options),
    "get_ranges": lambda verbs, where, **options: verbs.get_ranges(where, [(0, 1)], **options),
    "put": lambda verbs, where, **options: verbs.put(where, b"x", **options),
    "put_file": lambda verbs, where, **options: verbs.put_file(where, __file__, **options),
    "stream": lambda verbs, where, **options: verbs.stream(where, **options),
    "writer": lambda verbs, where, **options: verbs.writer(where, **options),
    "head": lambda verbs, where, **options: verbs.head(where, **options),
    "exists": lambda verbs, where, **options: verbs.exists(where, **options),
    "delete": lambda verbs, where, **options: verbs.delete(where, **options),
    "presign": lambda verbs, where, **options: verbs.presign(where, **options),
}


@pytest.mark.parametrize("verb", CALLS)
def test_what_is_no_location_is_refused_by_every_verb(verbs: Any, verb: str) -> None:
    for where, error, advice in NO_LOCATIONS:
        if verb == "exists" and error is ValueError and str(where).startswith("s3://bucket"):
            continue  # a bucket may exist too
        if verb == "writer" and advice in ("3 to 63 characters", "bucket", "1024|1,024|long"):
            continue  # said when the first byte is sent
        with pytest.raises(error, match=advice):
            CALLS[verb](verbs, where)
    assert verbs.client.metrics()["requests"] == 0


@pytest.mark.parametrize("verb", CALLS)
def test_a_bucket_that_is_none_is_refused_by_every_verb(verbs: Any, verb: str) -> None:
    for bucket in (b"bucket", 5, ["bucket"]):
        with pytest.raises(TypeError, match="bucket"):
            CALLS[verb](verbs, "key", bucket=bucket)
    with pytest.raises(ValueError, match="no bucket"):
        CALLS[verb](verbs, "key", bucket="")


@pytest.mark.parametrize("verb", sorted(set(CALLS) - {"presign", "delete", "writer"}))
def test_an_option_that_is_none_names_the_nearest(verbs: Any, verb: str) -> None:
    with pytest.raises(TypeError, match="did you mean request_payer"):
        CALLS[verb](verbs, "s3://bucket/key", request_pay=True)
    with pytest.raises(TypeError, match="there are "):
        CALLS[verb](verbs, "s3://bucket/key", wibble_wobble_wubble=True)


RANGES: list[tuple[Any, type[Exception], str]] = [
    ((5, 3), ValueError, "0 <= start <= stop"),
    ((-5, 3), ValueError, "last n bytes"),
    ((-5, -3), ValueError, "last n bytes"),
    ((0, -1), ValueError, "last n bytes"),
    ((3, 3), ValueError, "empty"),
    ((1.0, 2.0), TypeError, r"\(start, stop\)"),
    (("1", "2"), TypeError, r"\(start, stop\)"),
    ((1,), TypeError, r"\(start, stop\)"),
    ((1, 2, 3), TypeError, r"\(start, stop\)"),
    ([1, 2], TypeError, r"\(start, stop\)"),
    (5, TypeError, r"\(start, stop\)"),
    ("0-5", TypeError, r"\(start, stop\)"),
    (b"05", TypeError, r"\(start, stop\)"),
    (range(5), TypeError, r"\(start, stop\)"),
    (slice(0, 10, 2), ValueError, "no step"),
    (slice("a", "b"), TypeError, "."),
    ((1 << 64, None), (TypeError, ValueError, OverflowError), "."),
    ((0, 1 << 64), (TypeError, ValueError, OverflowError), "."),
    ((-(1 << 64), None), (TypeError, ValueError, OverflowError), "."),
]


def test_what_is_no_range_is_refused(verbs: Any, bucket: str) -> None:
    for wanted, error, advice in RANGES:
        for call in (
            lambda wanted=wanted: verbs.get("k", bucket=bucket, range=wanted),
            lambda wanted=wanted: verbs.get_into("k", bytearray(9), bucket=bucket, range=wanted),
            lambda wanted=wanted: verbs.get_many([("k", wanted)], bucket=bucket),
        ):
            with pytest.raises(error, match=advice):
                call()
    assert verbs.client.metrics()["requests"] == 0


OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"if_match": 5}, TypeError, "."),
    ({"if_modified_since": "yesterday"}, TypeError, "datetime that knows its time zone"),
    ({"if_modified_since": datetime(2026, 1, 1)}, TypeError, "datetime that knows its time zone"),
    ({"if_modified_since": 1234567890}, TypeError, "datetime that knows its time zone"),
    ({"sse_customer_key": b"short"}, ValueError, "32 bytes|256 bits"),
    ({"sse_customer_key": "text of thirty-two characters..."}, TypeError, "32 bytes"),
    ({"version_id": 7}, TypeError, "."),
    ({"if_match": "a\r\nHost: evil"}, ValueError, "."),
    ({"expected_bucket_owner": "a\r\nx: y"}, ValueError, "."),
    ({"verify": "yes"}, TypeError, "verify"),
    ({"progress": 5}, TypeError, "callable"),
    ({"on_part": 5}, TypeError, "callable"),
    ({"on_part": print, "as_bytes": True}, ValueError, "choose one"),
]


@pytest.mark.parametrize(("options", "error", "advice"), OPTIONS)
def test_options_that_cannot_be_are_refused(
    verbs: Any, bucket: str, options: dict[str, Any], error: type[Exception], advice: str
) -> None:
    verbs.put("k", b"x", bucket=bucket)
    with pytest.raises(error, match=advice):
        verbs.get("k", bucket=bucket, **options)
    assert verbs.get("k", bucket=bucket) == b"x"


BODIES: list[tuple[Any, type[Exception], str]] = [
    ("text", TypeError, r"encode\(\)"),
    (5, TypeError, "."),
    (None, TypeError, "."),
    (object(), TypeError, "."),
    (memoryview(bytes(100))[::2], BufferError, "one piece"),
]


def test_bodies_that_have_no_bytes_are_refused(verbs: Any, bucket: str) -> None:
    for data, error, advice in BODIES:
        with pytest.raises(error, match=advice):
            verbs.put("k", data, bucket=bucket)
    assert not verbs.exists("k", bucket=bucket)


WRITES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"metadata": "text"}, TypeError, "mapping of str to str"),
    ({"metadata": {"a": 5}}, TypeError, "mapping of str to str"),
    ({"metadata": {"a\r\nb": "c"}}, ValueError, "."),
    ({"metadata": {"a": "b\r\nc: d"}}, ValueError, "."),
    ({"tags": 5}, TypeError, "mapping of str to str"),
    ({"checksum": "CRC64"}, ValueError, "CRC64NVME"),
    ({"checksum": 5}, TypeError, "."),
    ({"sse": "rot13"}, ValueError, '"AES256" or "aws:kms"'),
    ({"if_none_match": "etag"}, ValueError, r'"\*"'),
    ({"content_type": "a\r\nb: c"}, ValueError, "."),
    ({"content_type": 5}, TypeError, "."),
    ({"expires": "soon"}, TypeError, "datetime"),
]


@pytest.mark.parametrize(("options", "error", "advice"), WRITES)
def test_write_options_that_cannot_be_are_refused(
    verbs: Any, bucket: str, options: dict[str, Any], error: type[Exception], advice: str
) -> None:
    with pytest.raises(error, match=advice):
        verbs.put("k", b"x", bucket=bucket, **options)
    assert not verbs.exists("k", bucket=bucket)


class Refusal(BaseException):
    """Not even an Exception."""


def test_whatever_a_callback_raises_surfaces(verbs: Any, bucket: str) -> None:
    verbs.put("k", bytes(24 * MIB), bucket=bucket)
    for kind in (ValueError, KeyboardInterrupt, SystemExit, Refusal, StopIteration, RecursionError):

        def refuse(*_: Any, kind: Any = kind) -> None:
            raise kind("from a callback")

        # A coroutine cannot raise StopIteration: Python makes a RuntimeError of it.
        expected = (kind, RuntimeError) if kind is StopIteration else kind
        said = (
            "from a callback|raised StopIteration" if kind is StopIteration else "from a callback"
        )
        if kind in (KeyboardInterrupt, SystemExit, Refusal) and "Awaited" in type(verbs).__name__:
            continue  # an event loop ends of these
        for options in ({"on_part": refuse}, {"progress": refuse}):
            with pytest.raises(expected, match=said):
                verbs.get("k", bucket=bucket, **options)
        with pytest.raises(expected, match=said):
            verbs.put("other", bytes(24 * MIB), bucket=bucket, progress=refuse)
        deadline = time.monotonic() + 5
        while verbs.client.metrics()["memory_in_use"] and time.monotonic() < deadline:
            gc.collect()
            time.sleep(0.01)
        assert verbs.client.metrics()["memory_in_use"] == 0
    verbs.client.close()  # with the uploads that were stopped


def test_a_callback_may_use_the_client(verbs: Any, client: wirespeed.Client, bucket: str) -> None:
    client.put("k", bytes(24 * MIB), bucket=bucket)
    client.put("small", b"small", bucket=bucket)
    got: list[bytes] = []

    def nested(*_: Any) -> None:
        got.append(client.get("small", bucket=bucket, as_bytes=True))

    verbs.get("k", bucket=bucket, on_part=nested)
    verbs.get("k", bucket=bucket, progress=nested)
    assert set(got) == {b"small"}
    assert len(got) > 3


def test_a_callback_may_close_the_client(new_client: Any, bucket: str) -> None:
    client = new_client(memory=32 * MIB)
    client.put("k", bytes(64 * MIB), bucket=bucket)
    with pytest.raises(wirespeed.WirespeedError):
        client.get("k", bucket=bucket, on_part=lambda offset, view: client.close())


def test_a_destination_that_is_changed_meanwhile_is_no_crash(
    client: wirespeed.Client, bucket: str
) -> None:
    client.put("k", bytes(24 * MIB), bucket=bucket)
    destination = bytearray(24 * MIB)
    refused: list[type[BaseException]] = []

    def change(progress: wirespeed.Progress) -> None:
        for step in (destination.clear, lambda: destination.extend(b"x")):
            try:
                step()
            except BufferError as error:
                refused.append(type(error))

    client.get_into("k", destination, bucket=bucket, progress=change)
    assert len(destination) >= 24 * MIB or refused


def test_too_many_arguments_are_refused(verbs: Any) -> None:
    for call in (
        lambda: verbs.get(),
        lambda: verbs.get("s3://bucket/key", "bucket"),
        lambda: verbs.get_into("s3://bucket/key"),
        lambda: verbs.get_many(),
        lambda: verbs.get_ranges("s3://bucket/key"),
        lambda: verbs.put("s3://bucket/key"),
    ):
        with pytest.raises(TypeError, match="argument"):
            call()


def test_classes_that_nobody_makes_say_so() -> None:
    for kind in (wirespeed.Buffer, wirespeed.Progress, wirespeed.ObjectInfo, wirespeed.PutResult):
        with pytest.raises(TypeError):
            kind()


def test_an_iterable_that_never_ends_can_be_interrupted(environment: dict[str, str]) -> None:
    import signal

    script = (
        "import itertools, wirespeed\n"
        "print('begun', flush=True)\n"
        "wirespeed.get_many(itertools.repeat('s3://bucket/key'))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert err.strip().endswith("KeyboardInterrupt")


def test_no_descriptors_are_left_of_what_was_refused(verbs: Any) -> None:
    def files() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    def refused() -> None:
        for where, error, _ in NO_LOCATIONS:
            with pytest.raises(error):
                verbs.get(where)

    refused()
    before = files()
    for _ in range(20):
        refused()
    assert files() <= before
