"""The clients that are compared: which there are, how their drivers are called, what is missing
for them and how that is made. Knows nothing of what a driver says or is asked to do."""

from __future__ import annotations

from .making import CannotBuild, Outcome, setup
from .registry import BadRegistry, Build, Client, registry

__all__ = ["BadRegistry", "Build", "CannotBuild", "Client", "Outcome", "registry", "setup"]
