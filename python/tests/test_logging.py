"""Logging: the engine's log goes to the logger `wirespeed`, in the program's threads."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

SECRETS = ("AWS4-HMAC-SHA256 Credential", "X-Amz-Signature", "authorization:")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The records of every level."""
    caplog.set_level(logging.DEBUG, logger="wirespeed")
    return caplog


def test_a_retry_is_logged(verbs: Any, origin: Any, bucket: str, logged: Any) -> None:
    verbs.put("k", b"x" * 1000, bucket=bucket)
    logged.clear()
    before = time.time()
    fault = {"action": "status:503", "verb": "get", "bucket": bucket, "times": 1}
    with origin.misbehaving(fault):
        assert verbs.get("k", bucket=bucket) == b"x" * 1000
    records = [record for record in logged.records if record.name == "wirespeed"]
    retries = [record for record in records if "503" in record.getMessage()]
    assert retries, [record.getMessage() for record in records]
    record = retries[0]
    assert record.levelno >= logging.DEBUG
    assert before - 1 < record.created < time.time() + 1
    assert 0 <= record.msecs < 1000
    assert f"bucket={bucket}" in record.getMessage() or bucket in record.getMessage()
    assert logging.Formatter("%(asctime)s %(name)s %(message)s").format(record)


def test_records_come_in_the_thread_that_waits(
    verbs: Any, origin: Any, bucket: str, logged: Any
) -> None:
    verbs.put("k", b"x", bucket=bucket)
    with origin.misbehaving({"action": "status:503", "verb": "get", "bucket": bucket, "times": 1}):
        verbs.get("k", bucket=bucket)
    threads = {record.thread for record in logged.records if record.name == "wirespeed"}
    assert threads == {threading.get_ident()}


def test_no_secret_is_logged(verbs: Any, store: Any, origin: Any, bucket: str, logged: Any) -> None:
    key = bytes(range(32))
    verbs.put("k", b"x" * 9_000_000, bucket=bucket, sse_customer_key=key)
    verbs.get("k", bucket=bucket, sse_customer_key=key)
    url = verbs.presign("k", bucket=bucket)
    with origin.misbehaving(
        {"action": "close-after:10", "verb": "get", "bucket": bucket, "times": 2}
    ):
        verbs.get("k", bucket=bucket, sse_customer_key=key)
    text = "\n".join(
        logging.Formatter().format(record) + repr(record.__dict__) for record in logged.records
    )
    assert text
    import base64

    for secret in (
        store.secret_key,
        base64.b64encode(key).decode(),
        url.partition("?")[2],
        *SECRETS,
    ):
        assert secret not in text


def test_nothing_is_logged_that_nobody_wants(
    verbs: Any, origin: Any, bucket: str, caplog: Any
) -> None:
    caplog.set_level(logging.CRITICAL, logger="wirespeed")
    verbs.put("k", b"x", bucket=bucket)
    with origin.misbehaving({"action": "status:503", "verb": "get", "bucket": bucket, "times": 1}):
        verbs.get("k", bucket=bucket)
    assert [record for record in caplog.records if record.name == "wirespeed"] == []


def test_the_level_may_change_between_calls(
    verbs: Any, origin: Any, bucket: str, caplog: Any
) -> None:
    verbs.put("k", b"x", bucket=bucket)
    fault = {"action": "status:503", "verb": "get", "bucket": bucket, "nth": 1, "times": 1}
    for level, expected in (
        (logging.CRITICAL, False),
        (logging.DEBUG, True),
        (logging.CRITICAL, False),
    ):
        caplog.set_level(level, logger="wirespeed")
        caplog.clear()
        with origin.misbehaving(fault):
            verbs.get("k", bucket=bucket)
        assert bool([one for one in caplog.records if one.name == "wirespeed"]) is expected


def test_a_handler_that_uses_the_client_is_no_deadlock(
    client: Any, origin: Any, bucket: str
) -> None:
    seen: list[str] = []

    class Nested(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not seen:
                seen.append(record.getMessage())
                client.put("log", record.getMessage().encode(), bucket=bucket)

    client.put("k", b"x", bucket=bucket)
    logger, handler = logging.getLogger("wirespeed"), Nested()
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        with origin.misbehaving(
            {"action": "status:503", "verb": "get", "bucket": bucket, "times": 1}
        ):
            assert client.get("k", bucket=bucket) == b"x"
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert client.get("log", bucket=bucket) == seen[0].encode()


def test_a_program_that_configures_nothing_prints_nothing(
    client: Any, origin: Any, bucket: str, environment: dict[str, str]
) -> None:
    client.put("k", b"x", bucket=bucket)
    script = "import sys, wirespeed; print(bytes(wirespeed.get(f's3://{sys.argv[1]}/k')))"
    with origin.misbehaving({"action": "status:503", "verb": "get", "bucket": bucket, "times": 1}):
        ran = subprocess.run(
            [sys.executable, "-c", script, bucket], env=environment, capture_output=True, text=True
        )
    assert (ran.returncode, ran.stdout) == (0, "b'x'\n")
    assert ran.stderr == ""


def test_a_handler_that_raises_costs_no_result(
    verbs: Any, origin: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Raising(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise ZeroDivisionError

    shown: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: shown.append(told.exc_type))
    verbs.put("k", b"x", bucket=bucket)
    logger, handler = logging.getLogger("wirespeed"), Raising()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        fault = {"action": "status:503", "verb": "get", "bucket": bucket, "times": 1}
        with origin.misbehaving(fault):
            assert verbs.get("k", bucket=bucket) == b"x"
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert set(shown) == {ZeroDivisionError}
