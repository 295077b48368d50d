"""lab/RESULTS.md: what the reports said that the lab repeats, beside what its records say.

Owns the files in lab/seeds (a report's figures, its claims, what was wrong in it), the choice of
the record that answers for a table, verdicts, and the page. Every figure of ours on the page is
computed from records when the page is written; text that quotes one names it by a placeholder.
Refuses to measure, and to rank what an interval does not separate.
"""

from .document import document
from .seeds import BadSeed, Seed, load
from .shelf import Shelf

__all__ = ["BadSeed", "Seed", "Shelf", "document", "load"]
