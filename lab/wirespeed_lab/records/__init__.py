"""Records: what a session was to do, where it ran, every sample, and what they say.

Owns the folder of a record and its four files, their schemas (lab/schema), the summary's
arithmetic and the comparison of records. Refuses to measure: everything here is computed from
files alone, so that a report can be made again by whoever has the record.
"""

from .journal import CutOff, Journal
from .record import BadRecord, Record, folder_name, from_root, latest
from .summary import summarise
from .verifying import differences, verify

__all__ = [
    "BadRecord",
    "CutOff",
    "Journal",
    "Record",
    "differences",
    "folder_name",
    "from_root",
    "latest",
    "summarise",
    "verify",
]
