"""Which clients and records a command line means."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .. import places
from ..hosts import record as hosts_record
from ..records import Record, latest
from ..sessions import Entry, slowed

#: ID, ID#2, ID+10%, ID#2+10%.
NAME = re.compile(r"(?P<id>[^#+]+)(#\d+)?(\+(?P<percent>\d+(\.\d+)?)%)?")


class Refused(ValueError):
    """Something was asked for that is not there; the text says what is."""


def entries(
    asked: str | None, registry: Mapping[str, Any]
) -> tuple[list[Entry], list[dict[str, str]]]:
    """The clients that take part, and those that were asked for and can't, each with the reason.
    Raises Refused for one that nobody knows, and when none is left."""
    names = [name.strip() for name in asked.split(",")] if asked else list(registry)
    found, absent = [], []
    for name in dict.fromkeys(filter(None, names)):
        client = client_of(name, registry)
        if reason := client.missing():
            absent.append({"client": name, "reason": reason})
        else:
            found.append(Entry(name, client))
    if not found:
        why = "; ".join(f"{item['client']}: {item['reason']}" for item in absent[:3])
        raise Refused(f"no client can be measured. {why}")
    return found, absent


def client_of(name: str, registry: Mapping[str, Any]) -> Any:
    """The client of ``ID``, ``ID#2`` (once more) or ``ID+10%`` (made dearer by so much). Raises
    Refused."""
    asked = NAME.fullmatch(name)
    client = registry.get(asked["id"]) if asked else None
    if client is None:
        raise Refused(f"there is no client {name!r}{_nearest(name, registry)}")
    return Slowed(client, float(asked["percent"])) if asked["percent"] else client


class Slowed:
    """A client of the registry that spends so many percent more CPU time than it needs."""

    def __init__(self, client: Any, percent: float):
        self._client = client
        self.command = [sys.executable, slowed.__file__, f"{percent:g}", *client.command]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def record_at(path: Path | None) -> Record:
    """The record in a folder, or of that name under lab/records; the newest where none is named.
    Raises BadRecord."""
    if path is None:
        return Record.open(latest(places.RECORDS))
    if hosts_at(path):
        raise Refused(f"{path} is a record of several hosts: `show` and `verify` read it")
    return Record.open(_placed(path))


def hosts_at(path: Path | None) -> list[Path]:
    """The records of several hosts that are there, or below lab/records by that name."""
    return hosts_record.within(_placed(path)) if path else []


def _placed(path: Path) -> Path:
    under = places.RECORDS / path
    return under if not path.exists() and under.exists() else path


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 3)
    if close:
        return f": did you mean {' or '.join(close)}?"
    return "; `wirespeed-lab list clients` shows them"
