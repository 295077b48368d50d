"""Calls of the awaitable client that take more than one turn, as coroutines over single ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, cast

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class _Begun(Protocol[_T_co]):
    def receive(self) -> Awaitable[_T_co]: ...


class _Parts(Protocol):
    def next(self) -> Awaitable[Any]: ...


class _Batches(Protocol[_T]):
    def next_batch(self) -> Awaitable[list[tuple[int, _T]]]: ...


async def finish(begun: Awaitable[_Begun[_T]]) -> _T:
    """Receives what has been begun, into memory made for its size."""
    return await (await begun).receive()


async def each_part(
    opening: Awaitable[_Parts],
    on_part: Callable[[int, memoryview], object],
    tell: Callable[[], None] | None,
) -> Any:
    """Gives each part to the callback as it lands, in the thread of the event loop."""
    parts = await opening
    try:
        while isinstance(answer := await parts.next(), list):
            batch = cast(list[tuple[int, memoryview]], answer)
            while batch:
                # The view is let go before the next one is asked for: its memory is used again.
                on_part(*batch.pop(0))
            if tell is not None:
                tell()
        if tell is not None:
            tell()
        return answer
    except BaseException:
        # Stopped now, not when the last of those who hold the traceback lets go of it.
        answer = batch = None
        del opening, parts
        raise


async def gather(batches: _Batches[_T], count: int) -> list[_T | None]:
    """What comes of each item, in the order of the items."""
    outcomes: list[_T | None] = [None] * count
    try:
        while batch := await batches.next_batch():
            for index, outcome in batch:
                outcomes[index] = outcome
        return outcomes
    except BaseException:
        # As in `each_part`.
        del batches
        raise


async def value(given: _T) -> _T:
    """What was given, to be awaited."""
    return given
