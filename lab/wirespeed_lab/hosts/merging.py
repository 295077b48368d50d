"""What several hosts did together, from the samples of each.

Pure functions: no clock, no file. All times are nanoseconds of the coordinator's clock. Only
the span in which every host was running counts: what a host did while another had not begun, or
had ended, says nothing of both together. The span is drawn in at both ends by how well each clock
is known, so that all were truly running in it.

An operation that lies across an edge counts by the share of its time that lies inside, as if its
bytes came evenly. For a sample that covers a whole process (a wrapped command) this is the
mean of that process over its life, and no finer.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

#: The length of a segment in ns: the finest that throughput is said for.
SEGMENT_NS = 1_000_000_000
#: Below this share of the time from the first start to the last end, a merge carries a warning.
FAIR_SHARE = 0.5


class NoOverlap(Exception):
    """The hosts were never all running at once. The text says which came late."""


@dataclasses.dataclass(frozen=True)
class Operation:
    """One operation of one host: when, how many bytes, how many objects (more than one where a
    wrapped command did them). Raises ValueError when it ends before it starts."""

    start: int
    end: int
    bytes: int
    count: int = 1

    def __post_init__(self) -> None:
        if self.end < self.start or self.bytes < 0 or self.count < 0:
            raise ValueError(f"not an operation: {self}")


@dataclasses.dataclass(frozen=True)
class Host:
    """What one host did in a round. ``uncertainty`` is how well its clock is known."""

    name: str
    start: int
    end: int
    operations: tuple[Operation, ...]
    uncertainty: int = 0


@dataclasses.dataclass(frozen=True)
class Share:
    """What one host moved within the span."""

    name: str
    bytes: float
    operations: float
    #: Bytes of this host outside the span, which no figure holds.
    bytes_outside: float


@dataclasses.dataclass(frozen=True)
class Merged:
    """A round of all hosts together, over the span in which all were running."""

    start: int
    end: int
    shares: tuple[Share, ...]
    #: Bytes in each whole segment of the span, from its start.
    segments: tuple[float, ...]
    segment_ns: int
    warnings: tuple[str, ...]

    @property
    def seconds(self) -> float:
        return (self.end - self.start) / 1e9

    @property
    def bytes(self) -> float:
        return math.fsum(share.bytes for share in self.shares)

    @property
    def operations(self) -> float:
        return math.fsum(share.operations for share in self.shares)

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.seconds

    @property
    def operations_per_second(self) -> float:
        return self.operations / self.seconds

    def as_json(self) -> dict:
        """What a record says of it."""
        return {
            "start_ns": self.start,
            "end_ns": self.end,
            "seconds": self.seconds,
            "bytes": self.bytes,
            "operations": self.operations,
            "bytes_per_second": self.bytes_per_second,
            "operations_per_second": self.operations_per_second,
            "hosts": [dataclasses.asdict(share) for share in self.shares],
            "segment_ns": self.segment_ns,
            "segments": list(self.segments),
            "warnings": list(self.warnings),
        }


def span(hosts: Sequence[Host]) -> tuple[int, int]:
    """The time in which every host was running, whatever its clock's error. Raises NoOverlap."""
    if not hosts:
        raise NoOverlap("there is no host")
    last = max(hosts, key=lambda host: host.start + host.uncertainty)
    first = min(hosts, key=lambda host: host.end - host.uncertainty)
    start, end = last.start + last.uncertainty, first.end - first.uncertainty
    if start >= end:
        raise NoOverlap(
            f"{last.name} had not begun when {first.name} ended, as far as their clocks tell: "
            "give the round more work (--scale)"
        )
    return start, end


def merge(hosts: Sequence[Host], segment_ns: int = SEGMENT_NS) -> Merged:
    """What all hosts did in the time that they share. Raises NoOverlap, and ValueError for a
    segment of no length."""
    if segment_ns <= 0:
        raise ValueError(f"a segment of {segment_ns} ns")
    start, end = span(hosts)
    shares = []
    segments = [0.0] * ((end - start) // segment_ns)
    for host in hosts:
        parts = [_part(operation, start, end) for operation in host.operations]
        inside = math.fsum(o.bytes * part for o, part in zip(host.operations, parts, strict=True))
        operations = math.fsum(
            o.count * part for o, part in zip(host.operations, parts, strict=True)
        )
        outside = math.fsum(
            o.bytes * (1 - part) for o, part in zip(host.operations, parts, strict=True)
        )
        shares.append(Share(host.name, inside, operations, outside))
        for operation in host.operations:
            _spread(operation, start, segment_ns, segments)
    return Merged(
        start,
        end,
        tuple(shares),
        tuple(segments),
        segment_ns,
        _warnings(hosts, start, end),
    )


def _part(operation: Operation, start: int, end: int) -> float:
    """The share of an operation between two times; one of no length belongs to the span that
    begins with it."""
    length = operation.end - operation.start
    if length == 0:
        return float(start <= operation.start < end)
    inside = min(operation.end, end) - max(operation.start, start)
    return max(inside, 0) / length


def _spread(operation: Operation, start: int, segment_ns: int, segments: list[float]) -> None:
    first = max((operation.start - start) // segment_ns, 0)
    last = min((operation.end - start) // segment_ns, len(segments) - 1)
    for index in range(first, last + 1):
        begin = start + index * segment_ns
        segments[index] += operation.bytes * _part(operation, begin, begin + segment_ns)


def _warnings(hosts: Sequence[Host], start: int, end: int) -> tuple[str, ...]:
    whole = max(host.end for host in hosts) - min(host.start for host in hosts)
    if end - start < FAIR_SHARE * whole:
        return (
            f"all hosts ran together for {(end - start) / whole:.0%} of the time only: "
            "the rest of the round is in no figure",
        )
    return ()
