"""What a task that is cancelled takes with it: nothing, or the stream says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import wirespeed


@pytest.fixture
def filled(client: wirespeed.Client, bucket: str) -> str:
    """A bucket with a small object `small`."""
    client.put("small", b"small", bucket=bucket)
    return bucket


async def cancelled_as_it_comes(call: Callable[[], Awaitable[Any]], turn: str) -> asyncio.Task[Any]:
    """A task that awaits a call whose answer comes while the loop is held up, and that is cancelled
    ``before`` the loop has looked at what came, or in the ``same`` turn, by a timer that goes off
    when the loop has looked and the task has not run yet."""

    async def awaiting() -> Any:
        return await call()

    task = asyncio.ensure_future(awaiting())
    await asyncio.sleep(0)
    if turn == "same":
        asyncio.get_running_loop().call_later(0.1, task.cancel)
    time.sleep(0.3)
    if turn == "before":
        task.cancel()
    return task


def test_a_cancelled_step_loses_no_item(client: wirespeed.Client, filled: str, run: Any) -> None:
    async def main() -> None:
        keys = ["small"] * 200
        completions = client.aio.get_many(keys, bucket=filled, as_completed=True)
        seen, turns = [], 0
        while True:
            step = asyncio.ensure_future(anext(completions))
            for _ in range(turns % 4):
                await asyncio.sleep(0)
            turns += 1
            if turns % 3 == 0:
                step.cancel()
            try:
                seen.append((await step)[0])
            except asyncio.CancelledError:
                continue
            except StopAsyncIteration:
                break
        assert sorted(seen) == list(range(200))

    run(main())


@pytest.mark.parametrize("of", ["get_many", "stream", "list"])
@pytest.mark.parametrize("turn", ["before", "same"])
def test_a_step_cancelled_when_its_item_is_there_loses_nothing(
    client: wirespeed.Client, filled: str, run: Any, of: str, turn: str
) -> None:
    def items() -> Any:
        if of == "get_many":
            return client.aio.get_many(["small"], bucket=filled, as_completed=True)
        if of == "list":
            return aiter(client.aio.list(f"s3://{filled}/small"))
        return opened

    def content(item: Any) -> bytes:
        return (
            bytes(item[1])
            if of == "get_many"
            else item.key.encode()
            if of == "list"
            else bytes(item)
        )

    async def main() -> None:
        nonlocal opened
        opened = await client.aio.stream("small", bucket=filled)
        arriving = items()
        cancelled = await cancelled_as_it_comes(lambda: anext(arriving), turn)
        # The next step is not told of the end while the item may still come back.
        following = asyncio.ensure_future(anext(arriving))
        asyncio.get_running_loop().call_soon(time.sleep, 0.3)
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert content(await following) == b"small"
        with pytest.raises(StopAsyncIteration):
            await anext(arriving)

    opened: Any = None
    run(main())


@pytest.mark.parametrize("turn", ["before", "same"])
@pytest.mark.parametrize("into", [False, True], ids=["read", "readinto"])
def test_a_read_cancelled_when_its_bytes_are_there_leaves_no_silent_gap(
    client: wirespeed.Client, filled: str, run: Any, into: bool, turn: str
) -> None:
    async def main() -> None:
        stream = await client.aio.stream("small", bucket=filled)

        def read() -> Awaitable[Any]:
            return stream.readinto(bytearray(2)) if into else stream.read(2)

        cancelled = await cancelled_as_it_comes(read, turn)
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert stream.tell() == 0
        try:
            rest = await stream.read()
        except wirespeed.CancelledError as error:
            advice, rest = str(error), await client.aio.get("small", bucket=filled, range=(0, None))
        else:
            advice = "tell()"
        assert rest == b"small"
        assert "tell()" in advice

    run(main())


async def reads_awaited_in_another_order(stream: wirespeed.AsyncStream) -> list[bytes]:
    first, second = stream.read(2), stream.read(3)
    return [await second, await first]


def test_reads_need_not_be_awaited_in_their_order(
    client: wirespeed.Client, filled: str, run: Any
) -> None:
    async def main() -> None:
        stream = await client.aio.stream("small", bucket=filled)
        second, first = await asyncio.wait_for(reads_awaited_in_another_order(stream), 10)
        assert sorted(first + second) == sorted(b"small")
        assert stream.tell() == 5

    run(main())
