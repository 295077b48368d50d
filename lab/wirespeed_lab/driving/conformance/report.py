"""All cases on one driver, and what came of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..driver import describe
from ..errors import DriverFailed, DrivingError
from .cases import CASES, Passed, Subject


@dataclasses.dataclass(frozen=True)
class Report:
    """``failures`` are "case: what was wrong"; ``skipped`` are cases that the driver says that it
    cannot do; ``remarks`` are no failures."""

    driver: str
    passed: list[str]
    skipped: list[str]
    failures: list[str]
    remarks: list[str]


def conform(
    command: Sequence[str],
    env: Mapping[str, str] | None = None,
    cpus: Iterable[int] = (),
    only: Iterable[str] = (),
    tell: Callable[[str], None] = lambda text: None,
) -> Report:
    """Tries the cases named in ``only``, or all of them, on a driver. ``tell`` is called with a
    line for each. Raises StoreFailed or MissingProgram when there is no server to try it on."""
    made = Report(" ".join(command), [], [], [], [])
    try:
        description = describe(command, env or {})
    except DrivingError as error:
        made.failures.append(f"describe: {error}")
        tell(f"failed   {made.failures[0]}")
        return made
    made.passed.append("describe")
    subject = Subject(tuple(command), dict(env or {}), tuple(cpus), description, made.remarks)
    for name in list(only) or CASES:
        try:
            result = CASES[name](subject)
        except DriverFailed as error:
            result = [str(error)]
        except DrivingError as error:
            result = [f"it refuses what it says that it can do: {error}"]
        if isinstance(result, Passed):
            (made.skipped if result.skipped else made.passed).append(name)
            tell(f"skipped  {name}: {result.skipped}" if result.skipped else f"passed   {name}")
            continue
        made.failures.extend(f"{name}: {fault}" for fault in result)
        for fault in result:
            tell(f"failed   {name}: {fault}")
    for remark in dict.fromkeys(made.remarks):
        tell(f"remark   {remark}")
    return made
