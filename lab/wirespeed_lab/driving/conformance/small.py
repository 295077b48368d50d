"""Plans that are done in a moment, and cover what goes wrong: sizes about a buffer's end, many of
them, ranges that begin and end anywhere, a key with all that must be escaped."""

from __future__ import annotations

from ...plans import Item, Plan

_SIZES = (1, 65_535, 1 << 20, (3 << 20) + 7)
#: The item of `with_one_missing` that is not there.
MISSING = 2
_PREFIX = "conformance/"


def objects(operation: str, count: int = 24, **fields: object) -> Plan:
    """Whole objects of four sizes in turn."""
    work = [Item(f"{_PREFIX}{n % 4}/{n // 4:08d}", _SIZES[n % 4]) for n in range(count - 1)]
    work.append(Item(f"{_PREFIX}a key+with %41 & ä = awkward", 4097))
    return _plan(operation, work, **fields)


def alike(concurrency: int) -> Plan:
    """Objects of one small size, several for each that is to be in flight."""
    work = [Item(f"{_PREFIX}alike/{n:08d}", 1 << 16) for n in range(4 * concurrency)]
    return _plan("get", work, concurrency=concurrency)


def ranges() -> Plan:
    """Ranges of two objects, of which some overlap."""
    size = 5_000_001
    cuts = [(0, 1), (0, size), (size - 1, size), (1, 1 << 20), (4_095, 3_000_000), (7, 65_543)]
    work = [Item(f"{_PREFIX}ranges/{n:08d}", size, cut) for n in range(2) for cut in cuts]
    return _plan("get", work)


def listed() -> Plan:
    """Objects that the driver must find by itself."""
    work = [Item(f"{_PREFIX}listed/{n:08d}", 1000) for n in range(1200)]
    return _plan("get", work, listing=f"{_PREFIX}listed/")


def parts(operation: str, sink: str) -> Plan:
    """One object that the client must split: with parts of 5 MiB, the least that S3 takes."""
    work = [Item(f"{_PREFIX}parts", (23 << 20) + 11)]
    return _plan(operation, work, sink=sink, part_size=5 << 20, concurrency=3)


def listing(keys: int = 2500) -> Plan:
    """More than two pages of keys."""
    return _plan("list", [Item(f"{_PREFIX}keys/", 0, None, keys, 8)])


def with_one_missing() -> Plan:
    """Four objects, of which one is nowhere."""
    work = list(objects("get", count=4).work)
    work[MISSING] = Item(f"{_PREFIX}missing", 1000)
    return _plan("get", work)


def _plan(operation: str, work: list[Item], **fields: object) -> Plan:
    given = {"sink": "discard", "concurrency": 4, **fields}
    return Plan(workload="conformance", operation=operation, work=tuple(work), **given)  # type: ignore[arg-type]
