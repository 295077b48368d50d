"""The cells of a session: every workload at every point of the sweep."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
UNITS = {"": 1, "b": 1, "k": KIB, "kib": KIB, "m": MIB, "mib": MIB, "g": GIB, "gib": GIB}
#: What a round may move, or list, where the scale is left to the lab.
FITTING, FITTING_KEYS = 512 * MIB, 100_000


class SweepRefused(ValueError):
    """A sweep that can't be read; the text says what it looks like."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """A plan and its name in the record."""

    id: str
    plan: Any

    def as_json(self) -> dict:
        """What a record's plan says of it."""
        return {"id": self.id, "plan": self.plan.as_json()}


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Values to go through; empty where the workload's own value stays. ``part`` is bytes."""

    concurrency: tuple[int, ...] = ()
    part: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> Sweep:
        """``concurrency=8/16/32,part=1MiB/8MiB``. Raises SweepRefused."""
        found: dict[str, tuple[int, ...]] = {}
        for part in filter(None, (text or "").split(",")):
            name, equals, values = part.partition("=")
            name = name.strip()
            if not equals or name not in ("concurrency", "part") or name in found:
                raise SweepRefused(
                    f"{part!r} is no axis of a sweep: write it as "
                    "concurrency=8/16/32,part=1MiB/8MiB"
                )
            numbers = tuple(_number(value, name == "part") for value in values.split("/"))
            found[name] = tuple(dict.fromkeys(numbers))
        return cls(**found)


def _number(text: str, unit: bool) -> int:
    text = text.strip().lower()
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    if not digits.isdecimal() or not int(digits) or text[len(digits) :] not in UNITS:
        raise SweepRefused(f"{text!r} is no value of a sweep: write 16, or 8MiB for a part")
    if text != digits and not unit:
        raise SweepRefused(f"{text!r}: a concurrency has no unit")
    return int(digits) * UNITS[text[len(digits) :]]


def compile_cells(
    workloads: Sequence[Any], scale: float | None, sweep: Sweep, tls: bool
) -> list[Cell]:
    """The workloads at every point of their own sweeps; an axis that ``sweep`` names takes the
    values given there. Without a scale each is shrunk until a round fits ``FITTING``. Raises what
    the plans raise for a workload that can't be compiled so."""
    cells = []
    for workload in workloads:
        factor = workload.scale_for(_fitting(workload)) if scale is None else scale
        for point in _points(workload.cells(), sweep):
            plan = workload.compile(factor, **point, **({"tls": True} if tls else {}))
            cells.append(Cell(" ".join([workload.name, *map(_word, point.items())]), plan))
    return cells


def _fitting(workload: Any) -> int:
    return FITTING_KEYS if workload.operation == "list" else FITTING


def _points(own: Sequence[dict[str, Any]], sweep: Sweep) -> list[dict[str, Any]]:
    axes = {"concurrency": sweep.concurrency, "part_size": sweep.part}
    asked = {name: values for name, values in axes.items() if values}
    kept = [{name: value for name, value in point.items() if name not in asked} for point in own]
    unique = [point for n, point in enumerate(kept) if point not in kept[:n]]
    return [
        {**point, **dict(zip(asked, values, strict=True))}
        for point in unique
        for values in itertools.product(*asked.values())
    ]


def _word(setting: tuple[str, Any]) -> str:
    name, value = setting
    match name:
        case "part_size":
            return f"part={size(value)}"
        case "size":
            return f"size={size(value)}"
        case "checksums":
            return f"checksums={'on' if value else 'off'}"
    return f"{name}={value}"


def size(count: int) -> str:
    """Bytes as a person writes them: 8 MiB as ``8MiB``."""
    for unit, worth in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if count % worth == 0:
            return f"{count // worth}{unit}"
    return f"{count}B"
