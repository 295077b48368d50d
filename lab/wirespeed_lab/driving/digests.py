"""What items must be: the digests of their bytes by the server's published formula."""

from __future__ import annotations

import functools
import importlib.util
import zlib
from collections.abc import Iterator, Sequence
from types import ModuleType

from .. import places
from ..plans import Item

#: The key by whose bytes every upload's body is made, from offset 0.
BODY = "body"


@functools.cache
def formula() -> ModuleType:
    """The module that drivers in Python compute the bytes with."""
    path = places.step_protocol() / "synthetic_bytes.py"
    spec = importlib.util.spec_from_file_location("wirespeed_lab_synthetic_bytes", path)
    if spec is None or spec.loader is None:
        raise places.MissingProgram(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expected(items: Sequence[Item], operation: str) -> str:
    """The digest that a driver must report for these items together in a round that verifies:
    CRC-32 as 8 hex digits, of their bytes one after the other; of a listing's keys, in order,
    with a line feed between two."""
    if operation == "list":
        return f"{zlib.crc32(chr(10).join(k for i in items for k in listed(i)).encode()):08x}"
    crc = 0
    for item in items:
        key = BODY if operation == "put" else item.key
        crc = _continued(crc, key, *(item.range or (0, item.size)))
    return f"{crc:08x}"


def listed(item: Item) -> Iterator[str]:
    """The keys that a listing must find, in order."""
    return (f"{item.key}{n:0{item.digits}d}" for n in range(item.keys or 0))


def pieces(key: str, start: int, end: int) -> Iterator[bytes]:
    """The bytes from ``start`` up to ``end`` of an object, piece by piece."""
    made = formula()
    for at in range(start, end, made.PERIOD):
        yield made.expected(key, at, min(made.PERIOD, end - at))


@functools.lru_cache(maxsize=65536)
def _continued(crc: int, key: str, start: int, end: int) -> int:
    for piece in pieces(key, start, end):
        crc = zlib.crc32(piece, crc)
    return crc
