"""What every store can do for a session, whoever serves it."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..plans import Plan


class StoreFailed(Exception):
    """A store did not start, cannot hold what a plan needs, or must not be written to; the text
    says what to try."""


class Store(abc.ABC):
    """A store that is running. A context manager: it is stopped, and what it made is removed,
    when left. ``endpoint``, ``bucket`` and ``ca_file`` hold for the plan last prepared."""

    #: How `open_store` was asked for it.
    kind: str
    region: str
    #: The process that serves, for measuring it from outside; None where it is not the lab's.
    pid: int | None = None
    #: A PEM file of what drivers are to trust, where TLS is spoken with a certificate of the lab's.
    ca_file: Path | None = None

    @property
    @abc.abstractmethod
    def endpoint(self) -> str:
        """Its URL, without a bucket."""

    @property
    @abc.abstractmethod
    def bucket(self) -> str:
        """The bucket that the plan last prepared reads or writes."""

    @property
    @abc.abstractmethod
    def credentials(self) -> Mapping[str, str]:
        """Environment variables for drivers: keys and region."""

    @abc.abstractmethod
    def prepare(self, plan: Plan) -> None:
        """Makes sure that it holds what the plan reads, or has room for what it writes. What is
        there already from an earlier plan is not written again. Raises StoreFailed."""

    @abc.abstractmethod
    def forget_uploads(self, plan: Plan) -> None:
        """Deletes what the plan's puts may have left, so that what is found afterwards is new."""

    @abc.abstractmethod
    def check_uploads(self, plan: Plan, most: int = 5) -> list[str]:
        """Reads back what the plan's puts wrote: at most ``most`` complaints about objects that
        are missing or wrong."""

    def counts(self) -> dict[str, int]:
        """What the server itself counted. Names that end in ``_peak`` are the highest since the
        last call, ``connections_open`` and ``requests_in_flight`` are of now, all others only
        ever grow. Nothing where a server does not say."""
        return {}

    def renew(self) -> None:
        """Gives back what rounds use up of a model, so that each begins as the first did. Raises
        StoreFailed."""
        return

    def hold_back(self, in_flight: int, bytes: int = 0) -> None:
        """Holds the next answers back for long enough that a client that keeps so many requests
        in flight, of so many bytes each, has sent them; none any more where that is 0. A server
        that is not ours does nothing of it. Raises StoreFailed."""
        return

    def cpu_seconds(self) -> float | None:
        """CPU time that the server has used so far; None where its process is not the lab's."""
        return None

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """What a record says of it."""

    @abc.abstractmethod
    def close(self) -> None:
        """Stops it and removes what it made."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
