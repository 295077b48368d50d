"""The lines of the protocol: what each must hold, checked field by field. Refuses what is not a
message, and says why; does not judge whether a message is true."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

PROTOCOL = 1
#: Exit codes of a driver that cannot do a plan, and of one that refuses it.
CANNOT, REFUSES = 77, 65
#: Nanoseconds since the machine's start, bytes and items all stay below this.
_MOST = 1 << 63
_DIGEST = re.compile(r"[0-9a-f]{8}")


class NoMessage(ValueError):
    """A line that is no message of the protocol; the text says what is wrong with it."""


@dataclasses.dataclass(frozen=True)
class Description:
    """What a driver says of itself. ``settings`` are the fields of a plan that it obeys."""

    protocol: int
    name: str
    client: str
    version: str
    language: str
    components: dict[str, str]
    operations: tuple[str, ...]
    sinks: tuple[str, ...]
    sources: tuple[str, ...]
    settings: tuple[str, ...]
    tls: bool

    def as_json(self) -> dict[str, Any]:
        return {"type": "describe", **dataclasses.asdict(self)}


def message(line: bytes, *types: str) -> dict[str, Any]:
    """The object on a line, which must be of one of these types. Raises NoMessage."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise NoMessage(f"is not JSON: {shown(line)}") from None
    if not isinstance(said, dict) or said.get("type") not in types:
        raise NoMessage(f"is no {' or '.join(types)} message: {shown(line)}")
    return said


def described(said: dict[str, Any]) -> Description:
    """Raises NoMessage."""
    known = {field.name for field in dataclasses.fields(Description)}
    values: dict[str, Any] = {}
    for name in known:
        if name not in said:
            raise NoMessage(f"says nothing of {name!r}")
        values[name] = said[name]
    if values["protocol"] != PROTOCOL:
        raise NoMessage(f"speaks protocol {values['protocol']!r}, and this lab speaks {PROTOCOL}")
    for name in ("name", "client", "version", "language"):
        if not isinstance(values[name], str) or not values[name]:
            raise NoMessage(f"has no text for {name!r}: {values[name]!r}")
    for name in ("operations", "sinks", "sources", "settings"):
        if not _texts(values[name]):
            raise NoMessage(f"has no list of texts for {name!r}: {values[name]!r}")
        values[name] = tuple(values[name])
    components = values["components"]
    if not isinstance(components, dict) or not _texts(list(components.values())):
        raise NoMessage(f"has no table of versions for 'components': {components!r}")
    if not isinstance(values["tls"], bool):
        raise NoMessage(f"has neither true nor false for 'tls': {values['tls']!r}")
    return Description(**values)


def sample(said: dict[str, Any]) -> dict[str, Any]:
    """The sample, with ``count`` 1 and a null ``first_ns``, ``worker`` and ``error`` where it
    leaves them out. Raises NoMessage."""
    for name in ("n", "start_ns", "end_ns", "bytes"):
        if not _whole(said.get(name)):
            raise NoMessage(f"has no whole number for {name!r}: {said.get(name)!r}")
    for name in ("worker", "first_ns", "keys"):
        if said.get(name) is not None and not _whole(said[name]):
            raise NoMessage(f"has neither a whole number nor null for {name!r}: {said[name]!r}")
    count = said.setdefault("count", 1)
    if not _whole(count) or not count:
        raise NoMessage(f"has no whole number of at least 1 for 'count': {count!r}")
    for name in ("worker", "first_ns", "error"):
        said.setdefault(name, None)
    if said["error"] is not None and (not isinstance(said["error"], str) or not said["error"]):
        raise NoMessage(f"has neither text nor null for 'error': {said['error']!r}")
    digest = said.get("digest")
    if digest is not None and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
        raise NoMessage(f"has no 8 lower-case hex digits for 'digest': {digest!r}")
    return said


def of_round(said: dict[str, Any], number: int) -> None:
    """Raises NoMessage."""
    if said.get("round") != number:
        raise NoMessage(f"is of round {said.get('round')!r}, and this is round {number}")


def done(said: dict[str, Any], number: int) -> dict[str, Any]:
    """Raises NoMessage."""
    of_round(said, number)
    for name in ("start_ns", "end_ns"):
        if not _whole(said.get(name)):
            raise NoMessage(f"has no whole number for {name!r}: {said.get(name)!r}")
    effective = said.get("effective")
    if not isinstance(effective, dict):
        raise NoMessage(f"has no table for 'effective': {effective!r}")
    for name in ("concurrency", "part_size"):
        value = effective.get(name)
        if value is not None and (not _whole(value) or not value):
            raise NoMessage(f"has neither a number above 0 nor null for {name!r}: {value!r}")
    if effective.get("checksums") not in (None, True, False):
        raise NoMessage(f"has no true, false or null for 'checksums': {effective['checksums']!r}")
    return said


def shown(line: bytes) -> str:
    """The beginning of a line, for an error."""
    text = line[:120].decode(errors="replace")
    return repr(text) + (f" and {len(line) - 120} bytes more" if len(line) > 120 else "")


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one for one in value)
