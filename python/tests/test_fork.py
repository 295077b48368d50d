"""Processes: children work and parents are unharmed, however they are made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MIB = 1 << 20
OBJECTS = 64
# A parent that is busy: threads that read, and that say whether a byte was ever wrong.
BEGIN = """
import concurrent.futures, gc, multiprocessing, os, pickle, sys, threading, time
import wirespeed

bucket = sys.argv[1]
client = wirespeed.Client()

def body(index):
    return bytes([index]) * (1 << 20)

def read(index):
    return client.get(f"k{index}", bucket=bucket) == body(index)

def sockets():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:"):
            found[int(name)] = target
    return found

class Busy:
    def __init__(self, threads=4):
        self.wrong, self.count, self.going, self.owner = [], 0, True, os.getpid()
        self.threads = [threading.Thread(target=self.work, args=(at,)) for at in range(threads)]

    def work(self, index):
        while self.going:
            try:
                if not read(index):
                    self.wrong.append("wrong bytes")
            except BaseException as error:
                self.wrong.append(repr(error))
            self.count += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        while self.count < 4:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        if os.getpid() != self.owner:
            return
        before = self.count
        deadline = time.monotonic() + 20
        while self.count < before + 8 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.going = False
        for thread in self.threads:
            thread.join()
        assert not self.wrong, self.wrong
        assert self.count >= before + 8, "the parent stands still"

def in_child(work):
    \"\"\"Runs it in a forked child, which must end with status 0 in time.\"\"\"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return child

def ended(child, within=30):
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "it hangs"
"""


@pytest.fixture
def filled(client: Any, bucket: str) -> str:
    """A bucket of OBJECTS objects of 1 MiB, each full of its own byte."""
    for index in range(OBJECTS):
        client.put(f"k{index}", bytes([index]) * MIB, bucket=bucket)
    return bucket


def run(
    script: str, bucket: str, folder: Path, env: dict[str, str], within: float = 100
) -> list[str]:
    """What a script prints, that begins with BEGIN and must say nothing of errors."""
    file = folder / "program.py"
    file.write_text(BEGIN + script)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(file), bucket],
        env=env,
        capture_output=True,
        text=True,
        timeout=within,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    return ran.stdout.splitlines()


def test_a_child_of_a_busy_parent_reads_and_writes(
    filled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = """
def work():
    for index in range(10, 20):
        assert read(index)
    client.put(f"child", b"of the child", bucket=bucket)
    assert client.get_many([f"k{index}" for index in range(30)], bucket=bucket)[29] == body(29)
    import asyncio
    async def main():
        gets = [client.aio.get(f"k{index}", bucket=bucket) for index in range(10)]
        got = await asyncio.gather(*gets)
        assert [bytes(one) for one in got] == [body(index) for index in range(10)]
    asyncio.run(main())

with Busy():
    for _ in range(5):
        print(ended(in_child(work)))
print(client.get("child", bucket=bucket, as_bytes=True).decode())
"""
    assert run(script, filled, tmp_path, environment) == ["0"] * 5 + ["of the child"]


def test_eight_workers_at_once(filled: str, environment: dict[str, str], tmp_path: Path) -> None:
    script = """
def work():
    until = time.monotonic() + 3
    while time.monotonic() < until:
        for index in range(8):
            assert read(index)

with Busy():
    children = [in_child(work) for _ in range(8)]
    print([ended(child) for child in children])
"""
    assert run(script, filled, tmp_path, environment) == [str([0] * 8)]


def test_a_child_uses_no_connection_of_its_parent(
    filled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = """

assert read(1)
with Busy():
    inherited = sockets()
    def work():
        for index in range(5):
            assert read(index)
        fresh = {target for target in sockets().values()} - set(inherited.values())
        assert fresh, "the child has opened no connection of its own"
        assert client.metrics()["connections_opened"] >= 1
        assert client.metrics()["requests"] <= 20, "the parent's counts"
    print(ended(in_child(work)))
    # The parent has all of its own.
    before = client.metrics()["connections_opened"]
    for index in range(20):
        assert read(index)
"""
    assert run(script, filled, tmp_path, environment) == ["0"]


def test_what_was_received_before_the_fork_can_be_read_after(
    filled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = """
kept = client.get("k7", bucket=bucket)
view, cut = memoryview(kept)[5:10], kept[100:200]
with Busy():
    def work():
        global kept, view, cut
        assert kept == body(7) and bytes(view) == body(7)[:5] and bytes(cut) == body(7)[:100]
        assert hash(kept) == hash(body(7)) and pickle.loads(pickle.dumps(cut)) == body(7)[:100]
        client.put("again", kept, bucket=bucket)
        client.put("view", view, bucket=bucket)
        assert client.get("again", bucket=bucket) == body(7)
        del kept, view, cut
        gc.collect()
    print(ended(in_child(work)))
assert kept == body(7)
del kept, view, cut
"""
    assert run(script, filled, tmp_path, environment) == ["0"]


def test_what_was_begun_before_the_fork_says_so_in_the_child(
    filled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = """
import asyncio, time
keys = [f"k{index}" for index in range(64)]
into = [bytearray(1 << 20) for _ in keys]
stream = client.stream("k1", bucket=bucket)
completions = client.get_many(keys, bucket=bucket, as_completed=True)
filling = client.get_many(keys, bucket=bucket, as_completed=True, into=into)
time.sleep(0.5)  # some lie ready
next(completions), next(filling)
writer = client.writer("written", bucket=bucket)
writer.write(b"x" * 100)
listing = iter(client.list(bucket=bucket))
next(listing)
begun = {
    "stream": lambda: stream.read(),
    "stream, part": lambda: next(stream),
    "completions": lambda: next(completions),
    "filling": lambda: next(filling),
    "writer": lambda: writer.write(b"x" * (32 << 20)),
    "writer, close": lambda: writer.close(),
}
def work():
    for name, call in begun.items():
        try:
            call()
        except RuntimeError as error:
            assert "fork" in str(error), (name, error)
        else:
            raise AssertionError(name)
    for owned in (stream, completions, filling, listing):
        if hasattr(owned, "close"):
            try:
                owned.close()
            except RuntimeError:
                pass
    begun.clear()
    assert read(3)
print(ended(in_child(work)))
# The parent goes on where it was.
assert stream.read() == body(1)
assert len(list(completions)) == 63 and len(list(filling)) == 63
assert into == [body(index) for index in range(64)]
writer.close()
assert client.get("written", bucket=bucket) == b"x" * 100
"""
    assert run(script, filled, tmp_path, environment) == ["0"]


def test_a_fork_in_the_middle_of_asyncio_is_survived(
    filled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = """
import asyncio
async def main():
    tasks = [asyncio.create_task(aio(index)) for index in range(64)]
    await asyncio.sleep(0.01)
    child = in_child(lambda: [read(index) for index in range(4)])
    assert all(await asyncio.gather(*tasks))
    return ended(child)

async def aio(index):
    return await client.aio.get(f"k{index}", bucket=bucket) == body(index)

print(asyncio.run(main()))
"""
    assert run(script, filled, tmp_path, environment) == ["0"]


def test_a_grandchild_works_too(filled: str, environment: dict[str, str], tmp_path: Path) -> None:
    script = """
def work():
    assert read(1)
    assert ended(in_child(lambda: None if read(2) else 1 / 0)) == 0
    assert read(3)

with Busy():
    print(ended(in_child(work)))
"""
    assert run(script, filled, tmp_path, environment) == ["0"]


def test_a_child_that_ends_in_the_usual_way_ends_soon(
    filled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = """
into = [bytearray(1 << 20)] * 8
with Busy():
    stream = client.stream("k1", bucket=bucket)
    completions = client.get_many(["k1"] * 8, bucket=bucket, as_completed=True)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        assert read(5)
        for thread in threading.enumerate():
            assert thread is threading.current_thread()
        sys.exit(0)  # with finalisers, atexit and all
    print(ended(child, 10))
"""
    assert run(script, filled, tmp_path, environment)[-1:] == ["0"]


def test_a_child_whose_parent_never_called_works(
    filled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = """
print(ended(in_child(lambda: None if read(2) else 1 / 0)))
assert read(1)
"""
    assert run(script, filled, tmp_path, environment) == ["0"]


POOL = """
def work(index):
    return read(index)

def of_pickled(pair):
    other, index = pair
    return other.get(f"k{index}", bucket=bucket) == body(index)

if __name__ == "__main__":
    method, kind = sys.argv[2:]
    context = multiprocessing.get_context(method)
    pairs = [(client, index) for index in range(8)]
    with Busy():
        if kind == "multiprocessing":
            with context.Pool(4) as pool:
                print(all(pool.map(work, range(32))), all(pool.map(of_pickled, pairs)))
        else:
            with concurrent.futures.ProcessPoolExecutor(4, mp_context=context) as pool:
                print(all(pool.map(work, range(32))), all(pool.map(of_pickled, pairs)))
"""


@pytest.mark.parametrize("kind", ["multiprocessing", "concurrent.futures"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes_work(
    filled: str, environment: dict[str, str], tmp_path: Path, method: str, kind: str
) -> None:
    file = tmp_path / "program.py"
    file.write_text(BEGIN + POOL)
    ran = subprocess.run(
        [sys.executable, str(file), filled, method, kind],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "True True\n", "")


def test_an_error_comes_back_from_a_worker(
    filled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = """
def work(key):
    return client.get(key, bucket=bucket, as_bytes=True)

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            pool.apply(work, ("absent",))
        except wirespeed.NotFoundError as error:
            print(error.key, error.status, isinstance(error, FileNotFoundError))
"""
    assert run(script, filled, tmp_path, environment) == ["absent 404 True"]


def test_one_buffer_is_filled_by_many_processes(
    filled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = """
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=16 << 20)
def work(first):
    def fill():
        for index in range(first, 16, 4):
            with block.buf[index << 20 : (index + 1) << 20] as view:
                assert client.get_into(f"k{index}", view, bucket=bucket) == 1 << 20
    return fill
children = [in_child(work(first)) for first in range(4)]
print([ended(child) for child in children])
assert bytes(block.buf) == b"".join(body(index) for index in range(16))
block.close()
block.unlink()
"""
    assert run(script, filled, tmp_path, environment) == [str([0] * 4)]


def test_the_copy_that_a_child_has_of_a_loop_hears_nothing_of_the_parents(
    filled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = """
import asyncio
async def main():
    loop = asyncio.get_running_loop()
    gets = [client.aio.get(f"k{index}", bucket=bucket) for index in range(16)]
    time.sleep(0.5)  # they have come, and the loop has not looked yet
    child = os.fork()
    if child == 0:
        turned = loop.create_future()
        loop.call_later(0.3, turned.set_result, None)
        try:
            await turned
        finally:
            os._exit(any(get.done() for get in gets))
    print(ended(child))
    got = await asyncio.wait_for(asyncio.gather(*gets), 10)
    assert [bytes(one) for one in got] == [body(index) for index in range(16)]

asyncio.run(main())
"""
    assert run(script, filled, tmp_path, environment) == ["0"]


def test_a_child_tells_none_of_its_parents_log(
    origin: Any, filled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = """
import asyncio, logging
heard = []
class Hear(logging.Handler):
    def emit(self, record):
        heard.append(record.getMessage())

logging.getLogger("wirespeed").addHandler(Hear())
logging.getLogger("wirespeed").setLevel(logging.DEBUG)
async def main():
    pending = client.aio.get("k1", bucket=bucket)
    time.sleep(1)  # its retry waits to be told
    def work():
        assert read(2)
        assert not any("503" in message for message in heard), heard
    print(ended(in_child(work)))
    assert await pending == body(1)
    print(any("503" in message for message in heard))

asyncio.run(main())
"""
    fault = {"action": "status:503", "verb": "get", "bucket": filled, "key": "k1", "times": 1}
    with origin.misbehaving(fault):
        assert run(script, filled, tmp_path, environment) == ["0", "True"]
