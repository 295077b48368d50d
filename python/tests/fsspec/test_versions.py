"""Versions: read by path or by keyword, listed, and pinned."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import servers

from wirespeed.fsspec import WirespeedFileSystem


@pytest.fixture
def fs(origin: servers.Server, options_of: Callable[..., dict[str, object]]) -> WirespeedFileSystem:
    """A file system that knows of versions."""
    return WirespeedFileSystem(**options_of(origin), version_aware=True, skip_instance_cache=True)


@pytest.fixture
def bucket(
    fs: WirespeedFileSystem, origin: servers.Server, emptied: Callable[..., None]
) -> Iterator[str]:
    """A bucket that keeps versions."""
    name = f"b-{uuid.uuid4().hex[:16]}"
    fs.mkdir(name)
    origin.boto3().put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    yield name
    emptied(fs, name)


def test_each_version_is_read_by_its_id(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    for data in (b"one", b"two", b"three"):
        fs.pipe_file(path, data)
    fs.pipe_file(f"{path}-other", b"not of it")
    versions = fs.object_version_info(path)
    assert [(one["Size"], one["IsLatest"]) for one in versions] == [
        (5, True),
        (3, False),
        (3, False),
    ]
    first = versions[-1]["VersionId"]
    assert fs.cat_file(path) == b"three"
    assert fs.cat_file(f"{path}?versionId={first}") == b"one"
    assert fs.cat_file(path, version_id=first) == b"one"
    assert fs.cat_file(f"{path}?versionId={first}", 1, 2) == b"n"
    assert fs.cat([f"{path}?versionId={one['VersionId']}" for one in versions]) == {
        f"{path}?versionId={one['VersionId']}": data
        for one, data in zip(versions, (b"three", b"two", b"one"), strict=True)
    }
    with fs.open(path, version_id=first) as file:
        assert file.read() == b"one"
    assert fs.info(path)["VersionId"] == versions[0]["VersionId"]
    assert fs.info(f"{path}?versionId={first}")["size"] == 3
    assert fs.exists(f"{path}?versionId={first}")
    names = fs.ls(bucket, detail=False, versions=True)
    assert len(names) == 4
    assert f"{path}?versionId={first}" in names
    assert fs.ls(bucket, detail=False) == [path, f"{path}-other"]
    assert fs.ls(bucket)[0]["VersionId"] == versions[0]["VersionId"]


def test_a_deleted_object_is_gone_but_for_its_versions(
    fs: WirespeedFileSystem, bucket: str
) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, b"one")
    (version,) = fs.object_version_info(path)
    fs.rm(path)
    assert not fs.exists(path)
    assert fs.find(bucket) == []
    assert fs.ls(bucket) == []
    assert fs.cat_file(path, version_id=version["VersionId"]) == b"one"
    fs.cp_file(f"{path}?versionId={version['VersionId']}", path)
    assert fs.cat_file(path) == b"one"
    fs.rm_file(f"{path}?versionId={version['VersionId']}")
    assert version["VersionId"] not in [one["VersionId"] for one in fs.object_version_info(path)]


def test_an_open_file_stays_with_its_version(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    data = bytes(300_000)
    fs.pipe_file(path, data)
    with fs.open(path) as file:
        assert file.read(10) == data[:10]
        fs.pipe_file(path, b"new")
        assert file.read() == data[10:]
    assert fs.cat_file(path) == b"new"


def test_versions_need_a_file_system_that_knows_of_them(
    origin: servers.Server, options_of: Callable[..., dict[str, object]], bucket: str
) -> None:
    plain = WirespeedFileSystem(**options_of(origin), skip_instance_cache=True)
    for call in (
        lambda: plain.info(f"{bucket}/k", version_id="v"),
        lambda: plain.cat_file(f"{bucket}/k", version_id="v"),
        lambda: plain.object_version_info(f"{bucket}/k"),
        lambda: plain.ls(bucket, versions=True),
    ):
        with pytest.raises(ValueError, match="version_aware"):
            call()


def test_a_version_is_not_written(fs: WirespeedFileSystem, bucket: str) -> None:
    with pytest.raises(ValueError, match="can't be written"):
        fs.pipe_file(f"{bucket}/k?versionId=abc", b"")
    with pytest.raises(ValueError, match="another"):
        fs.info(f"{bucket}/k?versionId=abc", version_id="def")


def test_a_bucket_that_keeps_versions_is_not_half_removed(
    fs: WirespeedFileSystem, bucket: str
) -> None:
    fs.pipe_file(f"{bucket}/k", b"one")
    with pytest.raises(OSError, match="nothing was deleted"):
        fs.rm(bucket, recursive=True)
    assert fs.cat_file(f"{bucket}/k") == b"one"


def test_a_version_is_what_is_read_whatever_its_name(
    fs: WirespeedFileSystem, bucket: str, tmp_path: Path
) -> None:
    path, local = f"{bucket}/k", tmp_path / "k"
    for data in (b"one", b"three"):
        fs.pipe_file(path, data, Metadata={"is": data.decode()})
    last, first = (one["VersionId"] for one in fs.object_version_info(path))
    for name in ("version_id", "VersionId"):
        said = {name: first}
        assert fs.cat_file(path, **said) == b"one"
        assert fs.cat_file(path, -2, None, **said) == b"ne"
        assert fs.cat(path, **said) == b"one"
        assert fs.cat_ranges([path, path], [0, -3], [1, -1], **said) == [b"o", b"on"]
        for get in (fs.get_file, fs.get):
            get(path, str(local), **said)
            assert local.read_bytes() == b"one"
        fs.ls(bucket)
        assert fs.info(path, **said)["size"] == 3
        assert fs.metadata(path, **said) == {"is": "one"}
        assert first in fs.url(path, **said)
        assert first in fs.sign(path, **said)
        assert fs.isfile(path, **said)
        with fs.open(path, **said) as file:
            assert (file.size, file.read()) == (3, b"one")
        with pytest.raises(ValueError, match="version"):
            fs.cat_file(f"{path}?versionId={last}", **said)
    with pytest.raises(ValueError, match="two versions"):
        fs.cat_file(path, version_id=first, VersionId=last)
    assert fs.cat_file(path, version_id=None) == b"three"
