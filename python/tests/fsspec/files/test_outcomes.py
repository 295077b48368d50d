"""The results of writing, and the names of an open file: as s3fs's, compared by hand with
release 2026.9.0. docs/python/from-s3fs.md has the differences."""

from __future__ import annotations

import asyncio
import random
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
import servers

from wirespeed.fsspec import (
    ReadFile,
    S3File,
    WirespeedFileSystem,
    WriteFile,
)

KIB, MIB = 1 << 10, 1 << 20


def write(fs: WirespeedFileSystem, path: str, data: bytes, mode: str = "wb", **how: Any) -> Any:
    with fs.open(path, mode, **how) as file:
        file.write(data)
    return file


MULTIPART = {"create-multipart": 1, "upload-part": 3, "complete-multipart": 1}


@pytest.mark.parametrize(("size", "sent"), [(0, {"put": 1}), (5, {"put": 1}), (20, MULTIPART)])
def test_pipe_file_returns_the_version_and_etag_of_what_it_wrote(
    fs: WirespeedFileSystem,
    server: servers.Server,
    versioned: str,
    asked: Callable[..., Any],
    size: int,
    sent: dict[str, int],
) -> None:
    data = random.Random(1).randbytes(size * MIB if size == 20 else size)
    written, requests = asked(lambda: fs.pipe_file(f"{versioned}/k", data))
    assert requests == sent
    fs.pipe_file(f"{versioned}/k", b"newer")
    there = server.boto3().get_object(
        Bucket=versioned, Key="k", VersionId=written["VersionId"], ChecksumMode="ENABLED"
    )
    assert there["Body"].read() == data
    assert written["ETag"] == there["ETag"]
    assert written["ChecksumCRC64NVME"] == there["ChecksumCRC64NVME"]


def test_pipe_and_touch_return_what_pipe_file_does(
    fs: WirespeedFileSystem, server: servers.Server, versioned: str, asked: Callable[..., Any]
) -> None:
    s3 = server.boto3()
    many = {f"{versioned}/{n}": str(n).encode() for n in range(20)}
    written, requests = asked(lambda: fs.pipe(many))
    assert requests == {"put": 20}
    for (path, data), one in zip(many.items(), written, strict=True):
        key = path.partition("/")[2]
        there = s3.get_object(Bucket=versioned, Key=key, VersionId=one["VersionId"])
        assert (there["Body"].read(), there["ETag"]) == (data, one["ETag"])
    (one,) = fs.pipe(f"{versioned}/one", b"one")
    assert one["VersionId"] == s3.head_object(Bucket=versioned, Key="one")["VersionId"]
    one, requests = asked(lambda: fs.touch(f"{versioned}/empty"))
    assert requests == {"put": 1}
    assert one["VersionId"] == s3.head_object(Bucket=versioned, Key="empty")["VersionId"]
    assert fs.pipe({}) == []
    assert asyncio.run(fs._pipe_file(f"{versioned}/awaited", b""))["VersionId"]


def test_a_bucket_without_versions_gives_none(
    fs: WirespeedFileSystem, aware: WirespeedFileSystem, bucket: str
) -> None:
    written = fs.pipe_file(f"{bucket}/k", b"data")
    assert "VersionId" not in written
    assert written["ETag"] == fs.info(f"{bucket}/k")["ETag"]
    file = write(aware, f"{bucket}/k", b"data")
    assert file.version_id is None
    assert file.result.etag == written["ETag"]
    with aware.open(f"{bucket}/k") as file:
        assert file.version_id is None


@pytest.mark.parametrize(("size", "sent"), [(0, {"put": 1}), (5, {"put": 1}), (20, MULTIPART)])
def test_a_closed_file_knows_the_version_that_it_wrote(
    aware: WirespeedFileSystem,
    server: servers.Server,
    versioned: str,
    asked: Callable[..., Any],
    size: int,
    sent: dict[str, int],
) -> None:
    path, s3 = f"{versioned}/k", server.boto3()
    data = random.Random(2).randbytes(size * MIB if size == 20 else size)
    # A stream of unknown length grows its parts from 5 MiB: 20 MiB are more of them than a put's.
    file, requests = asked(lambda: write(aware, path, data))
    assert {verb: 1 for verb in requests} == {verb: 1 for verb in sent}
    assert requests.get("complete-multipart", 1) == 1
    write(aware, path, b"newer")
    there = s3.get_object(Bucket=versioned, Key="k", VersionId=file.version_id)
    assert there["Body"].read() == data
    assert file.result.etag == there["ETag"]
    assert file.result.version_id == file.version_id

    later = aware.open(path, "wb", autocommit=False)
    later.write(data)
    later.close()
    assert (later.version_id, later.result) == (None, None)
    later.commit()
    assert later.version_id == s3.head_object(Bucket=versioned, Key="k")["VersionId"]


def test_every_way_of_writing_a_file_knows_its_version(
    aware: WirespeedFileSystem, fs: WirespeedFileSystem, server: servers.Server, versioned: str
) -> None:
    s3 = server.boto3()

    def last(key: str) -> str:
        return s3.head_object(Bucket=versioned, Key=key)["VersionId"]

    assert write(aware, f"{versioned}/x", b"1", "xb").version_id == last("x")
    first = last("x")
    assert write(aware, f"{versioned}/x", b"2", "ab").version_id == last("x") != first
    # Nothing is appended, and so nothing is written.
    assert write(aware, f"{versioned}/x", b"", "ab").version_id == last("x")
    assert len(aware.object_version_info(f"{versioned}/x")) == 2
    with aware.transaction:
        file = write(aware, f"{versioned}/t", b"1")
        assert file.version_id is None
    assert file.version_id == last("t")

    async def awaited() -> Any:
        async with await aware.open_async(f"{versioned}/a", "wb") as file:
            await file.write(b"1")
        assert file.result.etag
        return file.version_id

    assert asyncio.run(awaited()) == last("a")
    # As with s3fs, a file system that is not told of versions doesn't hand them out.
    file = write(fs, f"{versioned}/x", b"3")
    assert file.version_id is None
    assert file.result.version_id == last("x")
    with fs.open(f"{versioned}/x") as file:
        assert file.version_id is None
        assert file.details["VersionId"] == last("x")


def test_a_file_being_read_knows_its_version(
    aware: WirespeedFileSystem, versioned: str, asked: Callable[..., Any]
) -> None:
    path = f"{versioned}/k"
    first = aware.pipe_file(path, b"first")["VersionId"]
    last = aware.pipe_file(path, b"last")["VersionId"]
    file, requests = asked(lambda: aware.open(path))
    assert (file.version_id, requests) == (last, {"head": 1})
    assert aware.open(path, version_id=first).version_id == first
    assert aware.open(f"{path}?versionId={first}").version_id == first
    aware.pipe_file(path, b"newest")
    assert file.read() == b"last"

    async def awaited() -> str | None:
        async with await aware.open_async(path, version_id=first) as file:
            assert await file.read() == b"first"
            return file.version_id

    assert asyncio.run(awaited()) == first


def test_files_have_s3fs_names(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/d/k"
    file = write(fs, path, b"data", acl="public-read", Metadata={"a-b": "1"})
    assert isinstance(file, S3File)
    assert isinstance(file, WriteFile)
    with fs.open(path) as reading:
        assert isinstance(reading, S3File)
        assert isinstance(reading, ReadFile)
        for one in (file, reading):
            assert (one.bucket, one.key, one.path, one.fs) == (bucket, "d/k", path, fs)
            assert one.s3 is fs
            assert one.full_name.endswith(f"://{path}")
        assert (file.acl, reading.acl) == ("public-read", False)
        assert (reading.mode, reading.size) == ("rb", 4)
        assert reading.info() == reading.details == fs.info(path, refresh=True)
        assert hash(reading) == hash(fs.open(path))
        assert reading == fs.open(path)
    with fs.open(path, block_size=10 * MIB) as reading:
        assert reading.blocksize == 10 * MIB
    with pytest.raises(ValueError, match="while writing"):
        fs.open(path, "wb").info()


def test_metadata_of_a_file_are_had_and_set(
    fs: WirespeedFileSystem, bucket: str, asked: Callable[..., Any]
) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, b"data", Metadata={"a-b": "1"}, ContentType="text/csv")
    with fs.open(path) as file:
        found, requests = asked(lambda: (file.metadata(), file.getxattr("a_b"), file.getxattr("x")))
        assert (found, requests) == (({"a-b": "1"}, "1", None), {})
        fs.setxattr(path, a_b="2")
        assert file.metadata() == {"a-b": "1"}
        assert file.metadata(refresh=True) == {"a-b": "2"}
        file.setxattr(c_d="3", copy_kwargs={"ContentType": "text/plain"})
        assert file.metadata() == {"a-b": "2", "c-d": "3"}
        assert file.getxattr("c_d") == "3"
        assert file.read() == b"data"
    assert fs.info(path, refresh=True)["ContentType"] == "text/plain"
    with fs.open(path, "wb", Metadata={"e": "f"}) as file:
        assert file.metadata() == {"a-b": "2", "c-d": "3"}
        with pytest.raises(NotImplementedError, match="Metadata="):
            file.setxattr(a="b")
    assert file.metadata() == {"e": "f"}
    file.setxattr(e="g")
    assert file.getxattr("e") == "g"


def test_the_url_of_a_file_is_of_the_version_that_is_read(
    fs: WirespeedFileSystem, aware: WirespeedFileSystem, versioned: str
) -> None:
    path = f"{versioned}/k"
    aware.pipe_file(path, b"first")
    with aware.open(path) as mine, fs.open(path) as plain:
        aware.pipe_file(path, b"last")
        for file, expected in ((mine, b"first"), (plain, b"last")):
            with urllib.request.urlopen(file.url(expires=60)) as answer:
                assert answer.read() == expected
        assert "versionId" not in mine.url(client_method="put_object")
    with fs.open(path, "wb") as file, urllib.request.urlopen(file.url()) as answer:
        assert answer.read() == b"last"
