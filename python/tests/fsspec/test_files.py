"""Open files as s3fs has them: names, versions, ends of writing. Compared by hand with s3fs
2026.9.0; where the two differ, docs/python/from-s3fs.md says so."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import io
import pickle
import random
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import servers
from fsspec.caching import caches

from wirespeed.errors import DeniedError, PreconditionError, ServerError
from wirespeed.fsspec import (
    FileExpired,
    ReadFile,
    S3File,
    S3FileSystem,
    WirespeedFileSystem,
    WriteFile,
)

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(params=[WirespeedFileSystem, S3FileSystem])
def kind(request: pytest.FixtureRequest) -> type[WirespeedFileSystem]:
    """Each of the two file systems."""
    return request.param


@pytest.fixture
def server(origin: servers.Server) -> servers.Server:
    """wirespeed-origin, whose requests are counted and which misbehaves where it is told to."""
    return origin


@pytest.fixture
def fs(kind: type[WirespeedFileSystem], options: dict[str, Any]) -> WirespeedFileSystem:
    """A file system that is not told of versions."""
    return kind(**options, skip_instance_cache=True)


@pytest.fixture
def aware(kind: type[WirespeedFileSystem], options: dict[str, Any]) -> WirespeedFileSystem:
    """One that knows of versions."""
    return kind(**options, version_aware=True, skip_instance_cache=True)


@pytest.fixture
def versioned(
    fs: WirespeedFileSystem, server: servers.Server, emptied: Callable[..., None]
) -> Iterator[str]:
    """A bucket that keeps versions."""
    name = f"b-{uuid.uuid4().hex[:16]}"
    fs.client.create_bucket(name)
    server.boto3().put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    yield name
    emptied(fs, name)


@pytest.fixture
def asked(stats: Callable[[], dict[str, Any]]) -> Callable[[Callable[[], Any]], Any]:
    """Calls, and returns what came of it with the requests that reached the server, by verb."""

    def call(function: Callable[[], Any]) -> tuple[Any, dict[str, int]]:
        before = stats()["requests"]
        outcome = function()
        after = stats()["requests"]
        sent = {verb: count - before.get(verb, 0) for verb, count in after.items()}
        return outcome, {verb: count for verb, count in sent.items() if count}

    return call


def write(fs: WirespeedFileSystem, path: str, data: bytes, mode: str = "wb", **how: Any) -> Any:
    with fs.open(path, mode, **how) as file:
        file.write(data)
    return file


MULTIPART = {"create-multipart": 1, "upload-part": 3, "complete-multipart": 1}


# ---------------------------------------------------------------------- what was written


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


# ---------------------------------------------------------------------- names of the object


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


# ---------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    "cache_type", ["wirespeed", *sorted(str(name) for name in caches if name), None]
)
@pytest.mark.parametrize("sized", [False, True])
def test_every_cache_reads_what_is_there(
    fs: WirespeedFileSystem, bucket: str, cache_type: str | None, sized: bool
) -> None:
    data = random.Random(3).randbytes(3 * MIB + 11)
    path = f"{bucket}/k"
    fs.pipe_file(path, data)
    how: dict[str, Any] = {"size": len(data)} if sized else {}
    if cache_type == "parts":
        how["cache_options"] = {"data": {(0, MIB): data[:MIB], (MIB, len(data)): data[MIB:]}}
    choose = random.Random(4)
    with fs.open(path, cache_type=cache_type, block_size=256 * KIB, **how) as file:
        model = io.BytesIO(data)
        for _ in range(30):
            place = choose.randrange(len(data))
            assert file.seek(place) == model.seek(place)
            length = choose.choice([0, 1, 100, 70 * KIB, MIB])
            assert file.read(length) == model.read(length)
            assert file.tell() == model.tell()
        file.seek(0)
        assert file.read() == data
    assert file.cache is None


@pytest.mark.parametrize("cache_type", ["wirespeed", "none", "readahead", "all"])
@pytest.mark.parametrize("size", [0, 5, 300 * KIB, 9 * MIB])
def test_a_size_that_is_given_is_not_asked_for(
    fs: WirespeedFileSystem, bucket: str, asked: Callable[..., Any], cache_type: str, size: int
) -> None:
    path, data = f"{bucket}/k", random.Random(5).randbytes(size)
    fs.pipe_file(path, data)

    file, requests = asked(lambda: fs.open(path, size=size, cache_type=cache_type))
    assert (file.size, requests if cache_type != "all" else {}) == (size, {})

    def read() -> None:
        assert file.seek(-size // 2, 2) == size + -size // 2
        assert file.read() == data[-size // 2 :]
        file.seek(0)
        assert file.read(3) == data[:3]

    assert "head" not in asked(read)[1]
    into = bytearray(size)
    for _ in range(2):
        with fs.open(path, size=size, cache_type=cache_type) as file:
            assert file.readinto(into) == size
            file.seek(0)
            assert (file.read(), into) == (data, data)
    for length in (size // 2, size):
        # The checksum of a large object that is read whole is asked for beside its bytes.
        beside = {"head"} if length == 9 * MIB else set()
        with fs.open(path, size=size, cache_type="none") as file:
            _, requests = asked(lambda file=file, length=length: file.read(length))
        assert set(requests) == ({"get"} | beside if length else set())
        assert requests.get("get", 1) == 1 or length == 9 * MIB
    assert fs.open(path, size=size).read(-1) == data


def test_the_first_read_pins_the_version_of_a_file_with_a_size(
    fs: WirespeedFileSystem, aware: WirespeedFileSystem, bucket: str, versioned: str
) -> None:
    data, other = bytes(2 * MIB), b"1" * 2 * MIB
    for cache_type in ("wirespeed", "none", "readahead"):
        for length in (10, MIB):
            fs.pipe_file(f"{bucket}/k", data)
            how: dict[str, Any] = {"cache_type": cache_type, "block_size": 64 * KIB}
            with fs.open(f"{bucket}/k", size=len(data), **how) as file:
                assert file.read(length) == data[:length]
                assert file.details["ETag"] == fs.info(f"{bucket}/k", refresh=True)["ETag"]
                fs.pipe_file(f"{bucket}/k", other)
                file.seek(-10, 2)
                with pytest.raises(FileExpired, match="has changed since it was opened"):
                    file.read(10)
    first = aware.pipe_file(f"{versioned}/k", data)["VersionId"]
    with aware.open(f"{versioned}/k", size=len(data)) as file:
        assert file.version_id is None
        file.read(10)
        assert file.version_id == first
        aware.pipe_file(f"{versioned}/k", other)
        assert file.read() == data[10:]


@pytest.mark.parametrize("size", [1, 19, 21, 30 * KIB])
@pytest.mark.parametrize("place", [0, 5, 18])
def test_an_object_that_has_not_the_size_given_is_an_error(
    fs: WirespeedFileSystem, bucket: str, size: int, place: int
) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, bytes(20))
    for cache_type in ("wirespeed", "none", "bytes"):
        with fs.open(path, size=size, cache_type=cache_type) as file:
            file.seek(place)
            if place >= size:
                assert file.read() == b""
                continue
            with pytest.raises(FileExpired, match=f"20 bytes, not size={size}"):
                file.read()
            with pytest.raises(FileExpired, match="open it again"):
                file.readinto(bytearray(1))
            with pytest.raises(FileExpired):
                _ = file.details
    with fs.open(path, size=100) as file:
        file.seek(50)
        with pytest.raises(FileExpired, match="size=100"):
            file.read(1)

    async def awaited() -> None:
        async with await fs.open_async(path, size=size) as file:
            with pytest.raises(FileExpired, match="20 bytes"):
                await file.read(1)

    asyncio.run(awaited())
    with pytest.raises(ValueError, match="bytes"):
        fs.open(path, size=-1)


def test_a_file_with_a_size_is_pickled_and_missed_where_it_is_not(
    server: servers.Server, bucket: str, fs: WirespeedFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    found = type(fs)(endpoint_url=server.endpoint)
    fs.pipe_file(f"{bucket}/k", b"data")
    with found.open(f"{bucket}/k", size=4) as file:
        file.seek(1)
        again = pickle.loads(pickle.dumps(file))
        assert (again.size, again.read()) == (4, b"ata")
    file = fs.open(f"{bucket}/nothing", size=4)
    with pytest.raises(FileNotFoundError):
        file.read()


def test_coroutines_read_without_asking_for_the_size(
    aware: WirespeedFileSystem, versioned: str, asked: Callable[..., Any]
) -> None:
    data = random.Random(6).randbytes(MIB)
    written = aware.pipe_file(f"{versioned}/k", data)["VersionId"]

    async def read() -> None:
        async with await aware.open_async(f"{versioned}/k", size=len(data)) as file:
            assert await file.read(10) == data[:10]
            assert file.version_id == written
            assert await file.read() == data[10:]

    assert asked(lambda: asyncio.run(read()))[1] == {"get": 1}


def test_coroutines_learn_that_the_object_changed(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, bytes(20 * MIB))

    async def read() -> None:
        for length in (10, -1):
            async with await fs.open_async(path) as file:
                fs.pipe_file(path, random.randbytes(20 * MIB))
                with pytest.raises(FileExpired, match="open it again"):
                    await file.read(length)

    asyncio.run(read())


@pytest.mark.parametrize("length", [10, 100 * KIB, 9 * MIB, -1])
@pytest.mark.parametrize("cache_type", ["wirespeed", "none", "bytes"])
def test_an_object_without_an_etag_that_is_cut_is_not_read_short(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str, length: int, cache_type: str
) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, bytes(10 * MIB))
    with server.misbehaving({"action": "no-etag", "bucket": bucket}):
        with fs.open(path, cache_type=cache_type) as file:
            assert file.details["ETag"] == ""
            fs.pipe_file(path, bytes(MIB + 5))
            file.seek(MIB)
            with pytest.raises(FileExpired, match=rf"ended at byte {MIB + 5}|changed"):
                file.read(length) if length != 10 else file.readinto(bytearray(10))
        with fs.open(path, cache_type=cache_type) as file:
            fs.pipe_file(path, bytes(10))
            with pytest.raises(FileExpired, match=r"ended at byte 10|changed"):
                file.readinto(bytearray(20))


# ---------------------------------------------------------------------- writing


@pytest.mark.parametrize("size", [0, 5, 20 * MIB])
@pytest.mark.parametrize("closed", [False, True])
def test_what_was_discarded_is_not_committed(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str, size: int, closed: bool
) -> None:
    file = fs.open(f"{bucket}/k", "wb", autocommit=False)
    file.write(bytes(size))
    if closed:
        file.close()
    file.discard()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="discarded"):
            file.commit()
    file.discard()
    file.close()
    assert not fs.exists(f"{bucket}/k")
    assert not server.boto3().list_multipart_uploads(Bucket=bucket).get("Uploads")


def test_what_was_committed_stays(fs: WirespeedFileSystem, bucket: str) -> None:
    file = fs.open(f"{bucket}/k", "wb", autocommit=False)
    file.write(b"data")
    for _ in range(2):
        file.commit()
    assert file.closed
    file.discard()
    file.close()
    assert fs.cat_file(f"{bucket}/k") == b"data"


@pytest.mark.parametrize("size", [5, 20 * MIB])
def test_a_close_that_failed_fails_again(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str, size: int
) -> None:
    file = fs.open(f"{bucket}/k", "wb")
    later = fs.open(f"{bucket}/later", "wb", autocommit=False)
    for one in (file, later):
        one.write(bytes(size))
    later.close()
    fault = {"action": "error:403:AccessDenied", "bucket": bucket}
    with server.misbehaving(fault | {"verb": "put"}, fault | {"verb": "complete-multipart"}):
        with pytest.raises(DeniedError):
            file.close()
        with pytest.raises(DeniedError):
            later.commit()
    for again in (file.close, file.commit, later.close, later.commit):
        with pytest.raises(DeniedError):
            again()
    file.discard()
    assert (file.version_id, file.result) == (None, None)
    assert fs.find(bucket) == []

    async def awaited() -> None:
        file = await fs.open_async(f"{bucket}/k", "wb")
        await file.write(bytes(5))
        with server.misbehaving(fault | {"verb": "put"}), pytest.raises(DeniedError):
            await file.close()
        with pytest.raises(DeniedError):
            await file.close()

    asyncio.run(awaited())


def test_a_write_that_failed_is_not_stored_by_its_close(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str
) -> None:
    file = fs.open(f"{bucket}/k", "wb")
    fault = {"action": "error:403:AccessDenied", "bucket": bucket, "verb": "upload-part"}
    with server.misbehaving(fault), pytest.raises(DeniedError):
        for _ in range(100):
            file.write(bytes(8 * MIB))
    for _ in range(2):
        with pytest.raises(DeniedError):
            file.close()
    assert fs.find(bucket) == []


def test_a_forced_flush_makes_the_object(aware: WirespeedFileSystem, versioned: str) -> None:
    path = f"{versioned}/k"
    file = aware.open(path, "wb")
    file.write(b"data")
    file.flush()
    assert not aware.exists(path)
    file.flush(force=True)
    assert aware.cat_file(path) == b"data"
    assert file.version_id == aware.info(path, refresh=True)["VersionId"]
    with pytest.raises(ValueError, match="force-flushed"):
        file.write(b"more")
    with pytest.raises(ValueError, match="once"):
        file.flush(force=True)
    try:
        raise RuntimeError("which comes too late")
    except RuntimeError:
        file.close()
    file.close()
    assert len(aware.object_version_info(path)) == 1
    with pytest.raises(ValueError, match="closed"):
        file.flush()
    later = aware.open(f"{versioned}/later", "wb", autocommit=False)
    later.write(b"later")
    later.flush(force=True)
    later.close()
    assert not aware.exists(f"{versioned}/later")
    later.commit()
    assert aware.cat_file(f"{versioned}/later") == b"later"


def test_a_file_does_only_what_its_mode_says(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, b"data")
    with fs.open(path) as file:
        for call in (lambda: file.write(b""), lambda: file.writelines([b""])):
            with pytest.raises((ValueError, OSError)):
                call()
        file.flush()
        file.commit()
        file.discard()
        assert (file.readable(), file.writable(), file.seekable()) == (True, False, True)
        assert file.seek(100) == 100
        assert (file.read(), file.tell()) == (b"", 100)
        with pytest.raises(io.UnsupportedOperation):
            file.fileno()
    assert (file.readable(), file.closed) == (False, True)
    with fs.open(path, "wb") as file:
        with pytest.raises(ValueError, match="read mode"):
            file.read()
        with pytest.raises(OSError, match="read mode") as raised:
            file.seek(0)
        assert raised.value.errno == errno.ESPIPE
        with pytest.raises(TypeError):
            file.write("text")
        file.writelines([b"a", b"b"])
        assert (file.readable(), file.writable(), file.seekable()) == (False, True, False)
    assert fs.cat_file(path) == b"ab"
    for mode in ("r+b", "rwb", "bogusb"):
        with pytest.raises(NotImplementedError, match="mode is"):
            fs.open(path, mode)
    assert fs.open(path, fill_cache=False, requester_pays=False).read() == b"ab"
    for mode, words in (("wt", "é"), ("at", "é"), ("xt", "é")):
        with fs.open(f"{bucket}/{mode[0]}", mode, encoding="latin-1", newline="\r\n") as file:
            file.write(f"{words}\n")
        with fs.open(f"{bucket}/{mode[0]}", "rt", encoding="latin-1") as file:
            assert file.read() == f"{words}\n"
        assert fs.cat_file(f"{bucket}/{mode[0]}") == b"\xe9\r\n"


@pytest.mark.parametrize("size", [0, 3, 6 * MIB])
def test_an_append_that_comes_too_late_is_an_error(
    fs: WirespeedFileSystem, bucket: str, size: int
) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, bytes(size), ContentType="text/csv")
    file = write(fs, path, b"end", "ab", ContentType="text/plain")
    assert file.tell() == size + 3
    assert fs.cat_file(path) == bytes(size) + b"end"
    assert fs.info(path, refresh=True)["ContentType"] == "text/plain"
    before, during = fs.open(path, "ab"), fs.open(path, "ab")
    during.write(b"mine")
    fs.pipe_file(path, b"another's")
    for _ in range(2):
        with pytest.raises(FileExpired, match="nothing is appended"):
            during.close()
    with pytest.raises(FileExpired, match="nothing is appended"):
        before.write(b"mine")
    with pytest.raises(PreconditionError):
        before.close()
    assert fs.cat_file(path) == b"another's"


def test_an_append_keeps_how_the_object_is_stored(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str
) -> None:
    key, expires = b"k" * 32, "Fri, 01 Jan 2100 00:00:00 GMT"
    server.boto3().put_object(
        Bucket=bucket,
        Key="k",
        Body=b"data",
        StorageClass="STANDARD_IA",
        ServerSideEncryption="aws:kms",
        SSEKMSKeyId="mine",
        Expires=expires,
        CacheControl="no-cache",
    )
    before = fs.info(f"{bucket}/k", refresh=True)
    assert (before["StorageClass"], before["SSEKMSKeyId"]) == ("STANDARD_IA", "mine")
    write(fs, f"{bucket}/k", b"end", "ab")
    after = fs.info(f"{bucket}/k", refresh=True)
    changed = {"ETag", "LastModified", "Size", "size"}
    assert {name for name in before if before[name] != after[name]} <= changed
    assert after["Expires"] == expires
    write(fs, f"{bucket}/k", b"", "ab")
    write(fs, f"{bucket}/k", b"!", "ab", ServerSideEncryption="AES256")
    assert fs.info(f"{bucket}/k", refresh=True)["ServerSideEncryption"] == "AES256"
    write(fs, f"{bucket}/secret", b"data", SSECustomerKey=key)
    write(fs, f"{bucket}/secret", b"end", "ab", SSECustomerKey=key)
    assert fs.cat_file(f"{bucket}/secret", SSECustomerKey=key) == b"dataend"
    with fs.open(f"{bucket}/secret", SSECustomerKey=key, size=7) as file:
        assert file.read() == b"dataend"


def test_an_exclusive_file_says_what_is_there(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str
) -> None:
    path = f"{bucket}/k"
    late = fs.open(path, "xb")
    late.write(b"late")
    fs.pipe_file(path, b"first")
    for call in (lambda: fs.open(path, "xb"), late.close, late.close, late.commit):
        with pytest.raises(FileExistsError) as raised:
            call()
        assert (raised.value.errno, raised.value.filename) == (errno.EEXIST, f"s3://{path}")
    with pytest.raises(FileExistsError) as raised:
        fs.pipe({f"{bucket}/new": b"", path: b""}, mode="create")
    assert (raised.value.errno, raised.value.filename) == (errno.EEXIST, f"s3://{path}")
    # Who may write and not look leaves it to the condition.
    denied = {"action": "error:403:AccessDenied", "bucket": bucket}
    with server.misbehaving(denied | {"verb": "head"}, denied | {"verb": "list"}):
        write(fs, f"{bucket}/blind", b"data", "xb")
        with pytest.raises(FileExistsError):
            write(fs, path, b"data", "xb")
    assert fs.cat_file(f"{bucket}/blind") == b"data"
    assert fs.cat_file(path) == b"first"


# ---------------------------------------------------------------------- transactions


def test_a_transaction_stores_what_was_left_open(fs: WirespeedFileSystem, bucket: str) -> None:
    with fs.transaction:
        left: list[Any] = [
            fs.open(f"{bucket}/raw", "wb"),
            fs.open(f"{bucket}/text", "w"),
            fs.open(f"{bucket}/gz", "wb", compression="gzip"),
            fs.open(f"{bucket}/text.gz", "w", compression="infer"),
        ]
        for file in left:
            file.write("data" if isinstance(file, io.TextIOBase) else b"data")
        fs.pipe_file(f"{bucket}/piped", b"data")
        assert fs.find(bucket) == [f"{bucket}/piped"]
    for name in ("raw", "text", "piped"):
        assert fs.cat_file(f"{bucket}/{name}") == b"data"
    for name in ("gz", "text.gz"):
        with fs.open(f"{bucket}/{name}", compression="gzip") as file:
            assert file.read() == b"data"
    assert all(file.closed for file in left)


def test_a_transaction_does_not_store_half_of_a_text(fs: WirespeedFileSystem, bucket: str) -> None:
    def run() -> None:
        with fs.transaction:
            fs.open(f"{bucket}/k", "w").write("data")
            gc.collect()

    with pytest.raises(RuntimeError, match="discarded"):
        run()
    assert fs.find(bucket) == []


def test_a_transaction_that_fails_discards_the_rest(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str
) -> None:
    def run() -> None:
        with fs.transaction:
            for name in "abc":
                write(fs, f"{bucket}/{name}", bytes(20 * MIB))

    fault = {"action": "error:403:AccessDenied", "verb": "complete-multipart", "key": "b"}
    with server.misbehaving(fault | {"bucket": bucket}), pytest.raises(DeniedError):
        run()
    assert fs.find(bucket) == [f"{bucket}/a"]
    assert not server.boto3().list_multipart_uploads(Bucket=bucket).get("Uploads")
    write(fs, f"{bucket}/after", b"data")  # outside of it
    assert fs.exists(f"{bucket}/after")

    async def awaited() -> None:
        with fs.transaction, pytest.raises(ValueError, match="open"):
            await fs.open_async(f"{bucket}/awaited", "wb")

    asyncio.run(awaited())


def test_a_failing_compression_stores_nothing(fs: WirespeedFileSystem, bucket: str) -> None:
    class Broken:
        def close(self) -> None:
            raise ServerError("broken")

    def broken(path: str) -> Any:
        file = fs.open(path, "wb", compression="gzip")
        file.write(b"data")
        file._codec, codec = Broken(), file._codec
        with pytest.raises(ServerError, match="broken"):
            file.close()
        with contextlib.suppress(ValueError):
            codec.close()
        return file

    file = broken(f"{bucket}/k.gz")
    assert file.closed
    with pytest.raises(RuntimeError, match="discarded"), fs.transaction:
        broken(f"{bucket}/later.gz")
    assert fs.find(bucket) == []
