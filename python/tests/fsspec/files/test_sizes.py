"""Reading: through each cache, by a size that the caller gives, and after the object changed."""

from __future__ import annotations

import asyncio
import io
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
import servers
from fsspec.caching import caches

from wirespeed.fsspec import (
    FileExpired,
    WirespeedFileSystem,
)

KIB, MIB = 1 << 10, 1 << 20


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
    s3 = server.boto3()  # which takes a write without an ETag for done
    with server.misbehaving({"action": "no-etag", "bucket": bucket}):
        with fs.open(path, cache_type=cache_type) as file:
            assert file.details["ETag"] == ""
            s3.put_object(Bucket=bucket, Key="k", Body=bytes(MIB + 5))
            file.seek(MIB)
            with pytest.raises(FileExpired, match=rf"ended at byte {MIB + 5}|changed"):
                file.read(length) if length != 10 else file.readinto(bytearray(10))
        with fs.open(path, cache_type=cache_type) as file:
            s3.put_object(Bucket=bucket, Key="k", Body=bytes(10))
            with pytest.raises(FileExpired, match=r"ended at byte 10|changed"):
                file.readinto(bytearray(20))
