"""Threads: one client, its buffers and its iterators shared by many.

Needs nothing but pytest, so that an interpreter without a GIL runs it too.
"""

from __future__ import annotations

import gc
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import wirespeed

MIB = 1 << 20


def body(index: int) -> bytes:
    return bytes([index % 251]) * MIB


@pytest.fixture
def filled(client: wirespeed.Client, bucket: str) -> str:
    """A bucket of 40 objects of 1 MiB, each full of its own byte."""
    for index in range(40):
        client.put(f"k{index}", body(index), bucket=bucket)
    return bucket


def at_once(count: int, work: Callable[[int], None]) -> None:
    """Runs it in so many threads that begin together, and raises what one of them raised."""
    barrier, raised = threading.Barrier(count), []

    def begin(index: int) -> None:
        try:
            barrier.wait()
            work(index)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=begin, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def resident() -> int:
    """The memory of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has a GIL"
)
def test_the_import_leaves_the_gil_off() -> None:
    assert not sys._is_gil_enabled()


def test_200_threads_read_for_seconds_and_memory_stays(
    client: wirespeed.Client, filled: str
) -> None:
    # Without a collection in between, what is measured is what is kept.
    seen: list[int] = []

    def round_(seconds: float) -> int:
        until, counts = time.monotonic() + seconds, [0] * 200

        def work(index: int) -> None:
            own = bytearray(MIB)
            at = index
            # Once at least: a busy machine may take as long to start them all.
            while not counts[index] or time.monotonic() < until:
                at = (at + 7) % 40
                if index % 2:
                    assert client.get(f"k{at}", bucket=filled) == body(at)
                else:
                    assert client.get_into(f"k{at}", own, bucket=filled) == MIB
                    assert own == body(at)
                counts[index] += 1

        at_once(200, work)
        gc.collect()
        seen.append(resident())
        return sum(counts)

    assert round_(2) >= 200
    assert round_(3) >= 200
    assert client.metrics()["memory_in_use"] == 0
    assert seen[1] < seen[0] + 100 * MIB


def test_threads_that_share_an_iterator_share_its_items(
    client: wirespeed.Client, filled: str
) -> None:
    keys = [f"k{index}" for index in range(40)] * 5
    completions = client.get_many(keys, bucket=filled, as_completed=True)
    seen: list[int] = []

    def work(_: int) -> None:
        for index, got in completions:
            assert got == body(index % 40)
            seen.append(index)

    at_once(16, work)
    assert sorted(seen) == list(range(200))


def test_threads_that_share_a_stream_share_its_parts(client: wirespeed.Client, filled: str) -> None:
    data = b"".join(body(index) for index in range(24))
    client.put("large", data, bucket=filled)
    with client.stream("large", bucket=filled) as stream:
        lengths: list[int] = []

        def work(_: int) -> None:
            for part in stream:
                lengths.append(len(part))

        at_once(8, work)
    assert sum(lengths) == len(data)


def test_an_iterator_may_be_closed_by_another_thread(client: wirespeed.Client, filled: str) -> None:
    for _ in range(10):
        completions = client.get_many(
            [f"k{index}" for index in range(40)] * 5, bucket=filled, as_completed=True
        )

        def work(index: int, completions: Any = completions) -> None:
            if index:
                for _ in completions:
                    pass
            else:
                completions.close()

        at_once(4, work)
        assert list(completions) == []


def test_one_buffer_may_be_used_by_many(client: wirespeed.Client, filled: str) -> None:
    buffer = client.get("k5", bucket=filled)

    def work(index: int) -> None:
        for step in range(200):
            at = (index * 1009 + step * 17) % MIB
            assert buffer[at] == 5
            assert bytes(buffer[at : at + 10]) == body(5)[at : at + 10]
            assert memoryview(buffer)[at:].nbytes == MIB - at
            buffer.__dlpack__()
        assert hash(buffer) == hash(body(5))

    at_once(16, work)


def test_clients_are_made_used_and_dropped_at_once(new_client: Any, filled: str) -> None:
    def work(index: int) -> None:
        for _ in range(3):
            client = new_client()
            assert client.get(f"k{index}", bucket=filled) == body(index)
            if index % 2:
                client.close()

    at_once(12, work)


def test_a_client_may_be_closed_while_others_use_it(new_client: Any, filled: str) -> None:
    for _ in range(5):
        client = new_client()
        outcomes: list[str] = []

        def work(index: int, client: Any = client, outcomes: Any = outcomes) -> None:
            if index == 0:
                time.sleep(0.02)
                client.close()
                return
            try:
                while True:
                    assert client.get(f"k{index}", bucket=filled) == body(index)
            except (wirespeed.CancelledError, wirespeed.ConfigError) as error:
                outcomes.append(str(error))

        at_once(8, work)
        assert len(outcomes) == 7
        assert all("closed" in outcome for outcome in outcomes)


def test_the_first_calls_may_come_together(filled: str, environment: dict[str, str]) -> None:
    import subprocess

    script = (
        "import sys, threading, wirespeed\n"
        "barrier, got = threading.Barrier(32), []\n"
        "def work(index):\n"
        "    barrier.wait()\n"
        "    got.append(len(wirespeed.get(f's3://{sys.argv[1]}/k{index}')))\n"
        "threads = [threading.Thread(target=work, args=(index,)) for index in range(32)]\n"
        "[thread.start() for thread in threads], [thread.join() for thread in threads]\n"
        "print(len(got), set(got), wirespeed.default_client().metrics()['requests'] >= 32)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, filled],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"32 {{{MIB}}} True\n", "")


def test_callbacks_are_called_in_their_callers_thread(
    client: wirespeed.Client, filled: str
) -> None:
    def work(index: int) -> None:
        threads: set[int] = set()
        client.get(
            f"k{index}",
            bucket=filled,
            on_part=lambda offset, view: threads.add(threading.get_ident()),
            progress=lambda progress: threads.add(threading.get_ident()),
        )
        assert threads == {threading.get_ident()}

    at_once(16, work)


def test_an_executor_fills_rows_side_by_side(client: wirespeed.Client, filled: str) -> None:
    whole = bytearray(40 * MIB)
    view = memoryview(whole)

    def fill(index: int) -> int:
        row = view[index * MIB : (index + 1) * MIB]
        return client.get_into(f"k{index}", row, bucket=filled)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(fill, range(40))) == len(whole)
    assert whole == b"".join(body(index) for index in range(40))


def test_loops_in_threads_are_apart(client: wirespeed.Client, filled: str) -> None:
    import asyncio

    async def main() -> None:
        got = await asyncio.gather(
            *(client.aio.get(f"k{index}", bucket=filled) for index in range(40))
        )
        assert [one[0] for one in got] == list(range(40))

    at_once(4, lambda _: asyncio.run(main()))
