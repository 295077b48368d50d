"""The stores that clients are measured against: started, filled, counted, stopped.

`open_store` gives one by name. Each fills itself with what a plan reads, in a bucket of its own;
a bucket that somebody else made is written to only where the caller names it. Knows nothing of
clients and of time.
"""

from __future__ import annotations

from .opening import KINDS, open_store
from .preset import BadPreset, Preset, load_preset, preset_names
from .store import Store, StoreFailed

__all__ = [
    "KINDS",
    "BadPreset",
    "Preset",
    "Store",
    "StoreFailed",
    "load_preset",
    "open_store",
    "preset_names",
]
