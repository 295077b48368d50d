"""Whether a driver keeps the protocol: small plans that every driver must do, refuse or survive,
against the embedded server. Judges drivers, never how fast they are.

In a test: ``assert conform(command, env).failures == []``.
"""

from __future__ import annotations

from .cases import CASES, Subject
from .report import Report, conform

__all__ = ["CASES", "Report", "Subject", "conform"]
