"""One description of an operation, carried out blocking or awaited.

An operation is a generator, a *plan*: it yields each step that talks to the server and is sent
what came of it. What decides (which request, with which arguments, and what its answer means)
stands in the plan alone; `blocking` and `awaitable` only carry steps out, on the thread that
called or on the loop that awaits. So the two halves of the file system can't come to differ, and
the blocking one needs neither fsspec's IO thread nor a loop.
"""

# fsspec calls these methods with what its own callers gave: their types are checked there.
from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from threading import Thread
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar, cast

from .. import AsyncClient, Client

T = TypeVar("T")
P = ParamSpec("P")

# Steps that are several calls into the engine run so many of them at once.
AT_ONCE = 16


class Step(Protocol):
    """Something that only a client can do."""

    def block(self, client: Client) -> Any:
        """Does it on this thread."""

    async def wait(self, client: AsyncClient) -> Any:
        """Does it on the running loop."""


Plan: TypeAlias = Generator[Step, Any, T]


class Call:
    """One call of a verb: ``Call(lambda client: client.head(key, bucket=bucket))``."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    def block(self, client: Client) -> Any:
        return self._call(client)

    async def wait(self, client: AsyncClient) -> Any:
        return await self._call(client)


class Together:
    """Several steps at once, for what the engine has no bulk form of: their outcomes, in order, an
    exception where one failed."""

    __slots__ = ("_steps",)

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps

    def block(self, client: Client) -> list[Any]:
        if len(self._steps) == 1:
            try:
                return [self._steps[0].block(client)]
            except Exception as error:
                return [error]
        outcomes: list[Any] = [None] * len(self._steps)
        left = deque(enumerate(self._steps))

        def work() -> None:
            while True:
                try:
                    place, step = left.popleft()
                except IndexError:
                    return
                try:
                    outcomes[place] = step.block(client)
                except BaseException as error:
                    outcomes[place] = error

        # Daemons, so that neither Ctrl-C nor the end of the process after it has to wait for those
        # that are under way.
        threads = [
            Thread(target=work, name="wirespeed-fsspec", daemon=True)
            for _ in range(min(AT_ONCE, len(self._steps)))
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            left.clear()
        return outcomes

    async def wait(self, client: AsyncClient) -> list[Any]:
        room = asyncio.Semaphore(AT_ONCE)

        async def outcome(step: Step) -> Any:
            async with room:
                return await step.wait(client)

        return await asyncio.gather(
            *(outcome(step) for step in self._steps), return_exceptions=True
        )


class StreamTo:
    """The object that the call streams, given to ``write`` part after part in order."""

    __slots__ = ("_call", "_write")

    def __init__(self, call: Callable[[Any], Any], write: Callable[[Any], object]) -> None:
        self._call, self._write = call, write

    def block(self, client: Client) -> None:
        with self._call(client) as stream:
            for part in stream:
                self._write(part)

    async def wait(self, client: AsyncClient) -> None:
        async with await made(self._call(client)) as stream:
            async for part in stream:
                self._write(part)


async def made(stream: Any) -> Any:
    """A stream, whether the verb gives it at once or has to be awaited for it."""
    return await cast(Awaitable[Any], stream) if hasattr(stream, "__await__") else stream


class _Runs(Protocol):
    @property
    def client(self) -> Client: ...


def blocking(plan: Callable[P, Plan[T]]) -> Callable[P, T]:
    """The method that carries a plan out on the thread that calls it."""

    @functools.wraps(plan)
    def method(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(plan(*args, **kwargs), cast(_Runs, args[0]).client)

    return _named(method, plan, "")


def awaitable(plan: Callable[P, Plan[T]]) -> Callable[P, Awaitable[T]]:
    """The coroutine method that carries a plan out on the running loop."""

    @functools.wraps(plan)
    async def method(*args: P.args, **kwargs: P.kwargs) -> T:
        return await run_async(plan(*args, **kwargs), cast(_Runs, args[0]).client.aio)

    return _named(method, plan, "_")


def both(
    plan: Callable[P, Plan[T]],
) -> tuple[Callable[P, T], Callable[P, Awaitable[T]]]:
    """``name, _name = both(_plan_name)``: the two methods that fsspec knows of one operation."""
    return blocking(plan), awaitable(plan)


def run(plan: Plan[T], client: Client) -> T:
    """Carries out a plan on this thread."""
    with contextlib.closing(plan):
        try:
            step = next(plan)
            while True:
                try:
                    answer = step.block(client)
                except Exception as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(answer)
        except StopIteration as end:
            return end.value


async def run_async(plan: Plan[T], client: AsyncClient) -> T:
    """Carries out a plan on the running loop."""
    with contextlib.closing(plan):
        try:
            step = next(plan)
            while True:
                try:
                    answer = await step.wait(client)
                except Exception as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(answer)
        except StopIteration as end:
            return end.value


M = TypeVar("M", bound=Callable[..., Any])


def _named(method: M, plan: Callable[..., Any], underscore: str) -> M:
    name = underscore + plan.__name__.removeprefix("_plan_")
    method.__name__ = name
    method.__qualname__ = plan.__qualname__.replace(plan.__name__, name)
    return method
