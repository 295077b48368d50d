"""What must be the same on all hosts before their numbers may be added up."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from .. import places

_PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def fingerprint() -> str:
    """A digest of the lab's own modules and of its list of clients, as 16 hex digits: two that are
    equal measure, judge and name clients alike. A version number would not see a local change."""
    digest = hashlib.sha256()
    files = sorted(_PACKAGE.rglob("*.py"))
    files += [file for file in (places.REPOSITORY / "lab" / "clients.toml",) if file.is_file()]
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def differences(named: dict[str, dict]) -> list[str]:
    """Where the descriptions that drivers of one client gave on several hosts differ, each a
    sentence; none when all are alike."""
    found = []
    first, expected = next(iter(named.items()))
    for name, said in named.items():
        for field in ("name", "version", "components"):
            if said.get(field) != expected.get(field):
                here, there = said.get(field), expected.get(field)
                found.append(f"{field} is {here!r} on {name} and {there!r} on {first}")
    return found
