"""Workloads and the explicit plans that they are compiled to: what is moved, never by whom or
how fast."""

from __future__ import annotations

from .fields import BadInput
from .library import FOLDER, load, names
from .plan import VERSION, BadPlanFile, Item, Plan
from .series import Series
from .workload import BadWorkload, Workload

__all__ = [
    "FOLDER",
    "VERSION",
    "BadInput",
    "BadPlanFile",
    "BadWorkload",
    "Item",
    "Plan",
    "Series",
    "Workload",
    "load",
    "names",
]
