"""Sessions: every client takes its turn at every block of every cell, and all of it is kept.

Owns the order of rounds, which of them are repeated, what happens when a client, the server, the
disk or the person at the keyboard ends something early, and what the terminal shows meanwhile.
Refuses to judge speed: that is computed from the record afterwards.
"""

from .cells import Cell, Sweep, SweepRefused, compile_cells
from .contestant import Contestant, Site
from .session import Outcome, Session, Stopped
from .settings import Entry, Settings
from .view import LiveView, PlainView, View

__all__ = [
    "Cell",
    "Contestant",
    "Entry",
    "LiveView",
    "Outcome",
    "PlainView",
    "Session",
    "Settings",
    "Site",
    "Stopped",
    "Sweep",
    "SweepRefused",
    "View",
    "compile_cells",
]
