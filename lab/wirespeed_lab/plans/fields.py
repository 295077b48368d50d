"""Reads the fields of a table that a person or a program wrote. Every error names the file, the
field and what was expected; a field that nobody asked for is an error too."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

UNITS = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
#: More bytes than any object has (S3: 50 TB), so that sums stay small enough to count with.
LARGEST = 50 * 10**12
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT]i?B|B)")


class BadInput(ValueError):
    """A workload or plan that cannot be used; the text names the file and the field."""


def bytes_of(value: object) -> int:
    """Bytes of a whole number, or of text such as ``"8 MiB"`` or ``"3 GB"``. Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    else:
        found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        if not found:
            raise ValueError('a size, such as 1048576 or "8 MiB"')
        exact = float(found[1]) * UNITS[found[2]]
        size = round(exact)
        if size != exact:
            raise ValueError("a size of whole bytes")
    if not 0 <= size <= LARGEST:
        raise ValueError(f"a size from 0 to {LARGEST} bytes")
    return size


class Fields:
    """One table, read field by field. ``where`` is how errors name it; ``error`` is what is
    raised."""

    def __init__(self, table: object, where: str, error: type[BadInput] = BadInput):
        self.where = where
        self._error = error
        if not isinstance(table, dict):
            raise error(f"{where}: is {_shown(table)}, and must be a table")
        self._left: dict[str, Any] = dict(table)

    def bad(self, name: str, expected: str, value: object) -> BadInput:
        return self._error(f"{self.where}: {name} is {_shown(value)}, and must be {expected}")

    def has(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str, read: Callable[[Any], T], *default: T) -> T:
        """The field, read by a function that raises ValueError with what it expected."""
        if name not in self._left:
            if default:
                return default[0]
            raise self._error(f"{self.where}: {name} is missing")
        value = self._left.pop(name)
        try:
            return read(value)
        except BadInput:
            raise  # it names its field already
        except ValueError as error:
            raise self.bad(name, str(error), value) from None

    def table(self, name: str) -> Fields:
        return Fields(self._left.pop(name), f"{self.where}: [{name}]", self._error)

    def done(self, known: Iterable[str] = ()) -> None:
        """Refuses what was not read, and says what is nearest to it in ``known``."""
        for name in self._left:
            near = difflib.get_close_matches(name, list(known), 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise self._error(f"{self.where}: there is no field {name!r}{hint}")


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError("text of one line")
    return value


def key(value: Any) -> str:
    if not isinstance(value, str) or not value or len(value.encode(errors="replace")) > 1024:
        raise ValueError("a key of 1 to 1,024 bytes")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("a key that UTF-8 can hold")
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def one_of(*choices: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return value

    return read


def whole(least: int, most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return value

    return read


def number(least: float, most: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or not math.isfinite(value) or not least <= value <= most:
            raise ValueError(f"a number from {least} to {most}")
        return float(value)

    return read


def size(value: Any) -> int:
    return bytes_of(value)


def some_bytes(value: Any) -> int:
    """A size that is not nothing."""
    found = bytes_of(value)
    if not found:
        raise ValueError("a size of at least one byte")
    return found


def several(read: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    """A list of different values, each read by ``read``."""

    def read_all(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list) or not value:
            raise ValueError("a list of at least one")
        found = tuple(read(one) for one in value)
        if len(set(found)) < len(found):
            raise ValueError("a list without repetition")
        return found

    return read_all


def optional(read: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else read(value)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
