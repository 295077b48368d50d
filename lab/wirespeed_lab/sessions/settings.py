"""What a session is told once and keeps for good, as plan.json has it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..measuring import Cores

BLOCKS = 10
REPEATS = 1


@dataclasses.dataclass(frozen=True)
class Settings:
    """``blocks`` rounds of every client a cell, each repeated at most ``repeats`` times when the
    machine was disturbed. ``folder`` is where file sinks and sources lie; no record says it."""

    cores: Cores
    server: str = "origin"
    preset: str | None = None
    tls: bool = False
    write_to: str | None = None
    blocks: int = BLOCKS
    repeats: int = REPEATS
    seed: int = 1
    folder: Path | None = None

    def as_json(self) -> dict:
        """The part ``settings`` of a plan."""
        return {
            "server": self.server,
            "preset": self.preset,
            "tls": self.tls,
            "write_to": self.write_to,
            "blocks": self.blocks,
            "repeats": self.repeats,
            "server_cores": list(self.cores.server),
            "client_cores": list(self.cores.client),
        }

    @classmethod
    def from_plan(cls, plan: dict, folder: Path | None = None) -> Settings:
        """What a plan of schema 1 says."""
        said = dict(plan["settings"])
        cores = Cores(tuple(said.pop("server_cores")), tuple(said.pop("client_cores")))
        return cls(cores=cores, seed=plan["seed"], folder=folder, **said)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A client under the name that it has in this session: that of the registry, with ``#2`` when
    it takes part twice."""

    name: str
    client: Any

    def as_json(self) -> dict:
        """What a plan says of it."""
        packages: Mapping[str, str] = self.client.packages()
        return {
            "client": self.name,
            "id": self.client.id,
            "title": self.client.title,
            "language": self.client.language,
            "family": self.client.family,
            "command": [str(word) for word in self.client.command],
            "packages": dict(packages),
        }
