"""A host's part in a round, and what all parts come to.

Pure functions of what was told: what is computed here as a round ends is computed again when its
record is verified.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from . import merging


@dataclasses.dataclass(frozen=True)
class HostRound:
    """One host's part in a round: its samples with times of the coordinator's clock, and what the
    lab holds against them."""

    name: str
    start_ns: int
    end_ns: int
    uncertainty_ns: int
    samples: Sequence[dict]
    effective: Mapping[str, object]
    faults: Sequence[str]

    def host(self) -> merging.Host:
        """What is merged of it. Operations that failed moved nothing. Raises ValueError for a
        sample that ends before it starts."""
        operations = tuple(
            merging.Operation(
                sample["start_ns"], sample["end_ns"], sample["bytes"], sample["count"]
            )
            for sample in self.samples
            if sample["error"] is None
        )
        return merging.Host(self.name, self.start_ns, self.end_ns, operations, self.uncertainty_ns)


def merged(parts: Sequence[HostRound], segment_ns: int) -> dict:
    """What a record says of all parts together: ``merged``, and where there is nothing to merge
    also the ``reason``."""
    try:
        together = merging.merge([part.host() for part in parts], segment_ns)
    except (merging.NoOverlap, ValueError) as error:
        return {"merged": None, "reason": str(error)}
    return {"merged": together.as_json()}


def faults(parts: Sequence[HostRound]) -> list[str]:
    """What the lab holds against the round, each with its host."""
    return [f"{part.name}: {fault}" for part in parts for fault in part.faults]
