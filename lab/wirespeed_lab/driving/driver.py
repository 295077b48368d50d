"""One driver, from its start to its end: a plan, then rounds. Every wait has a limit, everything
that is read has a bound, and whatever goes wrong is an error that says so."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from types import TracebackType
from typing import Any, NoReturn

from ..plans import Plan
from . import messages, process
from .errors import BadPlan, DriverFailed, DrivingError, Skipped
from .messages import Description, NoMessage
from .process import Ended, Process, Silent, TooLong

#: Seconds to describe itself, to get ready (uploads are made then), and for one round.
DESCRIBE_LIMIT, START_LIMIT, ROUND_LIMIT = 60.0, 120.0, 600.0
#: Bytes that one round may print: so many in all, and so many more for each item.
OUTPUT_LIMIT, OUTPUT_PER_ITEM = 16 << 20, 2048


@dataclasses.dataclass(frozen=True)
class Round:
    """What one round printed. Nanoseconds of CLOCK_MONOTONIC, taken by the lab: ``go_ns`` before
    the word was given, ``first_output_ns`` when the first output was there, ``done_ns`` when the
    last was. ``stopped`` is whether the driver said first that its clock had stopped."""

    number: int
    verify: bool
    samples: list[dict[str, Any]]
    done: dict[str, Any]
    go_ns: int
    first_output_ns: int
    done_ns: int
    stopped: bool = False


def describe(
    command: Sequence[str], env: Mapping[str, str], limit_s: float = DESCRIBE_LIMIT
) -> Description:
    """What the driver says of itself. Raises DriverFailed."""
    with Driver([*command, "describe"], env) as driver:
        return driver.described(limit_s)


def refusal(description: Description, plan: Plan) -> str | None:
    """Why this driver cannot do the plan, as it describes itself."""
    what = description.name
    if plan.operation not in description.operations:
        return f"{what} has no {plan.operation}"
    if plan.operation == "get" and plan.sink not in description.sinks:
        return f"{what} has no sink {plan.sink!r}"
    if plan.operation == "put" and plan.source not in description.sources:
        return f"{what} has no source {plan.source!r}"
    if plan.tls and not description.tls:
        return f"{what} has no TLS"
    for name in ("concurrency", "part_size", "checksums", "listing"):
        if name == "part_size" and not _splits(plan):
            continue  # no item is longer than a part
        if getattr(plan, name) is not None and name not in description.settings:
            return f"{what} does not let {name} be chosen"
    return None


class Driver:
    """A driver's process. It exists as soon as this does, and has done nothing yet."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cpus: Iterable[int] = (),
        name: str | None = None,
    ):
        """``env`` comes on top of a clean environment; ``cpus`` are the cores it may use, all
        where there are none. Raises DriverFailed when it cannot be started."""
        self.name = name or PurePath(command[-2 if command[-1] == "describe" else -1]).name
        self._items = 0
        try:
            self._process = Process(command, env, cpus)
        except (OSError, ValueError) as error:
            raise DriverFailed(f"{self.name} cannot be started: {error}") from None

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if kind:
            self._process.kill()
        else:
            self.close()

    @property
    def pid(self) -> int:
        """Of the process, and of its group and session."""
        return self._process.pid

    @property
    def pinned(self) -> bool:
        return self._process.pinned

    @property
    def pinning(self) -> str:
        """Why it is not on the cores that were asked for; empty where it is."""
        return self._process.pinning

    def stderr_tail(self) -> str:
        return self._process.tail()

    def described(self, limit_s: float) -> Description:
        """Of a process that was started with ``describe``. Raises DriverFailed."""
        until = time.monotonic() + limit_s
        said = self._message(until, limit_s, "describe", of="its description")
        try:
            description = messages.described(said)
        except NoMessage as error:
            self._fail(f"printed a description that {error}")
        status = self._process.ended(max(0.0, until - time.monotonic()))
        if status != 0:
            how = "did not end" if status is None else f"ended with {process.said(status)}"
            self._fail(f"{how} after its description, and must with exit code 0")
        return description

    def start(self, line: Mapping[str, Any], limit_s: float = START_LIMIT) -> None:
        """Sends the plan's line and waits for ``ready``. Raises Skipped, BadPlan or
        DriverFailed."""
        until = time.monotonic() + limit_s
        work = line.get("work")
        self._items = len(work) if isinstance(work, list) else 0
        try:
            self._process.send(json.dumps(line).encode() + b"\n", until)
        except Ended:
            pass  # what it printed before that, or its exit code, says why
        except (Silent, TooLong):
            self._fail(f"did not read its plan in {limit_s:g} s")
        said = self._message(until, limit_s, "ready", "skip", of="ready")
        if said["type"] == "skip":
            self._gone("after it had said that it skips the plan", said.get("reason"))

    def round(
        self,
        number: int,
        verify: bool = False,
        limit_s: float = ROUND_LIMIT,
        at_first_output: Callable[[], None] | None = None,
    ) -> Round:
        """All the work once. ``at_first_output`` is called once, when the round's first output
        can be read: the driver's clock has stopped then. Raises DriverFailed."""
        early = self._process.unasked()
        if early:
            self._fail(f"printed before round {number} was asked for: {messages.shown(early)}")
        seen: list[int] = []

        def first_output() -> None:
            seen.append(time.monotonic_ns())
            if at_first_output:
                at_first_output()

        until = time.monotonic() + limit_s
        order = json.dumps({"type": "go", "round": number, "verify": verify}).encode() + b"\n"
        go_ns = time.monotonic_ns()
        try:
            self._process.send(order, until)
        except Ended:
            self._gone(f"before round {number}")
        except (Silent, TooLong):
            self._fail(f"did not read that round {number} begins, in {limit_s:g} s")
        samples, stopped, left = [], False, OUTPUT_LIMIT + OUTPUT_PER_ITEM * self._items
        while True:
            called = first_output if not seen else None
            of = f"round {number}, after {len(samples)} samples"
            line = self._line(until, limit_s, of, called)
            left -= len(line)
            if left < 0:
                self._fail(f"floods: round {number} printed more than any round of its plan can")
            try:
                said = messages.message(line, "sample", "done", "stopped")
                if said["type"] == "stopped":
                    messages.of_round(said, number)
                    stopped = not samples
                elif said["type"] == "sample":
                    samples.append(messages.sample(said))
                else:
                    done_ns = time.monotonic_ns()
                    done = messages.done(said, number)
                    return Round(number, verify, samples, done, go_ns, seen[0], done_ns, stopped)
            except NoMessage as error:
                self._fail(f"printed a line in round {number} that {error}")

    def close(self) -> str:
        """Ends it: first its input, then by force, with all that it started. Says how it ended;
        an honest end is "exit code 0"."""
        return self._process.close()

    def _message(self, until: float, limit_s: float, *types: str, of: str) -> dict[str, Any]:
        line = self._line(until, limit_s, of)
        try:
            return messages.message(line, *types)
        except NoMessage as error:
            self._fail(f"printed a line that {error}")

    def _line(
        self,
        until: float,
        limit_s: float,
        of: str,
        on_output: Callable[[], None] | None = None,
    ) -> bytes:
        try:
            return self._process.line(until, on_output)
        except Silent:
            self._fail(f"hangs: {of} did not come in {limit_s:g} s")
        except TooLong:
            self._fail(f"floods: a line of more than {process.LINE_LIMIT} bytes in place of {of}")
        except Ended:
            self._gone(f"in place of {of}")

    def _gone(self, when: str, reason: object = None) -> NoReturn:
        """Raises what the end of the process means."""
        status = self._process.ended(process.CLOSE_LIMIT)
        if status == messages.CANNOT:
            self._process.close()
            raise Skipped(f"{self.name} skips this plan: {reason or self._why('no reason given')}")
        if status == messages.REFUSES:
            self._fail("refuses the plan", BadPlan)
        if status is None:
            self._fail(f"closed its standard output {when}, and did not end")
        self._fail(f"ended with {process.said(status)} {when}")

    def _why(self, otherwise: str) -> str:
        return self._process.tail() or otherwise

    def _fail(self, what: str, kind: type[DrivingError] = DriverFailed) -> NoReturn:
        self._process.kill()
        tail = self._why("nothing")
        raise kind(f"{self.name} {what}; on standard error last: {tail}")


def _splits(plan: Plan) -> bool:
    return any(item.bytes > (plan.part_size or 0) for item in plan.work)
