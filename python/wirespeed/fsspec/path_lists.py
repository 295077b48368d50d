"""Arguments that are one path or several: lists, tuples, sets, the keys of a mapping."""

from __future__ import annotations

import os
from collections.abc import Iterable, KeysView, Set
from typing import Any


def each_path(path: Any) -> list[Any]:
    """The paths given: one, or those of a list, a tuple, a set or another collection."""
    return [path] if is_one_path(path) else list(path)


def is_one_path(path: Any) -> bool:
    """Returns whether one path is given, and not several."""
    return isinstance(path, (str, bytes, os.PathLike)) or not isinstance(path, Iterable)


def paired(sources: Any, targets: Any) -> list[tuple[Any, Any]] | None:
    """Each source with its target, where several of both are given; otherwise None.

    Raises:
        TypeError: one of them is a set, which has no order.
        ValueError: there are more of one than of the other.
    """
    if is_one_path(sources) or is_one_path(targets):
        return None
    for several in (sources, targets):
        if isinstance(several, Set) and not isinstance(several, KeysView):
            raise TypeError("a set has no order to pair sources with targets by: give lists")
    sources, targets = list(sources), list(targets)
    if len(sources) != len(targets):
        raise ValueError(f"{len(sources)} sources and {len(targets)} targets: give one for each")
    return list(zip(sources, targets, strict=True))
