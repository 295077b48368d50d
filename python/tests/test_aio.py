"""The awaitable view in asyncio: cancelled, gathered, in one loop, in several, and in none."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import os
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import wirespeed

MIB = 1 << 20


@pytest.fixture
def filled(client: wirespeed.Client, bucket: str) -> str:
    """A bucket with a large object `large` and a small one `small`."""
    client.put("large", bytes(24 * MIB), bucket=bucket)
    client.put("small", b"small", bucket=bucket)
    return bucket


def stalls(origin: Any, bucket: str) -> Any:
    fault = {"action": "stall-after:100000", "verb": "get", "bucket": bucket, "key": "large"}
    return origin.misbehaving(fault)


async def comes_back(client: wirespeed.Client) -> bool:
    """Whether all of the client's memory comes back."""
    deadline = time.monotonic() + 5
    while client.metrics()["memory_in_use"] and time.monotonic() < deadline:
        gc.collect()
        await asyncio.sleep(0.01)
    return client.metrics()["memory_in_use"] == 0


def test_a_thousand_at_once(client: wirespeed.Client, filled: str, run: Any) -> None:
    async def main() -> None:
        got = await asyncio.gather(*(client.aio.get("small", bucket=filled) for _ in range(1000)))
        assert all(one == b"small" for one in got)

    run(main())
    gc.collect()
    assert client.metrics()["memory_in_use"] == 0


def test_a_cancelled_call_stops(
    client: wirespeed.Client, origin: Any, filled: str, run: Any
) -> None:
    async def main() -> None:
        destination = bytearray(24 * MIB)
        for verb in (
            lambda: client.aio.get("large", bucket=filled),
            lambda: client.aio.get("large", bucket=filled, as_bytes=True),
            lambda: client.aio.get("large", bucket=filled, on_part=lambda offset, view: None),
            lambda: client.aio.get_many(["large"] * 5, bucket=filled),
            lambda: client.aio.get_many(["large"] * 5, bucket=filled, as_bytes=True),
            lambda: client.aio.get_into("large", destination, bucket=filled),
        ):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(verb(), 0.2)
            assert await comes_back(client)
            before = client.metrics()["requests"]
            await asyncio.sleep(0.2)
            assert client.metrics()["requests"] == before
        # The loop hears when the memory is not written to any more.
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            with contextlib.suppress(BufferError):
                destination.append(0)
                break
            await asyncio.sleep(0.01)
        assert len(destination) == 24 * MIB + 1
        assert await client.aio.get("small", bucket=filled) == b"small"

    with stalls(origin, filled):
        run(main())


def test_an_iterator_can_be_left_and_cancelled(
    client: wirespeed.Client, origin: Any, filled: str, run: Any
) -> None:
    async def main() -> None:
        completions = client.aio.get_many(["small", "large"], bucket=filled, as_completed=True)
        assert await anext(completions) == (0, b"small")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(completions), 0.2)
        completions.close()
        with pytest.raises(StopAsyncIteration):
            await anext(completions)
        assert await comes_back(client)

    with stalls(origin, filled):
        run(main())


def test_loops_one_after_another(client: wirespeed.Client, filled: str, run: Any) -> None:
    async def main() -> bytes:
        return bytes(await client.aio.get("small", bucket=filled))

    files = []
    for _ in range(20):
        assert run(main()) == b"small"
        gc.collect()
        files.append(len(os.listdir("/proc/self/fd")))
    assert files[-1] <= files[2] + 2, "loops leave their sockets behind"


def test_loops_that_end_with_calls_in_flight_leave_nothing(
    client: wirespeed.Client, origin: Any, filled: str, run: Any
) -> None:
    async def get() -> wirespeed.Buffer:
        return await client.aio.get("large", bucket=filled)

    async def main() -> None:
        tasks = [asyncio.create_task(get()) for _ in range(5)]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in tasks)

    files = []
    with stalls(origin, filled):
        for _ in range(15):
            run(main())
            time.sleep(0.05)
            gc.collect()
            files.append(len(os.listdir("/proc/self/fd")))
    assert client.get("small", bucket=filled) == b"small"
    # What is on its way to a loop that has closed is let go of when the next loop begins.
    assert files[-1] <= files[4] + 4, files


def test_a_loop_that_is_closed_under_a_call_is_survived(
    client: wirespeed.Client, origin: Any, filled: str
) -> None:
    async def begin() -> Any:
        return client.aio.get("large", bucket=filled)

    with stalls(origin, filled):
        loop = asyncio.new_event_loop()
        pending = loop.run_until_complete(begin())
        loop.close()
        time.sleep(0.2)
    assert not pending.done()
    del pending, loop
    gc.collect()
    assert client.get("small", bucket=filled) == b"small"
    asyncio.run(asyncio.wait_for(asyncio.sleep(0), 1))


def test_two_loops_in_two_threads(client: wirespeed.Client, filled: str, run: Any) -> None:
    raised: list[BaseException] = []

    async def main() -> None:
        for _ in range(5):
            got = await asyncio.gather(
                *(client.aio.get("small", bucket=filled) for _ in range(50)),
                client.aio.get("large", bucket=filled),
            )
            assert all(one == b"small" for one in got[:-1])
            assert len(got[-1]) == 24 * MIB

    def work() -> None:
        try:
            run(main())
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not raised


def test_where_no_loop_runs_the_advice_is_given(client: wirespeed.Client, filled: str) -> None:
    for call in (
        lambda: client.aio.get("small", bucket=filled),
        lambda: client.aio.get_many(["small"], bucket=filled),
        lambda: client.aio.head("small", bucket=filled),
        lambda: client.aio.put("k", b"x", bucket=filled),
        lambda: client.aio.delete("small", bucket=filled),
    ):
        with pytest.raises(RuntimeError, match=r"no running event loop.*blocking Client"):
            call()
    assert client.get("small", bucket=filled) == b"small"


def test_the_blocking_client_works_inside_a_running_loop(
    client: wirespeed.Client, filled: str, run: Any
) -> None:
    # As in a notebook.
    async def main() -> None:
        pending = asyncio.ensure_future(client.aio.get("large", bucket=filled))
        await asyncio.sleep(0)
        assert client.get("small", bucket=filled) == b"small"
        assert [bytes(one) for one in client.get_many(["small"] * 5, bucket=filled)] == [
            b"small"
        ] * 5
        assert len(await pending) == 24 * MIB
        in_thread = await asyncio.to_thread(client.get, "small", bucket=filled)
        assert in_thread == b"small"

    run(main())


def test_the_loop_goes_on_while_bytes_come(
    client: wirespeed.Client, origin: Any, filled: str, run: Any
) -> None:
    async def main() -> int:
        turns, pending = 0, asyncio.ensure_future(client.aio.get("large", bucket=filled))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                while not pending.done():
                    await asyncio.sleep(0.01)
                    turns += 1
        pending.cancel()
        return turns

    with stalls(origin, filled):
        assert run(main()) > 5


def test_calls_can_be_tasks_groups_and_shields(
    client: wirespeed.Client, filled: str, run: Any
) -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(of(client.aio.get("small", bucket=filled)))
        assert task.result() == b"small"
        assert await asyncio.shield(client.aio.get("small", bucket=filled)) == b"small"
        done, _ = await asyncio.wait(
            [asyncio.ensure_future(client.aio.get("small", bucket=filled))]
        )
        assert done.pop().result() == b"small"

    async def of(awaitable: Any) -> Any:
        return await awaitable

    run(main())


def test_every_verb_gives_something_to_be_awaited(
    client: wirespeed.Client, filled: str, run: Any
) -> None:
    async def main() -> None:
        where = {"bucket": filled}
        calls = [
            client.aio.get("small", **where),
            client.aio.get("small", **where, as_bytes=True),
            client.aio.get("small", **where, on_part=lambda offset, view: None),
            client.aio.get_into("small", bytearray(5), **where),
            client.aio.get_many(["small"], **where),
            client.aio.get_many(["small"], **where, as_bytes=True),
            client.aio.get_ranges("small", [(0, 2)], **where),
            client.aio.stream("small", **where),
            client.aio.put("k", b"x", **where),
            client.aio.head("small", **where),
            client.aio.exists("small", **where),
            client.aio.delete("gone", **where),
            client.aio.delete_many(["gone"], **where),
            client.aio.copy(f"s3://{filled}/small", f"s3://{filled}/copy"),
            client.aio.presign("small", **where),
            client.aio.list_buckets(),
        ]
        assert all(inspect.isawaitable(call) for call in calls)
        await asyncio.gather(*calls)

    run(main())


def test_a_failure_that_nobody_awaits_is_told_by_asyncio(
    client: wirespeed.Client, filled: str
) -> None:
    told: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
        client.aio.get("absent", bucket=filled)
        await asyncio.sleep(0.3)
        gc.collect()

    asyncio.run(main())
    assert isinstance(told[0]["exception"], wirespeed.NotFoundError)


def test_what_is_never_awaited_is_no_leak(client: wirespeed.Client, filled: str) -> None:
    async def main() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for _ in range(2):
                client.aio.get("large", bucket=filled)
                client.aio.get("large", bucket=filled, as_bytes=True)
                client.aio.get("large", bucket=filled, on_part=lambda offset, view: None)
            await asyncio.sleep(0.5)
            gc.collect()
        assert await comes_back(client)

    asyncio.run(main())


def test_close_ends_what_is_awaited(new_client: Any, origin: Any, filled: str, run: Any) -> None:
    client = new_client()

    async def main() -> None:
        pending = asyncio.ensure_future(client.aio.get("large", bucket=filled))
        await asyncio.sleep(0.2)
        client.close()
        with pytest.raises(wirespeed.CancelledError, match="closed"):
            await asyncio.wait_for(pending, 5)
        with pytest.raises(wirespeed.ConfigError, match="closed"):
            await client.aio.get("small", bucket=filled)

    with stalls(origin, filled):
        run(main())


def test_the_debug_mode_of_asyncio_finds_nothing(client: wirespeed.Client, filled: str) -> None:
    async def main() -> None:
        got = await asyncio.gather(*(client.aio.get("small", bucket=filled) for _ in range(20)))
        assert all(one == b"small" for one in got)
        async for _ in client.aio.get_many(["small"] * 20, bucket=filled, as_completed=True):
            pass

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main(), debug=True)


def test_a_callback_that_raises_leaves_the_loop_running(
    client: wirespeed.Client, filled: str, run: Any
) -> None:
    def refuse(*_: Any) -> None:
        raise ZeroDivisionError

    async def main() -> None:
        for options in ({"on_part": refuse}, {"progress": refuse}):
            with pytest.raises(ZeroDivisionError):
                await client.aio.get("large", bucket=filled, **options)
            assert await client.aio.get("small", bucket=filled) == b"small"
        assert await comes_back(client)

    run(main())


class _Refusing(asyncio.Future[Any]):
    def set_result(self, result: Any) -> None:
        raise ZeroDivisionError


class _Loop(asyncio.SelectorEventLoop):
    refuses = False

    def create_future(self) -> asyncio.Future[Any]:
        return _Refusing(loop=self) if self.refuses else super().create_future()


def test_a_result_that_cannot_be_set_keeps_no_other_back(
    client: wirespeed.Client, filled: str
) -> None:
    told: list[dict[str, Any]] = []

    async def main(loop: _Loop) -> None:
        loop.refuses = True
        refusing = [client.aio.get("small", bucket=filled) for _ in range(3)]
        loop.refuses = False
        good = [client.aio.get("small", bucket=filled) for _ in range(3)]
        # All of them have come when the loop turns.
        time.sleep(0.3)
        got = await asyncio.wait_for(asyncio.gather(*good), 10)
        assert [bytes(one) for one in got] == [b"small"] * 3
        assert not any(one.done() for one in refusing)

    loop = _Loop()
    loop.set_exception_handler(lambda loop, context: told.append(context))
    try:
        loop.run_until_complete(main(loop))
    finally:
        loop.close()
    assert isinstance(told[0]["exception"], ZeroDivisionError)


def test_a_callback_that_raises_what_no_future_takes_is_an_error(
    client: wirespeed.Client, filled: str, run: Any
) -> None:
    def refuse(_: Any) -> None:
        raise StopIteration

    async def main() -> None:
        with pytest.raises(RuntimeError, match="StopIteration") as raised:
            await asyncio.wait_for(client.aio.get("large", bucket=filled, progress=refuse), 10)
        assert isinstance(raised.value.__cause__, StopIteration)

    run(main())


def unix_sockets() -> int:
    """How many sockets this process has that lead to itself."""
    known = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{name}")[8:-1] in known
    return count


def test_a_blocking_call_lets_go_of_loops_that_closed_under_calls(
    client: wirespeed.Client, origin: Any, filled: str
) -> None:
    async def begin() -> Any:
        return client.aio.get("small", bucket=filled)

    assert client.get("small", bucket=filled) == b"small"
    before = unix_sockets()
    with origin.misbehaving({"action": "delay:300", "verb": "get", "bucket": filled}):
        loops = [asyncio.new_event_loop() for _ in range(8)]
        for loop in loops:
            loop.run_until_complete(begin())
        for loop in loops:
            loop.close()
        time.sleep(1)
    del loop, loops
    client.get("small", bucket=filled)
    gc.collect()
    assert unix_sockets() <= before


def test_close_keeps_no_loop_waiting(new_client: Any, origin: Any, filled: str, run: Any) -> None:
    faults = [
        {"action": "stall", "verb": "upload-part", "bucket": filled},
        {"action": "stall", "verb": "abort-multipart", "bucket": filled},
    ]

    async def turns_while(closing: Any) -> int:
        turns, closing = 0, asyncio.ensure_future(closing)
        while not closing.done():
            await asyncio.sleep(0.01)
            turns += 1
        await closing
        return turns

    async def main() -> None:
        for end in (
            lambda client: client.close(),
            lambda client: client.__aexit__(None, None, None),
        ):
            client = new_client().aio
            pending = asyncio.ensure_future(client.put("k", bytes(20 * MIB), bucket=filled))
            await asyncio.sleep(0.3)
            # The abort never comes back, and is waited for a while.
            assert await turns_while(end(client)) > 20
            with pytest.raises(wirespeed.CancelledError, match="closed"):
                await pending
            await client.close()

    with origin.misbehaving(*faults):
        run(main())


def test_close_is_refused_where_no_loop_runs(client: wirespeed.Client, filled: str) -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        client.aio.close()
    assert client.get("small", bucket=filled) == b"small"
