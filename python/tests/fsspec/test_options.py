"""What a file system may be told, and what of it is kept, shown and handed on."""

from __future__ import annotations

import copy
import json
import multiprocessing
import operator
import pickle
import subprocess
import sys
import uuid
from typing import Any

import fsspec
import pytest
import servers
from fsspec.config import set_conf_env

from wirespeed import Client
from wirespeed.errors import ConfigError
from wirespeed.fsspec import (
    S3FileSystem,
    WirespeedFileSystem,
    give_back_s3,
    options,
    take_over_s3,
)

PASSWORD = "pass-pass-word"
SECRET = "s3cr3t/+" + "x" * 30


def client_keywords(**given: Any) -> dict[str, Any]:
    """What the client is told."""
    return options.parse(given).client


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"key": "AK", "secret": "SK", "token": "T"}, {
            "access_key_id": "AK", "secret_access_key": "SK", "session_token": "T"}),
        ({"username": "AK", "password": "SK"}, {"access_key_id": "AK", "secret_access_key": "SK"}),
        ({"client_kwargs": {"aws_access_key_id": "A", "aws_secret_access_key": "S"}}, {
            "access_key_id": "A", "secret_access_key": "S"}),
        ({"anon": True}, {"anonymous": True}),
        ({"anon": "true", "key": "AK", "secret": "SK"}, {"anonymous": True}),
        ({"anon": False}, {}),
        ({"endpoint_url": "http://a", "client_kwargs": {"endpoint_url": "http://b"}}, {
            "endpoint_url": "http://a"}),
        ({"client_kwargs": {"endpoint_url": "http://b", "region_name": "eu-central-1"}}, {
            "endpoint_url": "http://b", "region": "eu-central-1"}),
        ({"client_kwargs": {"verify": False}}, {"verify_tls": False}),
        ({"client_kwargs": {"verify": "/ca.pem"}}, {"ca_bundle": "/ca.pem"}),
        ({"profile": "work"}, {"profile": "work"}),
        ({"config_kwargs": {"connect_timeout": 3, "read_timeout": 9}}, {
            "connect_timeout": 3, "first_byte_timeout": 9, "stall_timeout": 9}),
        ({"config_kwargs": {"retries": {"max_attempts": 4}}}, {"max_attempts": 5}),
        ({"config_kwargs": {"retries": {"total_max_attempts": 4}}}, {"max_attempts": 4}),
        ({"config_kwargs": {"s3": {"addressing_style": "path"}}}, {"addressing_style": "path"}),
        ({"config_kwargs": {"signature_version": "s3v4", "max_pool_connections": 50}}, {
            "concurrency": 50}),
        ({"use_ssl": False, "endpoint_url": "http://a"}, {"endpoint_url": "http://a"}),
        ({"concurrency": "7", "verify_checksums": "false", "part_size": "16MiB"}, {
            "concurrency": 7, "verify_checksums": False, "part_size": "16MiB"}),
        ({"max_concurrency": 4, "cache_regions": True, "fixed_upload_size": True}, {}),
    ],
)  # fmt: skip
def test_the_client_is_told_in_its_own_words(given: dict[str, Any], told: dict[str, Any]) -> None:
    assert client_keywords(**given) == told


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"endpoint": "http://a"}, "endpoint; did you mean endpoint_url"),
        ({"client_kwargs": {"region": "x"}}, "region"),
        ({"client_kwargs": 3}, "mapping"),
        ({"config_kwargs": {"signature_version": "s3"}}, "s3v4"),
        ({"config_kwargs": {"proxies": {"http": "http://p"}}}, "https"),
        ({"config_kwargs": {"s3": {"colour": "red"}}}, "colour"),
        ({"s3_additional_kwargs": {"Colour": "red"}}, "Colour"),
        ({"session": object()}, "profile"),
        ({"use_ssl": False}, "http://"),
        ({"local_expiry_check": True}, "local_expiry_check"),
        ({"requester_pays": "perhaps"}, "requester_pays"),
    ],
)
def test_what_is_not_known_is_an_error_that_names_it(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        WirespeedFileSystem(**given)


def test_requests_carry_what_s3s_own_names_say() -> None:
    said = options.parse(
        {
            "requester_pays": True,
            "s3_additional_kwargs": {"StorageClass": "STANDARD_IA", "Tagging": "a=1&b=x%20y"},
        }
    )
    assert said.reading({"version_id": "v"}) == {"request_payer": True, "version_id": "v"}
    assert said.writing({"ContentType": "text/csv", "acl": False}) == {
        "request_payer": True,
        "storage_class": "STANDARD_IA",
        "tags": {"a": "1", "b": "x y"},
        "content_type": "text/csv",
    }
    assert said.writing({"content_type": "text/csv"})["content_type"] == "text/csv"
    assert said.access() == {"request_payer": True}
    with pytest.raises(TypeError, match="ContentTypo"):
        said.writing({"ContentTypo": "text/csv"})


def test_a_variable_of_the_environment_makes_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    conf: dict[str, dict[str, str]] = {}
    set_conf_env(conf, {"FSSPEC_WIRESPEED_ANON": "true", "FSSPEC_WIRESPEED_REGION": "eu-north-1"})
    monkeypatch.setitem(fsspec.config.conf, "wirespeed", conf["wirespeed"])
    fs = fsspec.filesystem("wirespeed", skip_instance_cache=True)
    assert fs.options.client == {"anonymous": True, "region": "eu-north-1"}


def test_the_same_options_give_the_same_instance_and_another_secret_another() -> None:
    one = WirespeedFileSystem(key="AK", secret="first")
    assert WirespeedFileSystem(key="AK", secret="first") is one
    assert WirespeedFileSystem(key="AK", secret="second") is not one
    assert hash(one) == hash(one)


def test_a_secret_is_not_shown() -> None:
    fs = WirespeedFileSystem(
        key="AK",
        secret=SECRET,
        token=SECRET + "t",
        client_kwargs={"aws_session_token": SECRET},
        skip_instance_cache=True,
    )
    shown = [repr(fs), str(fs), repr(fs.storage_options), repr(fs.options), repr(vars(fs))]
    shown.append(fs.to_json(include_password=False))
    assert SECRET not in "".join(shown)
    assert "AK" in repr(fs.storage_options)


def test_a_secret_is_not_handed_on_unless_it_is_said_so() -> None:
    fs = WirespeedFileSystem(key="AK", secret=SECRET, skip_instance_cache=True)
    for hand_on in (lambda it: it.to_json(), lambda it: pickle.dumps(it.options)):
        with pytest.raises(ConfigError, match="pickle_secrets"):
            hand_on(fs)
    assert SECRET.encode() not in pickle.dumps([fs, fs.storage_options])
    assert copy.deepcopy(fs.storage_options)["secret"] == SECRET

    said = WirespeedFileSystem(key="AK", secret=SECRET, pickle_secrets=True)
    again = pickle.loads(pickle.dumps(said))
    assert again.options.client["secret_access_key"] == SECRET
    assert WirespeedFileSystem.from_json(said.to_json()).options.client["access_key_id"] == "AK"


def test_a_pickle_finds_its_secret_in_the_process_that_was_given_it() -> None:
    fs = WirespeedFileSystem(key="AK", secret=SECRET, client_kwargs={"aws_session_token": SECRET})
    assert pickle.loads(pickle.dumps(fs)) is fs
    options = pickle.loads(pickle.dumps(fs.storage_options))
    assert options["secret"] == options["client_kwargs"]["aws_session_token"] == SECRET
    assert SECRET not in repr(options)
    assert WirespeedFileSystem(**options).client.presign("s3://bucket/k")


def test_a_pickle_is_elsewhere_a_file_system_that_names_what_to_do_when_it_is_used(
    origin: servers.Server,
) -> None:
    """Unpickling may not fail: multiprocessing's pools would wait for ever."""
    given = {"SSECustomerKey": SECRET.ljust(32, "x").encode()}
    fs = WirespeedFileSystem(key="AK", secret=SECRET, endpoint_url=origin.endpoint)
    with_key = WirespeedFileSystem(endpoint_url=origin.endpoint, s3_additional_kwargs=given)
    code = """
import pickle, sys
from wirespeed import ConfigError
from wirespeed.fsspec import WirespeedFileSystem

one, other, options = pickle.load(sys.stdin.buffer)
back = pickle.dumps([one, options])
for fs in (one, other, WirespeedFileSystem(**options)):
    repr(fs), repr(fs.storage_options), hash(fs), fs.__dask_tokenize__()
    for use in (lambda: fs.cat_file("b/k"), lambda: fs.exists("b/k"), lambda: fs.find("b"),
                lambda: fs.open("b/k"), lambda: fs.open("b/k", "wb").close()):
        try:
            use()
        except ConfigError as error:
            assert "pickle_secrets=True" in str(error), error
            assert "AWS_ACCESS_KEY_ID" in str(error), error
        else:
            raise SystemExit("it was used")
sys.stdout.buffer.write(back)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps([fs, with_key, fs.storage_options]),
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    # And where the secret is known it is found again.
    again, options = pickle.loads(done.stdout)
    assert again is fs
    assert options == fs.storage_options


class Session:
    """As botocore's: an object that holds a secret and can be pickled."""

    def __init__(self) -> None:
        self.secret = SECRET


def test_an_object_that_holds_a_secret_is_not_pickled() -> None:
    from wirespeed.fsspec.secrets import any_absent, plain, referenced, veiled

    session = Session()
    options = veiled({"session": session, "anon": False})
    pickled = pickle.dumps(referenced(options))
    assert SECRET.encode() not in pickled
    assert pickle.loads(pickled)["session"] is session
    assert plain(options, keep=False) == {"anon": False}
    code = "import pickle, sys; print(type(pickle.load(sys.stdin.buffer)['session']).__name__)"
    done = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True)
    assert done.stdout == b"Absent\n", done.stderr
    assert any_absent(options) is False


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_pools_of_processes_get_an_answer(origin: servers.Server, start: str) -> None:
    """Children that are forked know the secret; others say at once that they do not."""
    fs = WirespeedFileSystem(
        key=origin.access_key,
        secret=origin.secret_key,
        endpoint_url=origin.endpoint,
        client_kwargs={"region_name": servers.REGION},
    )
    bucket = f"b-{uuid.uuid4().hex[:16]}"
    fs.mkdir(bucket)
    fs.pipe_file(f"{bucket}/k", b"body")
    with multiprocessing.get_context(start).Pool(1) as pool:
        for asked in (
            pool.apply_async(fs.cat_file, (f"{bucket}/k",)),
            pool.apply_async(operator.methodcaller("read"), (fs.open(f"{bucket}/k"),)),
        ):
            if start == "fork":
                assert asked.get(60) == b"body"
            else:
                with pytest.raises(ConfigError, match="pickle_secrets=True"):
                    asked.get(60)
    fs.rm(bucket, recursive=True)


def test_without_a_secret_a_file_system_is_handed_on_as_it_is() -> None:
    fs = WirespeedFileSystem(
        endpoint_url="http://localhost:9", client_kwargs={"region_name": "r-1"}
    )
    assert pickle.loads(pickle.dumps(fs)) is fs
    assert fsspec.AbstractFileSystem.from_json(fs.to_json()) is fs
    assert json.loads(fs.to_json())["protocol"] == "wirespeed"


def test_the_scheme_s3_is_taken_over_only_when_asked_and_given_back() -> None:
    before = fsspec.registry.get("s3")
    assert before is not S3FileSystem
    take_over_s3()
    take_over_s3()
    try:
        assert fsspec.get_filesystem_class("s3") is S3FileSystem
        fs, path = fsspec.core.url_to_fs("s3a://bucket/key", anon=True)
        assert isinstance(fs, WirespeedFileSystem)
        assert path == "bucket/key"
        assert fs.unstrip_protocol("bucket/key") == "s3://bucket/key"
    finally:
        give_back_s3()
    assert fsspec.registry.get("s3") is before
    assert fsspec.get_filesystem_class("wirespeed") is WirespeedFileSystem


def test_paths_are_taken_with_any_of_the_schemes() -> None:
    fs = WirespeedFileSystem(anon=True)
    for url in ("s3://b/k/x", "s3a://b/k/x", "wirespeed://b/k/x", "b/k/x", "b/k/x/"):
        assert fs._strip_protocol(url) == "b/k/x"
    assert fs.split_path("s3://b/k%20 ü+?.txt") == ("b", "k%20 ü+?.txt", None)
    assert fs.unstrip_protocol("b/k") == "wirespeed://b/k"
    aware = WirespeedFileSystem(anon=True, version_aware=True)
    assert aware.split_path("b/k?versionId=v1") == ("b", "k", "v1")
    assert fsspec.core.url_to_fs("wirespeed://b/k?versionId=v1", anon=True)[0].version_aware


def test_making_a_file_system_starts_no_thread_and_sends_nothing() -> None:
    code = """
import threading
from wirespeed.fsspec import WirespeedFileSystem
fs = WirespeedFileSystem(key="a", secret="b", endpoint_url="http://127.0.0.1:1")
assert threading.active_count() == 1, threading.enumerate()
assert len(__import__("os").listdir("/proc/self/task")) == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_options_of_our_own_reach_the_client() -> None:
    fs = WirespeedFileSystem(anon=True, concurrency=3, part_size="16MiB", skip_instance_cache=True)
    assert isinstance(fs.client, Client)
    assert fs.client.settings["concurrency"] == "3"


@pytest.mark.parametrize(
    "given",
    [
        {"s3_additional_kwargs": {"SSECustomerKey": SECRET.ljust(32, "x")}},
        {"s3_additional_kwargs": {"SSECustomerKey": SECRET.ljust(32, "x").encode()}},
        {"https_proxy": f"http://user:{PASSWORD}@localhost:9"},
        {"config_kwargs": {"proxies": {"https": f"http://user:{PASSWORD}@localhost:9"}}},
        {"client_kwargs": {"aws_secret_access_key": SECRET, "aws_access_key_id": "AK"}},
    ],
)
def test_a_secret_is_kept_wherever_it_stands(given: dict[str, Any]) -> None:
    fs = WirespeedFileSystem(**given, endpoint_url="https://localhost:9", skip_instance_cache=True)
    shown = [repr(fs), repr(fs.storage_options), repr(fs.options), repr(vars(fs))]
    shown.append(fs.to_json(include_password=False))
    assert SECRET not in "".join(shown)
    assert PASSWORD not in "".join(shown)
    for hand_on in (lambda it: it.to_json(), lambda it: pickle.dumps(vars(it))):
        with pytest.raises(ConfigError, match="pickle_secrets"):
            hand_on(fs)
    pickled = pickle.dumps([fs, fs.storage_options])
    assert SECRET.encode() not in pickled
    assert PASSWORD.encode() not in pickled
    assert pickle.loads(pickled)[0].options.extra == fs.options.extra
    said = WirespeedFileSystem(**given, pickle_secrets=True, skip_instance_cache=True)
    assert pickle.loads(pickle.dumps(said)).options.extra == fs.options.extra


def test_what_stands_before_a_host_is_not_shown() -> None:
    from wirespeed.fsspec.secrets import any_secret, veiled

    given = {"endpoint_url": f"https://user:{SECRET}@localhost:9"}
    assert any_secret(given)
    assert SECRET not in repr(veiled(given))
    assert not any_secret({"endpoint_url": "https://localhost:9", "https_proxy": "http://p:1"})


def test_an_open_file_does_not_carry_a_key_away(
    origin: servers.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wirespeed.fsspec.core import Place
    from wirespeed.fsspec.reading import ReadFile

    fs = WirespeedFileSystem(endpoint_url=origin.endpoint)
    how: dict[str, Any] = {"block_size": None, "cache_type": "none", "cache_options": None}
    details = {"size": 1, "ETag": '"e"', "name": "b/k", "type": "file"}
    options = {"sse_customer_key": SECRET.ljust(32, "x").encode()}
    with pytest.raises(ConfigError, match="pickle_secrets"):
        pickle.dumps(ReadFile(fs, Place("b", "k"), details, options=options, **how))
