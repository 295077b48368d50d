"""The record of a measurement on several hosts: one file of events, a line of JSON each.

Owns the file's name, its schema (lab/schema/hosts.v1.json) and the words for one that is damaged.
A line is kept as soon as its event was told, so that whatever ends a measurement leaves the lines
before it.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import fastjsonschema

from ..records import BadRecord, Journal, journal
from ..records.record import SCHEMAS

#: Of the events.
VERSION = 1
NAMES = "hosts-*.jsonl.gz"


class CutShort(BadRecord):
    """The file ends within a line; those before it can be read."""


def within(path: Path) -> list[Path]:
    """The records that a folder holds, by age, or the one that a file is; none where it is neither
    such a folder nor such a file."""
    if path.is_dir():
        return sorted(path.glob(NAMES))
    return [path] if path.is_file() and path.match(NAMES) else []


@contextlib.contextmanager
def written(folder: Path, now: datetime.datetime) -> Iterator[Callable[[dict], None]]:
    """What takes the events of a new record in this folder; without any there is no record. Raises
    BadRecord when there can be none, and CutOff, also in taking one, when the disk is full."""
    path, made = folder / NAMES.replace("*", f"{now:%Y%m%dT%H%M%SZ}"), not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=False)
    except FileExistsError:
        raise BadRecord(f"{path} is there already: name another folder") from None
    except OSError as error:
        raise BadRecord(f"{folder} can't be written: {error.strerror}") from None
    try:
        with Journal(path) as lines:
            yield lines.append
    finally:
        if path.stat().st_size:
            journal.seal(path)
        else:
            path.unlink()
            if made:
                folder.rmdir()


def lines(path: Path) -> Iterator[dict]:
    """The events in the order in which they were told, each checked with its schema. Raises
    BadRecord, and CutShort after the last whole line where something stands behind it."""
    number = 0
    try:
        for number, line in enumerate(journal.lines(path), 1):
            if number == 1:
                _begins(path, line)
            check(line, f"{path}, line {number}")
            yield line
        cut = journal.cut_off(path)
    except (OSError, ValueError) as error:
        raise BadRecord(str(error)) from None
    if cut:
        raise CutShort(f"{path} is cut off after line {number}: what came then is lost")
    if number == 0:
        raise BadRecord(f"{path} holds no line: nothing was told before the measurement ended")


def check(event: dict, where: str) -> None:
    """Raises BadRecord with the place in the event that its schema does not allow."""
    kind = event.get("type")
    checker = _checkers().get(kind) if isinstance(kind, str) else None
    if checker is None:
        raise BadRecord(f"{where} is of type {kind!r}, which no record of hosts has")
    try:
        checker(event)
    except fastjsonschema.JsonSchemaValueException as error:
        raise BadRecord(f"{where} is no {kind} of version {VERSION}: {error.message}") from None


def _begins(path: Path, line: dict) -> None:
    if line.get("type") != "hosts":
        raise BadRecord(f"{path} does not begin with a line of type 'hosts': its start is missing")
    if line.get("version") != VERSION:
        raise BadRecord(
            f"{path} is of version {line.get('version')!r}; this version of the lab reads {VERSION}"
        )


@functools.cache
def _checkers() -> dict[str, Callable[[dict], dict]]:
    """By type: one of its own for each names the place that is wrong, where the schema as a whole
    could only say that no alternative fits."""
    schema = json.loads((SCHEMAS / f"hosts.v{VERSION}.json").read_text())
    return {
        line["properties"]["type"]["const"]: fastjsonschema.compile(
            {**line, "definitions": schema["definitions"]}
        )
        for line in schema["oneOf"]
    }
