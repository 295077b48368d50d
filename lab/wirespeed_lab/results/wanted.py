"""Which measurement answers for a table: a workload at a point of its sweep, on a modelled store
or none."""

from __future__ import annotations

import dataclasses

from ..sessions.cells import size


@dataclasses.dataclass(frozen=True)
class Wanted:
    """A workload of the lab, with the embedded server and without TLS unless the workload has it.
    ``part_size`` and ``size`` are bytes before they are scaled; ``best`` takes of each client the
    best point of the sweep."""

    workload: str
    preset: str | None = None
    concurrency: int | None = None
    part_size: int | None = None
    size: int | None = None
    best: bool = False

    def takes(self, settings: dict, cell: dict) -> bool:
        """Whether a cell of a record's plan, measured with these settings, is one of these."""
        plan = cell["plan"]
        return (
            plan["workload"] == self.workload
            and settings["server"] == "origin"
            and settings["preset"] == self.preset
            and self.concurrency in (None, plan["concurrency"])
            and self.part_size in (None, plan["part_size"])
            and (self.size is None or f"size={size(self.size)}" in cell["id"].split())
        )

    def __str__(self) -> str:
        words = [self.workload]
        words += [f"concurrency={self.concurrency}"] if self.concurrency else []
        words += [f"part={size(self.part_size)}"] if self.part_size else []
        words += [f"size={size(self.size)}"] if self.size else []
        return " ".join(words) + (f" on {self.preset}" if self.preset else "")
