"""Where agents listen, as a person writes it."""

from __future__ import annotations

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Address:
    """Where an agent listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str, lowest_port: int = 1) -> list[Address]:
    """The agents of `HOST:PORT,HOST:PORT`. Raises ValueError for anything else, and for one that is
    named twice: it would be counted twice."""
    found = []
    for part in text.split(","):
        match = re.fullmatch(
            r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([^:\[\]\s]+)):([0-9]{1,5})", part.strip()
        )
        if not match or not lowest_port <= int(match[3]) < 65536:
            raise ValueError(f"{part!r} is no HOST:PORT")
        found.append(Address(match[1] or match[2], int(match[3])))
    twice = {str(one) for one in found if found.count(one) > 1}
    if twice:
        raise ValueError(f"named more than once: {', '.join(sorted(twice))}")
    return found
