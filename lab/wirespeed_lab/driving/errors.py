"""What can go wrong with a driver. Each text says which driver, what happened and what it wrote on
standard error last."""

from __future__ import annotations


class DrivingError(Exception):
    """A driver did not do what it was asked."""


class Skipped(DrivingError):
    """The driver says that it cannot do this plan; nothing is broken."""


class BadPlan(DrivingError):
    """The driver refuses the plan: malformed, or of a newer version than it knows."""


class DriverFailed(DrivingError):
    """The driver died, hung, flooded, or said what is not the protocol."""
