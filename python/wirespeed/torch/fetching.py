"""Many objects in order, the next ones on their way while the last are used.

Each window of objects is one call into the engine, which has them all in flight at once; two
windows exist at a time, the one being used and the next. So memory is bounded by two windows,
however many objects there are and however slowly they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirespeed import Buffer, Client

if TYPE_CHECKING:
    from wirespeed._wirespeed import Completions

Range = tuple[int, int] | None


@dataclass(frozen=True)
class Wanted:
    """An object, or a range of its bytes (the end excluded), and its size if known."""

    uri: str
    range: Range = None
    size: int | None = None


@dataclass(frozen=True)
class Window:
    """How much one call asks for: a number of objects, and of bytes where sizes are known."""

    objects: int
    nbytes: int

    def __post_init__(self) -> None:
        if self.objects < 1 or self.nbytes < 1:
            raise ValueError("a window holds at least one object and one byte")


def fetch_in_order(
    client: Client, count: int, wanted: Callable[[int], Wanted], window: Window
) -> Generator[Buffer, None, None]:
    """The bytes of ``wanted(0)`` to ``wanted(count - 1)``; closed early, it stops the rest."""
    following = _Flight(client, _fill(0, count, wanted, window))
    asked = len(following)
    try:
        while len(following):
            current, following = following, _Flight(client, _fill(asked, count, wanted, window))
            asked += len(following)
            try:
                yield from current
            finally:
                current.close()
    finally:
        following.close()


def _fill(
    begin: int, count: int, wanted: Callable[[int], Wanted], window: Window
) -> Sequence[Wanted]:
    batch: list[Wanted] = []
    nbytes = 0
    for index in range(begin, min(begin + window.objects, count)):
        one = wanted(index)
        nbytes += one.size or 0
        if batch and nbytes > window.nbytes:
            break
        batch.append(one)
    return batch


class _Flight:
    """One call in flight, read in order."""

    def __init__(self, client: Client, batch: Sequence[Wanted]) -> None:
        self._count = len(batch)
        self._arrivals: Completions[Buffer] | None = None
        if batch:
            items = [(one.uri, one.range) for one in batch]
            self._arrivals = client.get_many(items, as_completed=True)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Buffer]:
        early: dict[int, Buffer] = {}
        for index in range(self._count):
            while index not in early:
                assert self._arrivals is not None
                at, buffer = next(self._arrivals)
                early[at] = buffer
            yield early.pop(index)

    def close(self) -> None:
        if self._arrivals is not None:
            self._arrivals.close()
