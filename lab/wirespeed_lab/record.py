"""Records: every sample, the machine and the exact commands, as one JSON file."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

from . import places

SCHEMA = 1


class BadRecord(Exception):
    """A file is not a record that this version reads."""


def new(kind: str, machine: dict, versions: dict, command: list[str]) -> dict:
    return {
        "schema": SCHEMA,
        "kind": kind,
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "machine": machine,
        "versions": versions,
        "rows": [],
    }


def write(record: dict, path: Path) -> None:
    """Writes the record whole or not at all; what is in the repository is named from its root."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(_from_root(record), indent=1, ensure_ascii=False) + "\n")
    os.replace(beside, path)


def _from_root(value: object) -> object:
    """Where this checkout lies says nothing to whoever reads the record elsewhere."""
    match value:
        case dict():
            return {key: _from_root(item) for key, item in value.items()}
        case list() | tuple():
            return [_from_root(item) for item in value]
        case str():
            named = value.replace(f"{places.target()}/", "target/")
            return named.replace(f"{places.REPOSITORY}/", "")
        case _:
            return value


def read(path: Path) -> dict:
    """Raises BadRecord, with the path and the reason, for anything but a record."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadRecord(f"{path}: {error}") from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise BadRecord(f"{path}: not a record of schema {SCHEMA}")
    return record


def together(records: list[dict]) -> dict:
    """The records as one: the machine of the last, and the last of each row."""
    rows = {row["id"]: row for record in records for row in record["rows"]}
    return {**records[-1], "rows": list(rows.values())}
