"""Drivers: programs that do a plan's work with one client and say what they did, started, timed
and judged from outside. The protocol is in lab/PROTOCOL.md."""

from __future__ import annotations

from . import digests
from .driver import Driver, Round, describe, refusal
from .errors import BadPlan, DriverFailed, DrivingError, Skipped
from .files import check_files, empty, write_sources
from .judge import judge
from .messages import Description

__all__ = [
    "BadPlan",
    "Description",
    "Driver",
    "DriverFailed",
    "DrivingError",
    "Round",
    "Skipped",
    "check_files",
    "describe",
    "digests",
    "empty",
    "judge",
    "refusal",
    "write_sources",
]
