"""What is set up wrongly, each said in a line that names it and what to do, in bounded time."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

import endpoints
import pytest
import servers
from shell import Ran, Shell


@pytest.fixture
def origin_with(tmp_path, transcript, wirespeed_at) -> Iterator[Callable[..., Shell]]:
    """`wirespeed` against an embedded server that is started with these flags, with a bucket."""
    with contextlib.ExitStack() as stack:

        def start(*flags: str) -> Shell:
            scratch = tmp_path / f"server-{time.monotonic_ns()}"
            scratch.mkdir()
            flags = ("--bucket", "bucket", *flags)
            server = stack.enter_context(servers.origin(scratch, flags=flags))
            transcript.keep_secret(server.secret_key)
            shell = wirespeed_at(server, server.endpoint)
            # What this machine's own way to the internet is has no part in it.
            return shell.with_env(HTTPS_PROXY="", https_proxy="", NO_PROXY="", no_proxy="")

        yield start


def fails(ran: Ran, *words: str, within: float = 15.0) -> None:
    """One line on standard error, with these words in it, soon."""
    assert "panicked" not in ran.text, str(ran)
    assert ran.code in (2, 3), str(ran)
    lines = [line for line in ran.err.decode().splitlines() if "WARNING" not in line]
    assert len(lines) == 1, str(ran)
    assert lines[0].startswith("wirespeed: "), str(ran)
    for word in words:
        assert word in lines[0], str(ran)
    assert ran.seconds < within, str(ran)


# ------------------------------------------------------------------ who asks, where, and when


def test_a_bucket_of_another_region_is_found(origin_with, tmp_path):
    ws = origin_with("--fault", "action=wrong-region:eu-west-1,times=1")
    (tmp_path / "f").write_bytes(b"x")
    ws("cp", tmp_path / "f", "s3://bucket/k")
    assert ws("cat", "s3://bucket/k").out == b"x"


@pytest.mark.parametrize(
    "action", ["error:301:PermanentRedirect", "error:400:AuthorizationHeaderMalformed"]
)
def test_a_region_that_is_never_right(origin_with, action):
    ws = origin_with("--fault", f"action={action}")
    fails(ws("ls", "s3://bucket", code=3), action.rpartition(":")[2], "region")


def test_an_unknown_access_key(origin_with):
    ws = origin_with().with_env(AWS_ACCESS_KEY_ID="AKNOBODY")
    fails(ws("ls", "s3://bucket", code=3), "InvalidAccessKeyId")


def test_an_expired_token(origin_with, transcript):
    token = "session/+" + servers.new_keys()[1]
    transcript.keep_secret(token)
    ws = origin_with("--fault", "action=expired-token").with_env(AWS_SESSION_TOKEN=token)
    ws("-vv", "ls", "s3://bucket", code=3)
    fails(ws("ls", "s3://bucket", code=3), "expired")


@pytest.mark.parametrize("seconds", [-7200, 7200])
def test_a_clock_that_is_wrong_is_corrected(origin_with, seconds):
    ws = origin_with("--clock-skew", str(seconds))
    ws("ls", "s3://bucket")


# ------------------------------------------------------------------ profiles


@pytest.fixture
def at_home(origin_with, tmp_path, transcript) -> Callable[..., Shell]:
    """`wirespeed` without keys in the environment, with these files in its place for them."""

    def at(config: str = "", credentials: str = "", **env: str) -> Shell:
        (tmp_path / "config").write_text(config)
        (tmp_path / "credentials").write_text(credentials)
        return origin_with().with_env(
            AWS_ACCESS_KEY_ID="",
            AWS_SECRET_ACCESS_KEY="",
            AWS_CONFIG_FILE=str(tmp_path / "config"),
            AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "credentials"),
            **env,
        )

    return at


def test_no_credentials_at_all(at_home):
    ran = at_home()("ls", "s3://bucket", code=None)
    fails(ran, "no credentials", "AWS_ACCESS_KEY_ID", "--no-sign-request")


def test_a_profile_that_is_not_there(at_home):
    fails(at_home()("--profile", "nobody", "ls", "s3://bucket", code=None), "nobody", "--profile")


@pytest.mark.parametrize(
    "config", ["[default\nx", "region = x\n[default]\n", "[profile a]\nnonsense\n"]
)
def test_a_profile_file_that_is_malformed(at_home, tmp_path, config):
    ran = at_home(config)("--profile", "a", "ls", "s3://bucket", code=None)
    fails(ran, "config")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_profile_file_that_is_unreadable(at_home, tmp_path):
    ws = at_home("[default]\n")
    (tmp_path / "credentials").chmod(0)
    fails(ws("ls", "s3://bucket", code=None), "credentials")


def test_a_profile_file_that_is_a_folder(at_home, tmp_path):
    ws = at_home("[default]\n").with_env(AWS_CONFIG_FILE=str(tmp_path))
    fails(ws("ls", "s3://bucket", code=None), "cannot be read", "AWS_CONFIG_FILE")


def test_a_profile_signs(at_home, transcript):
    _, other = servers.new_keys()
    transcript.keep_secret(other)
    ws = at_home(
        credentials=f"[mine]\naws_access_key_id = AKOTHER\naws_secret_access_key = {other}\n"
    )
    fails(ws("--profile", "mine", "ls", "s3://bucket", code=3), "InvalidAccessKeyId")
    fails(ws.with_env(AWS_PROFILE="mine")("ls", "s3://bucket", code=3), "InvalidAccessKeyId")


def test_a_process_that_prints_nonsense_keeps_its_secret(at_home, tmp_path, transcript):
    _, secret = servers.new_keys()
    transcript.keep_secret(secret)
    (tmp_path / "said").write_text(f'{{"Version": 1, "SecretAccessKey": "{secret}"')
    ws = at_home(f"[default]\ncredential_process = cat {tmp_path / 'said'}\n")
    fails(ws("ls", "s3://bucket", code=None), "process")
    ws("-vv", "ls", "s3://bucket", code=None)


def test_a_metadata_service_that_hangs(at_home):
    with endpoints.silent() as silent:
        ws = at_home(AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT=silent)
        fails(ws("ls", "s3://bucket", code=None), "metadata", within=10)


def test_a_container_service_that_hangs(at_home):
    with endpoints.silent() as silent:
        ws = at_home(AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{silent}/credentials")
        fails(ws("ls", "s3://bucket", code=None), "container", within=10)


# ------------------------------------------------------------------ certificates


@pytest.fixture
def trusted(tmp_path) -> str:
    """Where a server writes what is to be trusted."""
    return str(tmp_path / "ca.pem")


def test_a_certificate_of_an_authority_that_is_named(origin_with, trusted):
    ws = origin_with("--tls", "--tls-ca-file", trusted)
    ws("--ca-bundle", trusted, "ls", "s3://bucket")
    ws.with_env(AWS_CA_BUNDLE=trusted)("ls", "s3://bucket")
    fails(ws("ls", "s3://bucket", code=3), "certificate", "AWS_CA_BUNDLE")


@pytest.mark.parametrize(
    ("fault", "word"),
    [("wrong-name", "name"), ("expired", "expired"), ("self-signed", "certificate")],
)
def test_a_bad_certificate(origin_with, trusted, fault, word):
    ws = origin_with("--tls", "--tls-ca-file", trusted, "--tls-fault", fault)
    flags = [] if fault == "self-signed" else ["--ca-bundle", trusted]
    fails(ws(*flags, "ls", "s3://bucket", code=3), word)
    ran = ws("--no-verify-ssl", "ls", "s3://bucket")
    assert ran.err.decode().count("NOT verified") == 1, str(ran)


def test_a_bundle_that_is_none(origin_with, tmp_path):
    ws = origin_with("--tls")
    (tmp_path / "bundle").write_text("no certificate")
    fails(ws("--ca-bundle", tmp_path / "bundle", "ls", "s3://bucket", code=None), "bundle")
    fails(ws("--ca-bundle", tmp_path / "none", "ls", "s3://bucket", code=None), "none")


# ------------------------------------------------------------------ proxies


def test_a_proxy_that_is_not_there(origin_with):
    proxy = f"http://127.0.0.1:{servers.free_port()}"
    ws = origin_with("--tls").with_env(HTTPS_PROXY=proxy)
    fails(ws("--set", "max_attempts=2", "ls", "s3://bucket", code=3), proxy.removeprefix("http://"))


def test_a_proxy_that_refuses(origin_with):
    with endpoints.answering(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as proxy:
        ws = origin_with("--tls").with_env(HTTPS_PROXY=proxy)
        fails(ws("ls", "s3://bucket", code=3), "403", "HTTPS_PROXY")


def test_a_proxy_that_hangs(origin_with):
    with endpoints.silent() as proxy:
        ws = origin_with("--tls").with_env(HTTPS_PROXY=proxy)
        quick = ["--set", "connect_timeout=1s", "--set", "max_attempts=1"]
        fails(ws(*quick, "ls", "s3://bucket", code=3), "proxy", within=10)


def test_the_password_of_a_proxy_is_never_told(origin_with, transcript):
    _, password = servers.new_keys()
    password = password.replace("/", "-").replace("+", "-")
    transcript.keep_secret(password)
    proxy = f"http://someone:{password}@127.0.0.1:{servers.free_port()}"
    ws = origin_with("--tls").with_env(HTTPS_PROXY=proxy)
    ws("-vv", "--set", "max_attempts=1", "ls", "s3://bucket", code=3)
    ws("--json", "bench", "get", "s3://bucket/k", "--rounds", "1", code=3)
