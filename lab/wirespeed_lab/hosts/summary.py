"""The summary of a measurement on several hosts, from its events alone.

Owns which rounds count and who is out. The events of a measurement that is running and the lines
of a record that is read go through the same code.
"""

from __future__ import annotations

import dataclasses

from .. import stats

#: Faults that the reason of a disqualification names; the event holds them all.
NAMED = 5


class Told:
    """What was told so far. ``header`` is the event that comes first, ``out`` the clients that no
    longer take part, each with the reason."""

    def __init__(self) -> None:
        self.header: dict = {}
        self.out: dict[str, str] = {}
        self._clients: dict[str, _Counted] = {}

    def take(self, event: dict) -> None:
        """The next event."""
        match event["type"]:
            case "hosts":
                self.header = event
            case "skip":
                self.out[event["client"]] = event["reason"]
            case "client":
                self._clients[event["client"]] = _Counted()
            case "round":
                self._round(event)
            case "disqualified":
                self.out[event["client"]] = "; ".join(event["faults"][:NAMED])

    def running(self) -> list[str]:
        """The clients that were started and are not out."""
        return [client for client in self._clients if client not in self.out]

    def summary(self) -> dict:
        """The event that comes last. A client without a counted round has no figure."""
        return {
            "type": "summary",
            "workload": self.header["plan"]["workload"],
            "hosts": list(self.header["hosts"]),
            "blocks": self.header["blocks"],
            "clients": {
                client: self._clients[client].as_json()
                for client in self.running()
                if self._clients[client].rates
            },
            "out": dict(self.out),
        }

    def _round(self, event: dict) -> None:
        merged = event["merged"]
        if merged is None:
            self.out[event["client"]] = event.get("reason", "its hosts can't be merged")
        elif event["block"] > 0:
            self._clients.setdefault(event["client"], _Counted()).take(merged)


@dataclasses.dataclass
class _Counted:
    """A client's counted rounds: block 0 warms up and is none."""

    rates: list[float] = dataclasses.field(default_factory=list)
    operations: list[float] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)

    def take(self, merged: dict) -> None:
        self.rates.append(merged["bytes_per_second"])
        self.operations.append(merged["operations_per_second"])
        self.seconds.append(merged["seconds"])
        self.warnings += [w for w in merged["warnings"] if w not in self.warnings]

    def as_json(self) -> dict:
        return {
            "bytes_per_second": _median(self.rates),
            "operations_per_second": _median(self.operations),
            "common_seconds": _median(self.seconds),
            "warnings": list(self.warnings),
        }


def _median(values: list[float]) -> dict:
    estimate = stats.median_estimate(values, confidence=stats.expanded(len(values)))
    return dataclasses.asdict(estimate)
