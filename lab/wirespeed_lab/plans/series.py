"""What a store must hold before a plan can run, in as few words as a server can be told."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(.*?)([0-9]+)", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Series:
    """``count`` objects of ``size`` bytes each, named ``prefix`` and a number from 0 in ``digits``
    digits; with ``count`` 0 one object, whose key is ``prefix``."""

    prefix: str
    size: int
    count: int = 0
    digits: int = 8

    @property
    def objects(self) -> int:
        return self.count or 1

    @property
    def bytes(self) -> int:
        return self.size * self.objects

    def keys(self) -> Iterable[str]:
        if not self.count:
            return (self.prefix,)
        return (f"{self.prefix}{n:0{self.digits}d}" for n in range(self.count))


def gathered(objects: dict[str, int]) -> tuple[Series, ...]:
    """Series of the objects with these sizes, in the order in which they first appear. Keys that
    count up from 0 without a gap, all of one size, are one series."""
    groups: dict[tuple[str, int], list[str]] = {}
    for key in objects:
        found = _NUMBERED.fullmatch(key)
        name = (found[1], len(found[2])) if found else (key, 0)
        groups.setdefault(name, []).append(key)
    series: list[Series] = []
    for (prefix, digits), keys in groups.items():
        sizes = {objects[key] for key in keys}
        numbers = {int(key[len(prefix) :]) for key in keys} if digits else set()
        if len(keys) > 1 and len(sizes) == 1 and numbers == set(range(len(keys))):
            series.append(Series(prefix, sizes.pop(), len(keys), digits))
        else:
            series += [Series(key, objects[key], 0) for key in keys]
    return tuple(series)
