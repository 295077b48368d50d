"""The folder of a record: plan.json, environment.json, samples.jsonl.gz, summary.json.

Owns reading and writing these files whole, and their schemas. Refuses a file of another schema
and a folder that holds a record already.
"""

from __future__ import annotations

import datetime
import functools
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import fastjsonschema

from .. import places
from . import journal

SCHEMA = 1
SCHEMAS = places.REPOSITORY / "lab" / "schema"
PLAN, ENVIRONMENT, SUMMARY = "plan.json", "environment.json", "summary.json"
SAMPLES = "samples.jsonl.gz"


class BadRecord(Exception):
    """A folder or file is no record that this version reads; the text says which, and why."""


@functools.cache
def checker(kind: str) -> Callable[[dict], dict]:
    """Checks a ``plan``, ``environment``, ``line`` or ``summary`` against its schema."""
    path = SCHEMAS / f"{kind}.v{SCHEMA}.json"
    return fastjsonschema.compile(json.loads(path.read_text()))


def check(kind: str, value: object, where: str) -> None:
    """Raises BadRecord with the place in the value that its schema does not allow."""
    version = value.get("schema", SCHEMA) if isinstance(value, dict) else SCHEMA
    if version != SCHEMA:
        raise BadRecord(f"{where} is of schema {version!r}; this version of the lab reads {SCHEMA}")
    try:
        checker(kind)(value)
    except fastjsonschema.JsonSchemaValueException as error:
        raise BadRecord(f"{where} is no {kind} of schema {SCHEMA}: {error.message}") from None


class Record:
    """A record on disk. Its parts are read when they are asked for."""

    def __init__(self, folder: Path):
        self.folder = folder

    @classmethod
    def create(cls, folder: Path, plan: dict, environment: dict) -> Record:
        """Makes the folder. Raises BadRecord when it holds a record, or can't be written."""
        if (folder / PLAN).exists():
            raise BadRecord(f"{folder} holds a record: name another folder, or --resume it")
        record = cls(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            record._write(ENVIRONMENT, "environment", environment)
            record._write(PLAN, "plan", plan)
        except OSError as error:
            raise BadRecord(f"{folder} can't be written: {error.strerror}") from None
        return record

    @classmethod
    def open(cls, folder: Path) -> Record:
        """Raises BadRecord for anything but a record's folder."""
        if not (folder / PLAN).is_file():
            raise BadRecord(f"{folder} holds no record: there is no {PLAN} in it")
        return cls(folder)

    @functools.cached_property
    def plan(self) -> dict:
        return self._read(PLAN, "plan")

    @functools.cached_property
    def environment(self) -> dict:
        return self._read(ENVIRONMENT, "environment")

    @property
    def summary(self) -> dict | None:
        """The summary as it stands, or None where the session left none."""
        return self._read(SUMMARY, "summary") if (self.folder / SUMMARY).exists() else None

    @property
    def samples(self) -> Path:
        return self.folder / SAMPLES

    def lines(self, checked: bool = False) -> Iterator[dict]:
        """Rounds and events in the order in which they happened; ``checked`` looks at each with
        its schema. Raises BadRecord."""
        if not self.samples.exists():
            return
        try:
            for number, line in enumerate(journal.lines(self.samples), 1):
                if checked:
                    check("line", line, f"{self.samples}, line {number}")
                yield line
        except (OSError, ValueError) as error:
            raise BadRecord(str(error)) from None

    def write_summary(self, summary: dict) -> None:
        """Raises OSError."""
        self._write(SUMMARY, "summary", summary)

    def _read(self, name: str, kind: str) -> dict:
        path = self.folder / name
        try:
            value = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise BadRecord(f"{path}: {error}") from None
        check(kind, value, str(path))
        return value

    def _write(self, name: str, kind: str, value: dict) -> None:
        value = from_root(value)
        check(kind, value, name)
        path = self.folder / name
        beside = path.with_suffix(".partial")
        try:
            beside.write_text(_text(value))
            os.replace(beside, path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise


def _text(value: dict) -> str:
    """Indented for reading, but for the work of plans: 10,000 items are one line."""
    works = {f"work of {n}": cell["plan"]["work"] for n, cell in _planned(value)}
    for n, cell in _planned(value):
        cell["plan"]["work"] = f"work of {n}"
    text = json.dumps(value, indent=1, ensure_ascii=False)
    for name, work in works.items():
        compact = json.dumps(work, ensure_ascii=False, separators=(",", ":"))
        text = text.replace(f'"work": "{name}"', f'"work": {compact}', 1)
    return text + "\n"


def _planned(value: dict) -> list[tuple[int, dict]]:
    return [(n, cell) for n, cell in enumerate(value.get("cells", [])) if "plan" in cell]


def from_root(value: object) -> object:
    """Where this checkout lies says nothing to whoever reads the record elsewhere."""
    match value:
        case dict():
            return {key: from_root(item) for key, item in value.items()}
        case list() | tuple():
            return [from_root(item) for item in value]
        case str():
            named = value.replace(f"{places.target()}/", "target/")
            return named.replace(f"{places.REPOSITORY}/", "")
        case _:
            return value


def folder_name(machine: dict, now: datetime.datetime) -> str:
    """``<date>-<machine>``: the time in UTC, then processor and cores."""
    model = re.sub(r"\(.*?\)|@.*|\b(CPU|Processor|with)\b", " ", str(machine.get("cpu") or "cpu"))
    words = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:32].strip("-")
    return f"{now:%Y%m%dT%H%M%SZ}-{words or 'cpu'}-{machine.get('cores') or 0}c"


def latest(records: Path) -> Path:
    """The newest record's folder. Raises BadRecord when there is none."""
    found = sorted(path.parent for path in records.glob(f"*/{PLAN}"))
    if not found:
        raise BadRecord(f"{records} holds no record yet: make one with `wirespeed-lab run quick`")
    return found[-1]
