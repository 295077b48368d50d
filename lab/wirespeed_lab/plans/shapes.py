"""The shapes that a workload's work can have, and how each becomes items. All of it is computed:
the same numbers and the same ``random_seed`` make the same items on every machine."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, ClassVar, Protocol

from . import fields
from .fields import Fields
from .plan import MOST_DIGITS, MOST_ITEMS, Item

_MIB = 1 << 20
_count = fields.whole(1, MOST_ITEMS)
_digits = fields.whole(1, MOST_DIGITS)
_random_seed = fields.whole(0, (1 << 63) - 1)


class Shape(Protocol):
    """What is moved, before it is scaled."""

    #: Operations that can do this.
    operations: ClassVar[tuple[str, ...]]
    #: What of it a scale can shrink or stretch, ``count`` or ``size``; the first unless it is told.
    scales: ClassVar[tuple[str, ...]]

    def items(self, count: Callable[[int], int], size: Callable[[int], int]) -> list[Item]:
        """The work, with ``count`` and ``size`` scaling what the workload says is scaled."""

    def resized(self, size: int) -> Shape | None:
        """The same with objects of another size, where all have one."""


@dataclasses.dataclass(frozen=True)
class Objects:
    """``count`` whole objects of one size, numbered below a prefix."""

    operations: ClassVar = ("get", "put")
    scales: ClassVar = ("count", "size")
    prefix: str
    count: int
    size: int
    digits: int

    @classmethod
    def read(cls, given: Fields) -> Objects:
        return cls(
            given.take("prefix", fields.key),
            given.take("count", _count),
            given.take("size", fields.size),
            given.take("digits", _digits, 8),
        )

    def items(self, count: Callable[[int], int], size: Callable[[int], int]) -> list[Item]:
        each = size(self.size)
        return [Item(f"{self.prefix}{n:0{self.digits}d}", each) for n in range(count(self.count))]

    def resized(self, size: int) -> Objects:
        return dataclasses.replace(self, size=size)


@dataclasses.dataclass(frozen=True)
class OneObject:
    """One object; with ``ranges`` (bytes) an item for each range of that length, and the client
    is not asked to split it."""

    operations: ClassVar = ("get", "put")
    scales: ClassVar = ("size",)
    key: str
    size: int
    ranges: int | None

    @classmethod
    def read(cls, given: Fields) -> OneObject:
        key, size = given.take("key", fields.key), given.take("size", fields.some_bytes)
        ranges = given.take("ranges", fields.some_bytes, None)
        if ranges and size / ranges > MOST_ITEMS:
            raise given.bad("ranges", f"long enough for {MOST_ITEMS} of them at most", ranges)
        return cls(key, size, ranges)

    def items(self, count: Callable[[int], int], size: Callable[[int], int]) -> list[Item]:
        whole = size(self.size)
        if not self.ranges:
            return [Item(self.key, whole)]
        starts = range(0, whole, self.ranges)
        return [Item(self.key, whole, (at, min(at + self.ranges, whole))) for at in starts]

    def resized(self, size: int) -> OneObject:
        return dataclasses.replace(self, size=size)


@dataclasses.dataclass(frozen=True)
class Mixed:
    """``count`` objects whose sizes are log-normal, in shuffled order. The distribution is cut
    into ``classes`` of equal weight, each with the size in its middle, so that a server can be
    told in a few words what to hold."""

    operations: ClassVar = ("get", "put")
    scales: ClassVar = ("count", "size")
    prefix: str
    count: int
    median: int
    sigma: float
    smallest: int
    largest: int
    classes: int
    random_seed: int

    @classmethod
    def read(cls, given: Fields) -> Mixed:
        made = cls(
            given.take("prefix", fields.key),
            given.take("count", _count),
            given.take("median", fields.some_bytes),
            given.take("sigma", fields.number(0, 10)),
            given.take("smallest", fields.size, 1),
            given.take("largest", fields.some_bytes, fields.LARGEST),
            given.take("classes", fields.whole(1, 1000), 32),
            given.take("random_seed", _random_seed),
        )
        if not made.smallest <= made.median <= made.largest:
            raise given.bad("median", "from smallest to largest", made.median)
        return made

    def items(self, count: Callable[[int], int], size: Callable[[int], int]) -> list[Item]:
        objects = count(self.count)
        normal = NormalDist(0, 1)
        items = []
        for place in range(self.classes):
            deviation = self.sigma * normal.inv_cdf((place + 0.5) / self.classes)
            # Through powers of two: `math.exp` may differ in the last place between C libraries.
            drawn = round(self.median * 2.0 ** (deviation * 1.4426950408889634))
            each = size(min(max(drawn, self.smallest), self.largest))
            mine = objects * (place + 1) // self.classes - objects * place // self.classes
            items += [Item(f"{self.prefix}{place:03d}/{n:08d}", each) for n in range(mine)]
        random.Random(self.random_seed).shuffle(items)
        return items

    def resized(self, size: int) -> None:
        return None


@dataclasses.dataclass(frozen=True)
class RandomRanges:
    """``count`` ranges of ``length`` bytes at random places of one object, each beginning at a
    multiple of ``align``. Two may overlap, as they do for a reader that picks at random."""

    operations: ClassVar = ("get",)
    scales: ClassVar = ("count", "size")
    key: str
    size: int
    count: int
    length: int
    align: int
    random_seed: int

    @classmethod
    def read(cls, given: Fields) -> RandomRanges:
        made = cls(
            given.take("key", fields.key),
            given.take("size", fields.some_bytes),
            given.take("count", _count),
            given.take("length", fields.some_bytes),
            given.take("align", fields.some_bytes, 1),
            given.take("random_seed", _random_seed),
        )
        if made.length > made.size:
            raise given.bad("length", f"at most the object's {made.size} bytes", made.length)
        return made

    def items(self, count: Callable[[int], int], size: Callable[[int], int]) -> list[Item]:
        whole = max(size(self.size), self.length)
        drawn = random.Random(self.random_seed)
        places = (whole - self.length) // self.align + 1
        starts = [drawn.randrange(places) * self.align for _ in range(count(self.count))]
        return [Item(self.key, whole, (at, at + self.length)) for at in starts]

    def resized(self, size: int) -> RandomRanges | None:
        return dataclasses.replace(self, size=size) if size >= self.length else None


@dataclasses.dataclass(frozen=True)
class Keys:
    """Objects that are named one by one; scaling by count takes the first so many of them."""

    operations: ClassVar = ("get", "put")
    scales: ClassVar = ("count", "size")
    objects: tuple[Item, ...]

    @classmethod
    def read(cls, given: Fields) -> Keys:
        return cls(given.take("objects", fields.several(_named)))

    def items(self, count: Callable[[int], int], size: Callable[[int], int]) -> list[Item]:
        taken = self.objects[: min(count(len(self.objects)), len(self.objects))]
        return [dataclasses.replace(item, size=size(item.size)) for item in taken]

    def resized(self, size: int) -> None:
        return None


@dataclasses.dataclass(frozen=True)
class Prefix:
    """A prefix to list, with ``keys`` keys below it."""

    operations: ClassVar = ("list",)
    scales: ClassVar = ("count",)
    name: str
    keys: int
    size: int
    digits: int

    @classmethod
    def read(cls, given: Fields) -> Prefix:
        return cls(
            given.take("name", fields.key),
            given.take("keys", _count),
            given.take("size", fields.size, 0),
            given.take("digits", _digits, 8),
        )

    def items(self, count: Callable[[int], int], size: Callable[[int], int]) -> list[Item]:
        return [Item(self.name, self.size, None, count(self.keys), self.digits)]

    def resized(self, size: int) -> None:
        return None


#: By the name of the table that describes one. A workload has exactly one of them.
SHAPES: dict[str, Callable[[Fields], Shape]] = {
    "objects": Objects.read,
    "object": OneObject.read,
    "mixed": Mixed.read,
    "ranges": RandomRanges.read,
    "keys": Keys.read,
    "prefix": Prefix.read,
}


def scaled_count(count: int, scale: float) -> int:
    """At least one, whatever the scale."""
    return max(1, round(count * scale))


def scaled_size(size: int, scale: float) -> int:
    """Whole MiB where that is a MiB or more, so that parts stay whole too; at least one byte
    of what has any."""
    exact = size * scale
    if scale == 1 or not size:
        return size
    return round(exact / _MIB) * _MIB if exact >= _MIB else max(1, round(exact))


def _named(value: Any) -> Item:
    if not isinstance(value, dict) or set(value) != {"key", "size"}:
        raise ValueError('a list of { key = "...", size = "..." }')
    return Item(fields.key(value["key"]), fields.size(value["size"]))
