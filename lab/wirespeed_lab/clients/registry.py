"""The clients that `clients.toml` names: how each one's driver is called, what is missing for it,
and which versions it stands on. Reads and refuses; makes nothing (see `making`)."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import environments, places

FILE = places.REPOSITORY / "lab" / "clients.toml"
HOW = 'make it with `make lab-setup CLIENTS="{}"`'


class BadRegistry(Exception):
    """`clients.toml` says something that cannot be; the text says where."""


def tools() -> Path:
    """Where what is installed for this repository lies."""
    chosen = os.environ.get("WIRESPEED_LAB_TOOLS")
    return Path(chosen) if chosen else places.REPOSITORY / ".tools"


@dataclasses.dataclass(frozen=True)
class Build:
    """How a kind of driver is made. ``run`` is empty where this package does it itself."""

    name: str
    what: str
    tools: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    folder: str = ""
    #: A program beside the driver that must be there afterwards.
    makes: str = ""
    #: A file in which the build leaves the reason why it cannot be had.
    refused: str = ""
    #: Variables of the environment that it must not see.
    without: tuple[str, ...] = ()
    #: The file that pins what it is made of.
    lock: str = ""


@dataclasses.dataclass(frozen=True)
class Client:
    """One row. ``environment`` is what its driver's process needs beside credentials."""

    id: str
    language: str
    title: str
    family: str
    build: Build | None = None
    #: Why it cannot be had at all, or "".
    unavailable: str = ""
    #: The folder of the drivers whose requirements pin its environment, or "".
    pinned_by: str = ""
    _command: tuple[str, ...] = ()
    _packages: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        """What ``describe`` or ``run`` is appended to. It may not be there yet: see `missing`."""
        return [self.filled(part) for part in self._command]

    @property
    def environment(self) -> dict[str, str]:
        """Python writes no caches where it imports from, so that rounds leave nothing behind."""
        return {"PYTHONDONTWRITEBYTECODE": "1"} if self.in_python else {}

    @property
    def in_python(self) -> bool:
        """Whether an interpreter runs the driver."""
        return bool({"{python}", "{self}"} & set(self._command))

    def filled(self, text: str) -> str:
        """A text of the file with its places filled in."""
        found = {
            "python": places.environments() / self.pinned_by / "bin" / "python",
            "self": sys.executable,
            "tools": tools(),
            "lab": tools() / "lab",
            "drivers": places.DRIVERS,
            "target": places.target(),
            "id": self.id,
        }
        return re.sub(r"\{(\w+)\}", lambda match: str(found[match[1]]), text)

    def missing(self) -> str | None:
        """Why it cannot be driven as things are, with what to do; None where it can."""
        if self.unavailable:
            return self.unavailable
        assert self.build is not None
        if self.build.refused and (refused := Path(self.filled(self.build.refused))).is_file():
            return refused.read_text().strip()
        if self.pinned_by:
            try:
                environments.python(self.pinned_by)
            except (places.MissingProgram, OSError) as error:
                return f"{str(error).removesuffix(environments.HOW).rstrip(': ')}: {self._how}"
        made = [self.filled(self.build.makes)] if self.build.makes else []
        for program in [*made, *(part for part in self.command if os.sep in part)]:
            if not Path(program).is_file():
                return f"{program} is missing: {self._how}"
        if not shutil.which(self.command[0]):
            return f"no {self.command[0]} on this machine"
        return None

    @property
    def _how(self) -> str:
        return HOW.format(self.id)

    def packages(self) -> dict[str, str]:
        """Exact versions by name: of its whole environment, or of what its lock file pins and
        ``packages`` names. Empty where only the driver itself can tell (see its ``describe``)."""
        if self.pinned_by:
            return dict(environments.packages(self.pinned_by))
        if self.build is None or not self.build.lock or not self._packages:
            return {}
        pinned = _locked(Path(self.filled(self.build.lock)))
        return {name: pinned[name] for name in self._packages if name in pinned}


def _locked(file: Path) -> dict[str, str]:
    """Versions by name, from a Cargo.lock or a go.mod. Of several in a Cargo.lock the newest."""
    if not file.is_file():
        return {}
    text = file.read_text()
    if file.name == "Cargo.lock":
        found = [
            (package["name"], package["version"]) for package in tomllib.loads(text)["package"]
        ]
        return dict(sorted(found, key=lambda pair: [int(n) for n in re.findall(r"\d+", pair[1])]))
    return dict(re.findall(r"^(?:require)?\s+(\S+\.\S+/\S+)\s+v(\S+)", text, re.MULTILINE))


@functools.cache
def registry() -> dict[str, Client]:
    """All clients by id, in the file's order. Raises BadRegistry."""
    return read(FILE)


def read(file: Path) -> dict[str, Client]:
    """The clients of a file of this kind. Raises BadRegistry."""
    try:
        said = tomllib.loads(file.read_text())
        builds = {name: _build(name, fields) for name, fields in said["builds"].items()}
        return {id: _client(id, fields, builds) for id, fields in said["clients"].items()}
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise BadRegistry(f"{file}: {error}") from None


def _build(name: str, fields: Mapping[str, Any]) -> Build:
    return Build(name, **{key: _frozen(value) for key, value in fields.items()})


def _client(id: str, fields: Mapping[str, Any], builds: Mapping[str, Build]) -> Client:
    known = {"language", "title", "family", "unavailable"}
    more = {"command", "environment", "build", "packages"}
    if unknown := fields.keys() - known - more:
        raise BadRegistry(f"clients.{id}: nothing is known of {', '.join(sorted(unknown))}")
    if ("unavailable" in fields) == ("command" in fields and "build" in fields):
        raise BadRegistry(f"clients.{id} has either a command and a build, or says why not")
    return Client(
        id,
        **{name: fields[name] for name in known & fields.keys()},
        build=builds[fields["build"]] if "build" in fields else None,
        pinned_by=fields.get("environment", ""),
        _command=tuple(fields.get("command", ())),
        _packages=tuple(fields.get("packages", ())),
    )


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
