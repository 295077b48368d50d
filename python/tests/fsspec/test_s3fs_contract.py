"""Code written for s3fs relies on more than single calls: construction, sessions, warnings, and
fsspec's own layers on top of `S3FileSystem`."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import pickle
import zipfile
from pathlib import Path
from typing import Any

import botocore.session
import fsspec
import fsspec.generic
import pytest
import servers
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.memory import MemoryFileSystem

import wirespeed.fsspec
from wirespeed.errors import ConfigError
from wirespeed.fsspec import S3FileSystem, S3Map, WirespeedFileSystem, give_back_s3, take_over_s3
from wirespeed.fsspec import options as option_names

SECRET = "very-secret-text"


@pytest.fixture
def s3fs(options: dict[str, Any]) -> S3FileSystem:
    """The file system in s3fs's place, on each server."""
    return S3FileSystem(**options, skip_instance_cache=True)


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Any:
    """Returns the messages that were logged as warnings; no name has been warned of before."""
    option_names._warned.clear()
    caplog.set_level(logging.WARNING, logger="wirespeed.fsspec")
    return lambda: [record.getMessage() for record in caplog.records]


# ---------------------------------------------------------------------- construction


def test_arguments_by_position_are_kept_by_name() -> None:
    fs = S3FileSystem(False, "http://localhost:9", "AK", SECRET, "TOK", skip_instance_cache=True)
    assert (fs.endpoint_url, fs.key, fs.secret, fs.token) == (
        "http://localhost:9",
        "AK",
        SECRET,
        "TOK",
    )
    assert fs.client.settings["endpoint_url"].startswith("http://localhost:9")
    shown = [repr(fs), repr(vars(fs)), repr(fs.storage_options), repr(fs.options)]
    shown += [fs.to_json(include_password=False), repr(fs.s3)]
    assert SECRET not in "".join(shown)
    with contextlib.suppress(ConfigError):
        assert SECRET.encode() not in pickle.dumps(fs)
    anonymous = S3FileSystem(True, "http://localhost:9", skip_instance_cache=True)
    for other in (
        pickle.loads(pickle.dumps(anonymous)),
        fsspec.AbstractFileSystem.from_json(anonymous.to_json()),
    ):
        assert other.anon
        assert other.endpoint_url == "http://localhost:9"
    assert S3FileSystem(True, "http://localhost:9") is S3FileSystem(True, "http://localhost:9")


def test_username_and_password_are_key_and_secret() -> None:
    fs = S3FileSystem(username="AK", password="SK", skip_instance_cache=True)
    assert (fs.key, fs.secret) == ("AK", "SK")
    for twice in ({"key": "a", "username": "b"}, {"key": "a", "secret": "b", "password": "c"}):
        with pytest.raises(KeyError):
            S3FileSystem(**twice, skip_instance_cache=True)
    with pytest.raises(ValueError, match="max_concurrency"):
        S3FileSystem(anon=True, max_concurrency=0, skip_instance_cache=True)


def test_attributes_are_what_was_given() -> None:
    given: dict[str, Any] = {
        "requester_pays": True,
        "default_block_size": 1 << 20,
        "default_fill_cache": False,
        "default_cache_type": "readahead",
        "version_aware": True,
        "client_kwargs": {"region_name": "eu-west-1"},
        "config_kwargs": {"max_pool_connections": 3},
        "s3_additional_kwargs": {"ServerSideEncryption": "AES256"},
        "cache_regions": True,
        "max_concurrency": 7,
        "fixed_upload_size": True,
        "use_ssl": True,
    }
    fs = S3FileSystem(anon=True, profile=None, **given, skip_instance_cache=True)
    for name, value in given.items():
        assert getattr(fs, name) == value, name
    assert fs.req_kw == {"RequestPayer": "requester"}
    assert fs.kwargs == {"profile": None}
    assert fs.key is fs.secret is fs.token is None


def test_defaults_set_on_the_class_hold(
    monkeypatch: pytest.MonkeyPatch, s3fs: S3FileSystem, bucket: str
) -> None:
    s3fs.pipe_file(f"{bucket}/k", b"x")
    assert s3fs.open(f"{bucket}/k").blocksize != 123456
    monkeypatch.setattr(S3FileSystem, "default_block_size", 123456)
    monkeypatch.setattr(S3FileSystem, "read_timeout", 77)
    monkeypatch.setattr(S3FileSystem, "retries", 9)
    assert s3fs.open(f"{bucket}/k").blocksize == 123456
    made = S3FileSystem(anon=True, skip_instance_cache=True)
    assert made.client.settings["stall_timeout"] == "1m 17s"
    assert made.client.settings["max_attempts"] == "9"
    explicit = S3FileSystem(anon=True, config_kwargs={"read_timeout": 5}, skip_instance_cache=True)
    assert explicit.client.settings["stall_timeout"] == "5s"


def test_a_session_gives_its_profile_region_and_credentials() -> None:
    session = botocore.session.Session(profile="test-user")
    assert option_names.parse({"session": session}).client["profile"] == "test-user"
    session = botocore.session.Session()
    session.set_credentials("AK", SECRET, "TOK")
    session.set_config_variable("region", "eu-west-3")
    read = option_names.parse({"session": session})
    assert read.client["access_key_id"] == "AK"
    assert read.client["region"] == "eu-west-3"
    assert read.explicit_secret
    fs = S3FileSystem(session=session, skip_instance_cache=True)
    assert fs.session is session
    assert SECRET not in repr(fs.options)
    with pytest.raises(ConfigError, match="pickle_secrets"):
        pickle.dumps(fs)
    assert (
        option_names.parse({"session": session, "key": "K2", "secret": "S"}).client["access_key_id"]
        == "K2"
    )

    class Expiring:
        profile = None
        _credentials = type("Refreshable", (), {"refresh_needed": None})()

        def get_config_variable(self, name: str) -> None:
            """As botocore's."""

    with pytest.raises(ConfigError, match="expire"):
        S3FileSystem(session=Expiring(), skip_instance_cache=True)


def test_an_option_that_would_be_unsafe_to_ignore_is_refused() -> None:
    with pytest.raises(ConfigError, match="local_expiry_check"):
        S3FileSystem(anon=True, local_expiry_check=True, skip_instance_cache=True)
    with pytest.raises(ConfigError, match="http://"):
        S3FileSystem(anon=True, use_ssl=False, skip_instance_cache=True)
    with pytest.raises(ConfigError, match="profil"):
        S3FileSystem(anon=True, profil="x", skip_instance_cache=True)


def test_options_of_sessions_are_ignored_with_a_warning(warnings: Any) -> None:
    S3FileSystem(anon=True, session_vars={}, skip_instance_cache=True)
    assert len(warnings()) == 1
    assert "session_vars" in warnings()[0]
    with pytest.raises(ConfigError):
        WirespeedFileSystem(anon=True, session_vars={}, skip_instance_cache=True)


class SSEParams:
    """As s3fs's class of this name."""

    def to_kwargs(self) -> dict[str, str]:
        """The value that is given."""
        return {"ServerSideEncryption": "AES256"}


def test_encryption_is_taken_in_the_form_of_s3fs() -> None:
    fs = S3FileSystem(anon=True, s3_additional_kwargs=SSEParams(), skip_instance_cache=True)
    assert fs.options.writing({}) == {"sse": "AES256"}


def test_variables_of_the_environment_reach_it(
    monkeypatch: pytest.MonkeyPatch, origin: servers.Server
) -> None:
    conf: dict[str, dict[str, Any]] = {}
    monkeypatch.setenv("FSSPEC_S3_ENDPOINT_URL", origin.endpoint)
    monkeypatch.setenv("FSSPEC_S3_KEY", origin.access_key)
    monkeypatch.setenv("FSSPEC_S3_SECRET", origin.secret_key)
    fsspec.config.set_conf_env(conf)
    monkeypatch.setitem(fsspec.config.conf, "s3", conf["s3"])
    take_over_s3()
    try:
        fs = fsspec.filesystem("s3", skip_instance_cache=True)
        assert isinstance(fs, S3FileSystem)
        assert fs.endpoint_url == origin.endpoint
        assert isinstance(fs.ls(""), list)
    finally:
        give_back_s3()


# ---------------------------------------------------------------------- keywords


def test_a_keyword_that_s3_does_not_have_is_ignored_with_one_warning(
    s3fs: S3FileSystem, fs: WirespeedFileSystem, bucket: str, warnings: Any
) -> None:
    for _ in range(2):
        s3fs.pipe_file(f"{bucket}/k", b"x", ContentTypo="a/b")
        s3fs.cp_file(f"{bucket}/k", f"{bucket}/l", blocksize=3)
        s3fs.copy([f"{bucket}/k"], [f"{bucket}/l"], blocksize=3, preserve_etag=None)
        assert s3fs.cat_file(f"{bucket}/k", nonsense=1) == b"x"
    assert len(warnings()) == 3
    assert "'ContentTypo' is ignored" in warnings()[0]
    assert "'ContentType'" in warnings()[0]
    for call in (
        lambda: fs.pipe_file(f"{bucket}/k", b"x", ContentTypo="a/b"),
        lambda: fs.cp_file(f"{bucket}/k", f"{bucket}/l", blocksize=3),
    ):
        with pytest.raises(TypeError, match="no option"):
            call()


def test_what_s3_has_and_is_not_sent_is_never_ignored(s3fs: S3FileSystem, bucket: str) -> None:
    with pytest.raises(TypeError, match="WriteOffsetBytes"):
        s3fs.pipe_file(f"{bucket}/k", b"x", WriteOffsetBytes=1)
    assert not s3fs.exists(f"{bucket}/k")
    with pytest.raises(ConfigError, match="ContentMD5"):
        S3FileSystem(s3_additional_kwargs={"ContentMD5": "x"}, anon=True, skip_instance_cache=True)


def test_only_this_one_lists_names_by_default(
    s3fs: S3FileSystem, fs: WirespeedFileSystem, bucket: str
) -> None:
    fs.pipe_file(f"{bucket}/k", b"x")
    assert s3fs.ls(bucket) == [f"{bucket}/k"]
    assert fs.ls(bucket)[0]["name"] == f"{bucket}/k"
    assert fs.find(bucket, prefix=None) == [f"{bucket}/k"]


def test_keys_that_stand_for_directories_are_not_listed(s3fs: S3FileSystem, bucket: str) -> None:
    s3fs.pipe({f"{bucket}/d/": b"", f"{bucket}/d/k": b"k"})
    assert s3fs.ls(f"{bucket}/d") == [f"{bucket}/d/k"]
    assert s3fs.find(bucket) == [f"{bucket}/d/k"]
    assert list(s3fs.walk(f"{bucket}/d")) == [(f"{bucket}/d", [], ["k"])]
    assert s3fs.du(bucket, total=False) == {f"{bucket}/d/k": 1}
    assert s3fs.cat_file(f"{bucket}/d/") == b""


def test_the_root_of_an_anonymous_one_is_empty() -> None:
    assert S3FileSystem(anon=True, endpoint_url="http://127.0.0.1:9").ls("") == []


def test_being_refused_is_not_being_absent(origin: servers.Server) -> None:
    stranger = S3FileSystem(
        key="nobody", secret="x", endpoint_url=origin.endpoint, skip_instance_cache=True
    )
    for call in (stranger.exists, stranger.ls):
        with pytest.raises(PermissionError):
            call("any-bucket/k" if call == stranger.exists else "")


# ---------------------------------------------------------------------- sessions


def test_the_documented_async_form(
    s3fs: S3FileSystem, bucket: str, options: dict[str, Any]
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        fs = S3FileSystem(**options, asynchronous=True, loop=loop, skip_instance_cache=True)
        session = await fs.set_session()
        await fs._pipe_file(f"{bucket}/k", b"data")
        assert await fs._cat_file(f"{bucket}/k", None, 1, 3) == b"at"
        assert await fs._ls(bucket) == [f"{bucket}/k"]
        assert (await fs._find(bucket)) == [f"{bucket}/k"]
        await session.close()
        assert await fs._cat_file(f"{bucket}/k") == b"data"
        await fs._connect()
        async with await fs.open_async(f"{bucket}/k", "rb") as file:
            assert await file.read() == b"data"
        with pytest.raises(ValueError, match="mode"):
            await fs.open_async(f"{bucket}/k", "r")

    asyncio.run(main())


def test_connecting_anew_reads_credentials_anew(
    s3fs: S3FileSystem, bucket: str, monkeypatch: pytest.MonkeyPatch, server: servers.Server
) -> None:
    for name, value in (("ACCESS_KEY_ID", "wrong"), ("SECRET_ACCESS_KEY", "wrong")):
        monkeypatch.setenv(f"AWS_{name}", value)
    fs = S3FileSystem(endpoint_url=server.endpoint, skip_instance_cache=True)
    with pytest.raises(OSError, match="HTTP 40"):  # which one is up to the server
        fs.ls(bucket)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret_key)
    fs.connect()
    fs.connect(refresh=True)
    assert fs.ls(bucket) == []


def test_operations_are_awaited_on_the_client(s3fs: S3FileSystem, bucket: str) -> None:
    async def main() -> None:
        s3 = await s3fs.get_s3(bucket)
        await s3.put_object(Bucket=bucket, Key="k", Body=b"data", ContentType="a/b")
        answer = await s3.get_object(Bucket=bucket, Key="k")
        assert answer["ContentLength"] == 4
        assert answer["ContentType"] == "a/b"
        async with answer["Body"] as body:
            assert await body.read(2) == b"da"
            assert await body.read() == b"ta"
        part = await s3fs._call_s3("get_object", Bucket=bucket, Key="k", Range="bytes=-1")
        assert await part["Body"].read() == b"a"
        assert [one["Key"] for one in (await s3.list_objects_v2(Bucket=bucket))["Contents"]] == [
            "k"
        ]
        url = await s3.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "k"}, 60)
        assert "X-Amz-Expires=60" in url
        with pytest.raises(TypeError, match="Buckett"):
            await s3.head_bucket(Buckett=bucket)

    asyncio.run(main())
    body = s3fs.call_s3("get_object", Bucket=bucket, Key="k", Range="bytes=1-2")["Body"]
    assert asyncio.run(body.read()) == b"at"
    for name in ("get_paginator", "meta", "select_object_content"):
        with pytest.raises(NotImplementedError):
            getattr(s3fs.s3, name)
    with pytest.raises(AttributeError, match="head_object"):
        s3fs.call_s3("heads_object")
    with pytest.raises(ValueError, match="Range"):
        s3fs.call_s3("get_object", Bucket=bucket, Key="k", Range="1-2")


def test_what_of_s3fs_is_not_here() -> None:
    for name in ("add_retryable_error", "set_custom_error_handler", "setup_logging"):
        assert not hasattr(wirespeed.fsspec, name)
    fs = S3FileSystem(key="a", secret="b", skip_instance_cache=True)
    with pytest.raises(NotImplementedError, match="get_session_token"):
        fs.get_delegated_s3pars()
    with_token = S3FileSystem(key="a", secret="b", token="c", skip_instance_cache=True)
    assert with_token.get_delegated_s3pars() == {
        "key": "a",
        "secret": "b",
        "token": "c",
        "anon": False,
    }
    assert S3FileSystem(anon=True).get_delegated_s3pars() == {"anon": True}
    assert S3FileSystem(skip_instance_cache=True).get_delegated_s3pars() == {"anon": False}


def test_a_map_is_what_s3fs_makes(s3fs: S3FileSystem, bucket: str, options: dict[str, Any]) -> None:
    mapping = S3Map(f"{bucket}/m", s3fs, create=False)
    mapping["a/b"] = b"x"
    assert dict(mapping) == {"a/b": b"x"}
    S3FileSystem(**options)
    assert list(S3Map(f"{bucket}/m", s3=None)) == ["a/b"]


# ---------------------------------------------------------------------- collections, rsync


def test_paths_come_in_any_collection(fs: WirespeedFileSystem, bucket: str, tmp_path: Path) -> None:
    fs.pipe({f"{bucket}/a": b"a", f"{bucket}/b": b"b"})
    fs.copy((f"{bucket}/a",), (f"{bucket}/c",))
    fs.get((f"{bucket}/a", f"{bucket}/b"), (tmp_path / "a", str(tmp_path / "b")))
    assert (tmp_path / "b").read_bytes() == b"b"
    fs.get({f"{bucket}/a", f"{bucket}/b"}, str(tmp_path / "set") + "/")
    assert (tmp_path / "set" / "a").read_bytes() == b"a"
    fs.put((str(tmp_path / "a"),), (f"{bucket}/d",))
    fs.put({tmp_path / "a", tmp_path / "b"}, f"{bucket}/up/")
    assert fs.find(f"{bucket}/up") == [f"{bucket}/up/a", f"{bucket}/up/b"]
    paths = {f"{bucket}/c": b"a", f"{bucket}/d": b"a"}
    assert fs.cat(paths.keys()) == paths
    assert fs.cat(tuple(paths)) == paths
    assert fs.expand_path(iter(paths)) == list(paths)
    fs.mv((f"{bucket}/c",), (f"{bucket}/e",))
    fs.rm({f"{bucket}/e", f"{bucket}/d"})
    fs.rm((f"{bucket}/up/a", f"{bucket}/up/b"))
    assert fs.find(bucket) == [f"{bucket}/a", f"{bucket}/b"]
    with pytest.raises(TypeError, match="order"):
        fs.copy({f"{bucket}/a"}, [f"{bucket}/z"])
    with pytest.raises(ValueError, match="2 sources and 1 targets"):
        fs.copy([f"{bucket}/a", f"{bucket}/b"], (f"{bucket}/z",))
    assert not fs.exists(f"{bucket}/z")


TREE = {"x/a": b"a", "x/d/b": b"bb", "x/d/e/c": b"ccc"}


@pytest.mark.parametrize("scheme", ["wirespeed", "s3"])
def test_rsync_copies_between_all_kinds(
    scheme: str,
    options: dict[str, Any],
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_over_s3()
    try:
        monkeypatch.setattr(MemoryFileSystem, "store", {})
        monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
        fs = fsspec.filesystem(scheme, **options)
        fs.pipe({f"{bucket}/{key}": data for key, data in TREE.items()})
        inst = {"default_method": "options", "storage_options": {scheme: options}}

        def sync(source: str, target: str, **how: Any) -> None:
            fsspec.generic.rsync(source, target, inst_kwargs=inst, **how)

        here, url = f"file://{tmp_path}", f"{scheme}://{bucket}"
        sync(f"{url}/x", f"{url}/y")
        sync(f"{url}/y", "memory://m")
        sync("memory://m", f"{here}/l")
        sync(f"{here}/l", f"{url}/z")
        expected = {key.removeprefix("x/"): data for key, data in TREE.items()}
        found = {
            name.split("/z/")[1]: data
            for name, data in fs.cat(f"{bucket}/z", recursive=True).items()
        }
        assert found == expected
        fs.rm(f"{bucket}/x/a")
        fs.pipe_file(f"{bucket}/x/d/b", b"longer")
        sync(f"{url}/x", f"{url}/y", delete_missing=True)
        assert not fs.exists(f"{bucket}/y/a")
        assert fs.cat(f"{bucket}/y/d/b") == b"longer"
    finally:
        give_back_s3()


def test_a_key_that_is_a_folder_too_is_refused_before_anything_is_written(
    options_of: Any, origin: servers.Server, tmp_path: Path
) -> None:
    fs, bucket = WirespeedFileSystem(**options_of(origin), skip_instance_cache=True), "folders"
    fs.mkdir(bucket)
    fs.pipe({f"{bucket}/d/{key}": b"x" for key in ("a", "k", "k/x", "k/y/z")})
    with pytest.raises(NotADirectoryError) as caught:
        fs.get(f"{bucket}/d", str(tmp_path / "out"), recursive=True)
    assert f"{bucket}/d/k and {bucket}/d/k/x" in str(caught.value)
    assert not (tmp_path / "out").exists()
    fs.get([f"{bucket}/d/k", f"{bucket}/d/k/x"], [str(tmp_path / "k"), str(tmp_path / "kx")])
    assert (tmp_path / "kx").read_bytes() == b"x"
    with pytest.raises(NotADirectoryError):
        fs.get([f"{bucket}/d/k/x", f"{bucket}/d/k"], [str(tmp_path / "n/x"), str(tmp_path / "n")])
    assert not (tmp_path / "n").exists()


# ---------------------------------------------------------------------- fsspec's layers


def test_fsspecs_own_layers_work_on_names_by_default(
    s3fs: S3FileSystem, bucket: str, tmp_path: Path, options: dict[str, Any]
) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("in/side", b"zipped")
    s3fs.pipe({f"{bucket}/{key}": data for key, data in TREE.items()})
    s3fs.pipe_file(f"{bucket}/a.zip", archive.getvalue())
    assert sorted(s3fs.get_mapper(f"{bucket}/x")) == ["a", "d/b", "d/e/c"]
    assert [files for _, _, files in s3fs.walk(f"{bucket}/x")] == [["a"], ["b"], ["c"]]
    assert "└── c" in s3fs.tree(f"{bucket}/x", recursion_limit=4)
    folder = DirFileSystem(path=f"{bucket}/x", fs=s3fs)
    assert folder.ls("", detail=False) == ["a", "d"]
    assert sorted(one["name"] for one in folder.ls("")) == ["a", "d"]
    assert folder.find("") == ["a", "d/b", "d/e/c"]
    assert folder.glob("**/b") == ["d/b"]
    assert folder.cat_file("a") == b"a"
    take_over_s3()
    try:
        for kind in ("filecache", "simplecache", "blockcache"):
            cached = fsspec.filesystem(
                kind,
                target_protocol="s3",
                target_options=options,
                cache_storage=str(tmp_path / kind),
            )
            assert cached.cat(f"{bucket}/x/a") == b"a"
            assert len(cached.ls(f"{bucket}/x", detail=True)) == 2
            with cached.open(f"{bucket}/x/d/b") as file:
                assert file.read() == b"bb"
        url = f"zip://in/side::s3://{bucket}/a.zip"
        with fsspec.open(url, s3=options) as file:
            assert file.read() == b"zipped"
        references = {
            "version": 1,
            "refs": {"part": [f"s3://{bucket}/x/d/e/c", 1, 2], "all": [f"s3://{bucket}/x/a"]},
        }
        reference = fsspec.filesystem(
            "reference",
            fo=json.loads(json.dumps(references)),
            remote_protocol="s3",
            remote_options=options,
        )
        assert reference.cat("part") == b"cc"
        assert reference.cat("all") == b"a"
        with fsspec.open_files(f"s3://{bucket}/x/*", **options)[0] as file:
            assert file.read() == b"a"
        generic = fsspec.generic.GenericFileSystem(
            default_method="options", storage_options={"s3": options}
        )
        assert generic.find(f"s3://{bucket}/x") == [f"s3://{bucket}/{key}" for key in sorted(TREE)]
        assert generic.ls(f"s3://{bucket}/x", detail=False) == [
            f"s3://{bucket}/x/a",
            f"s3://{bucket}/x/d",
        ]
        assert generic.cat(f"s3://{bucket}/x/a") == b"a"
    finally:
        give_back_s3()
