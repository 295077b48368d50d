"""Threads, forks, loops: whoever calls, and from where."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import servers

from wirespeed.fsspec import WirespeedFileSystem

MIB = 1 << 20


def _in_a_child(fs: WirespeedFileSystem, path: str, answers: Any) -> None:
    try:
        made = WirespeedFileSystem(**fs.storage_options)
        with made.open(path) as file:
            awaited = asyncio.run(_look(path, fs))
            answers.put((fs.cat_file(path), file.read(), made.find(path), awaited))
    except BaseException as error:
        answers.put(repr(error))


async def _look(path: str, fs: WirespeedFileSystem) -> bytes:
    return await fs._cat_file(path)


def test_a_file_system_goes_on_in_a_child_of_a_fork(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, b"before")
    assert fs.cat_file(path) == b"before"
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    children = [
        context.Process(target=_in_a_child, args=(fs, path, answers), daemon=True) for _ in range(4)
    ]
    for child in children:
        child.start()
    for _ in children:
        assert answers.get(timeout=60) == (b"before", b"before", [path], b"before")
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert fs.cat_file(path) == b"before"


def test_a_file_system_is_sent_to_a_process_that_was_spawned(
    server: Any, fs: WirespeedFileSystem, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs.pipe_file(f"{bucket}/k", b"here")
    for name, value in server.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    plain = WirespeedFileSystem(endpoint_url=server.endpoint)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply_async(plain.cat_file, (f"{bucket}/k",)).get(60) == b"here"


def test_one_file_system_serves_many_threads(fs: WirespeedFileSystem, bucket: str) -> None:
    def work(n: int) -> bool:
        path = f"{bucket}/{n}"
        data = str(n).encode() * 1000
        fs.pipe_file(path, data)
        fs.ls(bucket)
        with fs.open(path) as file:
            return file.read() == data == fs.cat_file(path) and fs.info(path)["size"] == len(data)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(64)))
    assert len(fs.find(bucket)) == 64


def test_the_blocking_methods_need_no_thread_of_fsspecs(
    fs: WirespeedFileSystem, bucket: str, tmp_path: Any
) -> None:
    started = {thread.name for thread in threading.enumerate()}
    fs.pipe({f"{bucket}/d/a": b"1", f"{bucket}/d/b": b"2"})
    fs.cat(f"{bucket}/d", recursive=True)
    fs.glob(f"{bucket}/**")
    list(fs.walk(bucket))
    fs.get(f"{bucket}/d", str(tmp_path / "d"), recursive=True)
    fs.put(str(tmp_path / "d"), f"{bucket}/e", recursive=True)
    fs.copy(f"{bucket}/d", f"{bucket}/f", recursive=True)
    fs.mv(f"{bucket}/f", f"{bucket}/g", recursive=True)
    fs.rm(f"{bucket}/g", recursive=True)
    with fs.open(f"{bucket}/d/a", "ab") as file:
        file.write(b"2")
    new = {thread.name for thread in threading.enumerate()} - started
    assert "fsspecIO" not in new


def test_coroutines_do_what_the_blocking_methods_do(
    options: dict[str, Any], bucket: str, tmp_path: Any
) -> None:
    async def main(run: str) -> None:
        fs = WirespeedFileSystem(**options, asynchronous=True)
        await fs._pipe({f"{bucket}/d/{n}": str(n).encode() for n in range(10)})
        assert await fs._cat_file(f"{bucket}/d/3") == b"3"
        assert len(await fs._cat(f"{bucket}/d", recursive=True)) == 10
        assert await fs._cat_ranges([f"{bucket}/d/1"] * 2, [0, 1], [1, 2]) == [b"1", b""]
        assert await fs._find(bucket) == sorted(f"{bucket}/d/{n}" for n in range(10))
        assert len(await fs._ls(f"{bucket}/d", detail=False)) == 10
        assert await fs._isdir(f"{bucket}/d")
        assert await fs._isfile(f"{bucket}/d/1")
        assert not await fs._exists(f"{bucket}/x")
        assert (await fs._info(f"{bucket}/d/1"))["size"] == 1
        assert await fs._du(bucket) == 10
        assert await fs._glob(f"{bucket}/d/[1-3]") == [f"{bucket}/d/{n}" for n in "123"]
        assert await anext(fs._walk(bucket)) == (bucket, ["d"], [])
        await fs._get(f"{bucket}/d", str(tmp_path / run), recursive=True)
        await fs._put(str(tmp_path / run), f"{bucket}/e", recursive=True)
        await fs._copy(f"{bucket}/e", f"{bucket}/f", recursive=True)
        assert len(await fs._find(f"{bucket}/f")) == 10
        await fs._rm(f"{bucket}/f", recursive=True)
        assert await fs._find(f"{bucket}/f") == []
        with pytest.raises(FileNotFoundError):
            await fs._cat_file(f"{bucket}/x")
        many = await asyncio.gather(*(fs._cat_file(f"{bucket}/d/{n % 10}") for n in range(200)))
        assert many == [str(n % 10).encode() for n in range(200)]
        # Blocking methods work in a coroutine too; they hold its loop up.
        assert fs.cat_file(f"{bucket}/d/3") == b"3"

    asyncio.run(main("first"))
    WirespeedFileSystem(**options).rm([f"{bucket}/d", f"{bucket}/e"], recursive=True)
    asyncio.run(main("in another loop, with the same instance"))


def test_files_are_read_and_written_by_coroutines(options: dict[str, Any], bucket: str) -> None:
    data = bytes(range(256)) * 4 * 1024 * 10

    async def main() -> None:
        fs = WirespeedFileSystem(**options, asynchronous=True)
        path = f"{bucket}/k"
        async with await fs.open_async(path, "wb", ContentType="text/csv") as file:
            for start in range(0, len(data), 3 * MIB):
                await file.write(data[start : start + 3 * MIB])
            assert not await fs._exists(path)
        assert (await fs._info(path))["ContentType"] == "text/csv"
        async with await fs.open_async(path) as file:
            pieces = []
            while piece := await file.read(MIB + 1):
                pieces.append(piece)
            assert b"".join(pieces) == data
            file.seek(1000)
            assert await file.read(24) == data[1000:1024]
            assert await file.read() == data[1024:]
        with pytest.raises(RuntimeError, match="halfway"):
            await halfway(fs)
        assert not await fs._exists(f"{bucket}/half")
        with pytest.raises(FileNotFoundError):
            await fs.open_async(f"{bucket}/nothing")

    async def halfway(fs: WirespeedFileSystem) -> None:
        async with await fs.open_async(f"{bucket}/half", "wb") as file:
            await file.write(b"x")
            raise RuntimeError("halfway")

    asyncio.run(main())


def test_ctrl_c_ends_many_copies_soon(origin: servers.Server, options_of: Any) -> None:
    fs = WirespeedFileSystem(**options_of(origin), skip_instance_cache=True)
    bucket = f"b-{uuid.uuid4().hex[:16]}"
    fs.mkdir(bucket)
    fs.pipe({f"{bucket}/d/{number:02}": b"x" for number in range(64)})
    slow = {"action": "delay:3000", "verb": "copy", "bucket": bucket}
    try:
        with origin.misbehaving(slow):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                fs.mv(f"{bucket}/d", f"{bucket}/t", recursive=True)
            assert time.monotonic() - began < 2
        assert len(fs.find(f"{bucket}/d")) == 64
    finally:
        fs.rm(bucket, recursive=True)


def test_a_bucket_that_may_not_be_listed_is_there_for_a_directory(
    origin: servers.Server, options_of: Any
) -> None:
    fs = WirespeedFileSystem(**options_of(origin), skip_instance_cache=True)
    bucket = f"b-{uuid.uuid4().hex[:16]}"
    fs.mkdir(bucket)
    fs.invalidate_cache()
    fault = {"action": "error:403:AccessDenied", "verb": "list", "bucket": bucket}
    with origin.misbehaving(fault):
        fs.makedirs(f"{bucket}/d", exist_ok=True)
        with pytest.raises(PermissionError):
            fs.mkdir(bucket)
    fs.rm(bucket, recursive=True)
