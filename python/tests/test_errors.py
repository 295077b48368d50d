"""Errors: one tree, each the builtin that a person would catch, with what a program needs."""

from __future__ import annotations

import builtins
import copy
import errno
import pickle
import socket
import traceback
from typing import Any

import endpoints
import pytest

import wirespeed
from wirespeed import errors

BUILTIN: dict[str, type[Exception]] = {
    "BrokenConnectionError": ConnectionError,
    "CancelledError": Exception,
    "ConfigError": ValueError,
    "ConflictError": FileExistsError,
    "DeniedError": PermissionError,
    "IntegrityError": OSError,
    "LocalFileNotFoundError": FileNotFoundError,
    "LocalIOError": OSError,
    "NotFoundError": FileNotFoundError,
    "PreconditionError": Exception,
    "ProtocolError": OSError,
    "ServerError": OSError,
    "ThrottledError": OSError,
    "TimedOutError": TimeoutError,
    "WirespeedError": Exception,
}
FIELDS = {
    "operation": "get",
    "bucket": "bucket",
    "key": "key",
    "status": 404,
    "code": "NoSuchKey",
    "request_id": "4442587FB7D0A2F9",
    "attempts": 3,
    "elapsed": 1.5,
    "upload_id": "upload",
}


def test_the_tree_is_complete() -> None:
    assert set(BUILTIN) == set(errors.__all__)
    assert all(getattr(wirespeed, name) is getattr(errors, name) for name in BUILTIN)


def test_what_a_server_says_commands_no_terminal() -> None:
    evil = b"\x1b]0;owned\x07\xc2\x9b2J"
    body = b"<Error><Code>C%s</Code><Message>a&#10;%s%s</Message><RequestId>R%s</RequestId></Error>"
    body %= (evil, evil, b"x" * 10_000, evil)
    head = b"HTTP/1.1 400 X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    with endpoints.answering(head + body) as url:
        client = wirespeed.Client(endpoint_url=url, region="us-east-1", anonymous=True)
        with pytest.raises(wirespeed.WirespeedError) as raised:
            client.get("s3://bucket/key")
    error = raised.value
    assert error.code is not None
    assert error.request_id is not None
    for text in (str(error), repr(error), error.code, error.request_id, *map(str, error.args)):
        assert len(text) < 3_000
        assert not any(ord(one) < 32 or 127 <= ord(one) < 160 for one in text), text
    assert "owned" in str(error)


@pytest.mark.parametrize("name", BUILTIN)
def test_every_error_is_also_the_builtin(name: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, errors.WirespeedError)
    assert issubclass(kind, BUILTIN[name])
    assert kind.__doc__
    assert kind.kind.islower()
    with pytest.raises(BUILTIN[name]):
        raise kind("what happened")


@pytest.mark.parametrize("name", BUILTIN)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_error_survives_a_pickle(name: str, protocol: int) -> None:
    error = getattr(errors, name)("what happened", **FIELDS)
    for again in (
        pickle.loads(pickle.dumps(error, protocol)),
        copy.copy(error),
        copy.deepcopy(error),
    ):
        assert type(again) is type(error)
        assert str(again) == "what happened"
        assert {field: getattr(again, field) for field in FIELDS} == FIELDS
        assert getattr(again, "errno", None) == getattr(error, "errno", None)
        assert getattr(again, "filename", None) == getattr(error, "filename", None)


def test_an_os_error_has_its_number_and_a_file_name() -> None:
    error = errors.NotFoundError("gone", bucket="b", key="k")
    assert (error.errno, error.filename, str(error)) == (errno.ENOENT, "s3://b/k", "gone")
    assert errors.DeniedError("no").errno == errno.EACCES
    assert errors.TimedOutError("late").errno == errno.ETIMEDOUT
    assert errors.LocalIOError("full", errno=errno.ENOSPC).errno == errno.ENOSPC


def test_an_error_without_context_is_an_error() -> None:
    for name in BUILTIN:
        error = getattr(errors, name)()
        assert str(error) == ""
        assert error.operation is None
        assert error.attempts == 0


@pytest.mark.every_store
def test_missing_things_say_what_is_missing(verbs: Any, bucket: str) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        verbs.get("absent", bucket=bucket)
    error = raised.value
    assert type(error) is wirespeed.NotFoundError
    assert (error.kind, error.operation, error.code, error.status) == (
        "not_found",
        "get",
        "NoSuchKey",
        404,
    )
    assert (error.errno, error.filename) == (errno.ENOENT, f"s3://{bucket}/absent")
    assert error.elapsed > 0
    with pytest.raises(wirespeed.NotFoundError) as raised:
        verbs.get("k", bucket="no-such-bucket-here")
    assert raised.value.code == "NoSuchBucket"
    with pytest.raises(wirespeed.NotFoundError) as raised:
        verbs.head("absent", bucket=bucket)
    assert (raised.value.operation, raised.value.status) == ("head", 404)


def test_the_request_id_is_the_servers(verbs: Any, bucket: str) -> None:
    with pytest.raises(wirespeed.NotFoundError) as raised:
        verbs.get("absent", bucket=bucket)
    assert raised.value.request_id
    assert raised.value.request_id in str(raised.value)


def test_wrong_keys_are_denied(store: Any, bucket: str) -> None:
    secret = "wr0ng/+" * 5
    client = wirespeed.Client(
        endpoint_url=store.endpoint,
        region="us-east-1",
        access_key_id=store.access_key,
        secret_access_key=secret,
    )
    with pytest.raises(PermissionError) as raised:
        client.get("k", bucket=bucket)
    error = raised.value
    assert type(error) is wirespeed.DeniedError
    assert error.status == 403
    assert error.code == "SignatureDoesNotMatch"
    assert secret not in "".join(traceback.format_exception(error))


def test_absent_credentials_are_denied_and_advised(store: Any, bucket: str) -> None:
    client = wirespeed.Client(endpoint_url=store.endpoint, region="us-east-1")
    with pytest.raises(wirespeed.DeniedError) as raised:
        client.get("k", bucket=bucket)
    assert "AWS_ACCESS_KEY_ID" in str(raised.value) or "credentials" in str(raised.value)


FAULTS: list[tuple[str, type[Exception], type[Exception], str | None]] = [
    ("error:403:AccessDenied", wirespeed.DeniedError, PermissionError, "AccessDenied"),
    ("error:503:SlowDown", wirespeed.ThrottledError, OSError, "SlowDown"),
    ("error:500:InternalError", wirespeed.ServerError, OSError, "InternalError"),
    ("bare-status:502", wirespeed.ServerError, OSError, None),
    ("malformed-head:version", wirespeed.ProtocolError, OSError, None),
    ("close", wirespeed.BrokenConnectionError, ConnectionError, None),
    ("corrupt:1", wirespeed.IntegrityError, OSError, None),
    ("stall", wirespeed.TimedOutError, TimeoutError, None),
]


@pytest.mark.parametrize(("action", "kind", "builtin", "code"), FAULTS)
def test_what_the_server_does_becomes_its_error(
    new_client: Any,
    origin: Any,
    bucket: str,
    action: str,
    kind: type[Exception],
    builtin: type[Exception],
    code: str | None,
) -> None:
    client = new_client(max_attempts=2, first_byte_timeout=0.3, stall_timeout=0.3)
    client.put("k", b"x" * 100, bucket=bucket)
    with origin.misbehaving({"action": action, "verb": "get", "bucket": bucket}):
        with pytest.raises(builtin) as raised:
            client.get("k", bucket=bucket)
        as_value = client.get_many(["k"], bucket=bucket, errors="return")[0]
    for error in (raised.value, as_value):
        assert type(error) is kind
        assert isinstance(error, builtin)
        assert error.code == code
        assert (error.bucket, error.key) == (bucket, "k")
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.attempts, again.elapsed) == (
            str(error),
            error.attempts,
            error.elapsed,
        )
    # The client goes on.
    assert client.get("k", bucket=bucket) == b"x" * 100


def test_attempts_are_counted(new_client: Any, origin: Any, bucket: str) -> None:
    client = new_client(max_attempts=3)
    fault = {"action": "status:500", "verb": "get", "bucket": bucket}
    with origin.misbehaving(fault), pytest.raises(wirespeed.ServerError) as raised:
        client.get("k", bucket=bucket)
    assert raised.value.attempts == 3


def test_an_endpoint_where_nobody_listens_breaks_the_connection(verbs: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = wirespeed.Client(
        endpoint_url=f"http://127.0.0.1:{port}", region="r", anonymous=True, max_attempts=1
    )
    with pytest.raises(ConnectionError) as raised:
        client.get("s3://bucket/k")
    assert type(raised.value) is wirespeed.BrokenConnectionError
    assert "refused" in str(raised.value)
    assert str(port) in str(raised.value)


def test_a_name_that_does_not_resolve_is_said() -> None:
    client = wirespeed.Client(
        endpoint_url="http://no-such-host.invalid", region="r", anonymous=True, max_attempts=1
    )
    with pytest.raises(wirespeed.BrokenConnectionError, match=r"no-such-host\.invalid"):
        client.get("s3://bucket/k")


def test_what_is_not_http_is_a_protocol_error() -> None:
    with endpoints.answering(b"220 mail.example ESMTP\r\n") as url:
        client = wirespeed.Client(endpoint_url=url, region="r", anonymous=True, max_attempts=1)
        with pytest.raises(wirespeed.ProtocolError):
            client.get("s3://bucket/k")


def test_a_local_file_that_is_missing_is_named(verbs: Any, bucket: str, tmp_path: Any) -> None:
    with pytest.raises(OSError, match="absent") as raised:
        verbs.put_file("k", tmp_path / "absent", bucket=bucket)
    assert isinstance(raised.value, wirespeed.LocalIOError)
    assert type(raised.value) is wirespeed.LocalFileNotFoundError
    assert raised.value.errno == errno.ENOENT


def test_a_bucket_that_exists_is_a_conflict(verbs: Any, bucket: str) -> None:
    with pytest.raises(FileExistsError):
        verbs.create_bucket(bucket)


def test_nothing_shadows_a_builtin() -> None:
    assert not set(errors.__all__) & set(dir(builtins))
