"""Shards, what comes of them, and the function that runs one: plain data and a pure function.

Owns what crosses between processes. A `Shard` is text (JSON) with what a scheduler wants to know
beside it; it pickles, holds no credentials, and can be kept in a file.
"""

from __future__ import annotations

import functools
import json
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import wirespeed
from wirespeed._wirespeed import (
    _merge_shards,  # pyright: ignore[reportPrivateUsage]
    _run_shard,  # pyright: ignore[reportPrivateUsage]
)


@dataclass(frozen=True)
class Shard:
    """One part of a job, to be run anywhere, in any order, as often as it takes.

    `number` counts from 0 to below `of`; `items` and `bytes` are what it was planned to have;
    `spec` is JSON, the same as a line of ``wirespeed plan``.
    """

    number: int
    of: int
    items: int
    bytes: int
    spec: str = field(repr=False)

    @classmethod
    def from_json(cls, spec: str) -> Shard:
        """The shard that a line of ``wirespeed plan`` is, or what `spec` was."""
        told: dict[str, Any] = json.loads(spec)
        return cls(told["shard"], told["shards"], told["items"], told["bytes"], spec.strip())


@dataclass(frozen=True)
class FailedItem:
    """One item that failed: what was to be done, to what, and why."""

    action: str
    source: str | None
    destination: str | None
    #: The kind of failure in one word: ``not_found``, ``denied``, ``io``, ``refused``, …
    kind: str
    message: str


@dataclass(frozen=True)
class ShardResult:
    """What came of one shard.

    `stopped` says what ended it early, `withheld` why a sync did not delete what it was to delete;
    `worker` is the host and process that ran it, `seconds` how long.
    """

    number: int
    of: int
    transferred: int
    bytes: int
    deleted: int
    unchanged: int
    skipped: int
    failed: int
    failures: tuple[FailedItem, ...]
    stopped: str | None
    withheld: str | None
    seconds: float
    worker: str
    #: The result as JSON, the same as ``wirespeed run-shard`` prints.
    json: str = field(repr=False)

    @classmethod
    def from_json(cls, text: str, worker: str = "") -> ShardResult:
        """The result that ``wirespeed run-shard`` printed."""
        told: dict[str, Any] = json.loads(text)
        return cls(
            number=told["shard"],
            of=told["shards"],
            transferred=told["transferred"],
            bytes=told["bytes"],
            deleted=told["deleted"],
            unchanged=told["unchanged"],
            skipped=told["skipped"],
            failed=told["failed"],
            failures=_failures(told),
            stopped=told["stopped"],
            withheld=told["withheld"],
            seconds=told["seconds"],
            worker=worker,
            json=text.strip(),
        )

    @property
    def ok(self) -> bool:
        """Whether all of it went well."""
        return self.failed == 0 and self.stopped is None and self.withheld is None


@dataclass(frozen=True)
class Report:
    """What came of a job's shards together; a shard that was run more than once counts once.

    `lost` are the shards that never came to an end, with the reason; `stopped` those that ended
    early, `withheld` those that did not delete what they were to delete. `seconds` is the shards'
    time added up.
    """

    shards: int
    transferred: int
    bytes: int
    deleted: int
    unchanged: int
    skipped: int
    failed: int
    failures: tuple[FailedItem, ...]
    stopped: dict[int, str]
    withheld: dict[int, str]
    lost: dict[int, str]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether every shard was done, and all of it went well."""
        return not (self.failed or self.stopped or self.withheld or self.lost)


@dataclass(frozen=True)
class Progress:
    """How far a job has come, told when a shard is done.

    `bytes` and `objects` are those of the shards that are done, as they were planned; `expected`
    and `expected_objects` those of all. The bars of `wirespeed.progress` take it too.
    """

    bytes: int
    expected: int
    objects: int
    expected_objects: int
    shards: int
    expected_shards: int
    #: Items that failed so far.
    failed: int


def run_shard(
    shard: Shard,
    *,
    client: wirespeed.Client | None = None,
    progress: Callable[[wirespeed.Progress], object] | None = None,
) -> ShardResult:
    """Does what a shard says, in this process, and waits for it.

    Run again, also after a run that was killed, it comes to the same end: objects and files appear
    whole or not at all, a sync transfers what is not there yet, and deletes within its own range
    alone.

    Args:
        shard: of `plan`.
        client: who speaks to the store. ``None`` makes one with the settings of the plan and the
            credentials of this machine, and keeps it for further shards.
        progress: called with a `wirespeed.Progress` about ten times a second.

    Raises:
        ConfigError: the spec makes no sense to this version, or here.
        TypeError: this is no shard.

    What fails while it runs stands in the result.
    """
    if client is None:
        settings: dict[str, str] = json.loads(shard.spec)["job"].get("settings", {})
        client = _client(tuple(sorted(settings.items())))
    worker = f"{socket.gethostname()}:{os.getpid()}"
    return ShardResult.from_json(_run_shard(client, shard.spec, progress), worker)


@functools.lru_cache(maxsize=8)
def _client(settings: tuple[tuple[str, str], ...]) -> wirespeed.Client:
    given: dict[str, Any] = dict(settings)
    return wirespeed.Client(**given)


def merge(results: Iterable[ShardResult], lost: dict[int, str] | None = None) -> Report:
    """One report of the results of a job's shards, in any order.

    Args:
        results: of a shard that is among them more than once the last counts.
        lost: why shards have no result, by their numbers, where that is known.
    """
    told: dict[str, Any] = json.loads(_merge_shards([result.json for result in results]))
    reasons = {number: "it was not run" for number in told["missing"]} | (lost or {})
    return Report(
        shards=max(told["shards"], len(reasons)),
        transferred=told["transferred"],
        bytes=told["bytes"],
        deleted=told["deleted"],
        unchanged=told["unchanged"],
        skipped=told["skipped"],
        failed=told["failed"],
        failures=_failures(told),
        stopped={int(number): why for number, why in told["stopped"].items()},
        withheld={int(number): why for number, why in told["withheld"].items()},
        lost=reasons,
        seconds=told["seconds"],
    )


def _failures(told: dict[str, Any]) -> tuple[FailedItem, ...]:
    return tuple(FailedItem(**failure) for failure in told["failures"])
