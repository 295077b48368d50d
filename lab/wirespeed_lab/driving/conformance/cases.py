"""The cases. Each takes the driver under test and gives its faults, or that it passed."""

from __future__ import annotations

import dataclasses
import os
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import psutil

from ...plans import VERSION, Plan
from ...plans.plan import SINKS
from ...stores import Store, open_store
from .. import files
from ..driver import Driver, refusal
from ..errors import BadPlan, DriverFailed, Skipped
from ..judge import judge
from ..messages import Description
from . import small

#: Seconds for a case's start and for each of its rounds: far more than any driver takes.
START_LIMIT, ROUND_LIMIT = 60.0, 60.0
#: The share of the concurrency asked for that the server must see when every answer waits.
IN_FLIGHT = 0.75


@dataclasses.dataclass(frozen=True)
class Subject:
    """The driver under test, how it is started, and what it says of itself."""

    command: tuple[str, ...]
    env: dict[str, str]
    cpus: tuple[int, ...]
    description: Description
    remarks: list[str]

    def driver(self, store: Store) -> Driver:
        command = [*self.command, "run"]
        env = {**self.env, **store.credentials}
        return Driver(command, env, self.cpus, self.description.name)


@dataclasses.dataclass(frozen=True)
class Passed:
    """A case without faults; with ``skipped`` because the driver does not claim to do it."""

    skipped: str = ""


Result = Passed | list[str]


def _works(
    make: Callable[[], Plan], any_sink: bool = True, **store: object
) -> Callable[[Subject], Result]:
    """A case of a plan that is done in three rounds, two of them verified; with ``any_sink`` to
    whatever sink the driver has."""

    def case(subject: Subject) -> Result:
        plan = _sunk(subject, make()) if any_sink else make()
        reason = refusal(subject.description, plan)
        if reason:
            return Passed(reason)
        try:
            return _done(subject, plan, **store)  # type: ignore[arg-type]
        except Skipped as skipped:
            if any(item.range for item in plan.work):
                return Passed(str(skipped))  # no description says whether it has ranges
            raise

    return case


def _done(subject: Subject, plan: Plan, preset: str | None = None, tls: bool = False) -> Result:
    faults: list[str] = []
    with _prepared(plan, preset, tls) as (store, line), subject.driver(store) as driver:
        before = store.counts()
        driver.start(line, START_LIMIT)
        sent = _difference(before, store.counts())["requests"]
        if sent:
            faults.append(f"sent {sent} requests before it was ready")
        for number, verify in enumerate((True, False, True)):
            faults += [
                f"round {number}: {fault}"
                for fault in _round(subject, plan, store, line, driver, number, verify, preset)
            ]
        how = driver.close()
    if how != "exit code 0":
        faults.append(f"ended with {how} when its input ended")
    return faults or Passed()


def _round(subject, plan, store, line, driver, number, verify, preset) -> list[str]:
    folder = Path(line["folder"])
    if plan.operation == "get" and plan.sink == "file":
        files.empty(folder)
    if plan.operation == "put":
        store.forget_uploads(plan)
    before = store.counts()
    round = driver.round(number, verify, ROUND_LIMIT)
    counts = _difference(before, store.counts())
    if preset == "patient":
        counts["held_back"] = counts["requests"]
    faults = judge(plan, round, counts)
    if not round.stopped:
        subject.remarks.append("prints no stopped line: forming samples is on its account")
    if plan.concurrency is not None and round.done["effective"].get("concurrency") is None:
        subject.remarks.append("does not say which concurrency is in effect")
    if preset == "patient" and plan.concurrency:
        # A server that does not count this is an older one.
        seen = counts.get("requests_in_flight_peak", plan.concurrency)
        if seen < plan.concurrency * IN_FLIGHT:
            faults.append(
                f"the server had {seen} requests in flight at most, "
                f"and {plan.concurrency} were asked for"
            )
    if plan.operation == "get" and plan.sink == "file":
        faults += files.check_files(plan, folder)
    if plan.operation == "put":
        faults += store.check_uploads(plan)
    return faults


def _sunk(subject: Subject, plan: Plan) -> Plan:
    """The plan with a sink that the driver has."""
    sinks = subject.description.sinks
    if plan.operation != "get" or not sinks or plan.sink in sinks:
        return plan
    return dataclasses.replace(plan, sink=sinks[0])


def cannot(subject: Subject) -> Result:
    """What it does not claim to do it skips, with the exit code for that."""
    lacking = [sink for sink in SINKS if sink not in subject.description.sinks]
    if "get" not in subject.description.operations:
        plan = small.objects("get")
    elif lacking:
        plan = small.objects("get", sink=lacking[0])
    elif "list" not in subject.description.operations:
        plan = small.listing()
    elif "put" not in subject.description.operations:
        plan = small.objects("put")
    else:
        return Passed("it says that it can do everything")
    with _prepared(plan) as (store, line), subject.driver(store) as driver:
        try:
            driver.start(line, START_LIMIT)
        except Skipped as skipped:
            said = "no reason given" not in str(skipped)
            return Passed() if said else ["it skips a plan and gives no reason"]
        except BadPlan as error:
            return [f"it took what it cannot do for a malformed plan: {error}"]
    return [f"it began a {plan.operation} to {plan.sink} and says that it cannot do that"]


def bad_plans(subject: Subject) -> Result:
    """Malformed ones, and one of a newer version, are refused with the exit code for that."""
    faults: list[str] = []
    plan = _possible(subject)
    with _prepared(plan) as (store, line):
        for what, bad in {
            "a newer version": {**line, "version": VERSION + 1},
            "no work": {name: value for name, value in line.items() if name != "work"},
            "work that is no list": {**line, "work": "everything"},
            "an item without a key": {**line, "work": [{"size": 1}]},
            "an endpoint that is no text": {**line, "endpoint": 9000},
        }.items():
            with subject.driver(store) as driver:
                try:
                    driver.start(bad, START_LIMIT)
                    faults.append(f"took a plan with {what}")
                except BadPlan as error:
                    if str(error).endswith("nothing"):
                        faults.append(f"refused a plan with {what} without a word")
                except (Skipped, DriverFailed) as error:
                    faults.append(f"did not refuse a plan with {what} as malformed: {error}")
    return faults or Passed()


def failing_items(subject: Subject) -> Result:
    """An item that cannot be had is a sample with an error; the others are done."""
    plan = _sunk(subject, small.with_one_missing())
    reason = refusal(subject.description, plan)
    if reason:
        return Passed(reason)
    with _prepared(small.objects("get", count=4), None) as (store, line):
        work = [item.for_driver() for item in plan.work]
        with subject.driver(store) as driver:
            driver.start({**line, "sink": plan.sink, "work": work}, START_LIMIT)
            faults = []
            for number in range(2):
                round = driver.round(number, False, ROUND_LIMIT)
                faults += _of_missing(plan, round.samples)
    return faults or Passed()


def _of_missing(plan: Plan, samples: list[dict]) -> list[str]:
    faults, covered = [], set()
    for sample in samples:
        places = range(sample["n"], sample["n"] + sample["count"])
        covered.update(places)
        if (small.MISSING in places) != bool(sample["error"]):
            had = f"the error {sample['error']!r}" if sample["error"] else "no error"
            faults.append(f"item {sample['n']} has {had}, and item {small.MISSING} does not exist")
    if covered != set(range(len(plan.work))):
        faults.append(f"{len(plan.work) - len(covered)} items have no sample")
    return faults


def terminated(subject: Subject) -> Result:
    """SIGTERM ends it at once, in the middle of its work, with all that it has started."""
    plan = _possible(subject, count=400)
    with _prepared(plan, "patient") as (store, line), subject.driver(store) as driver:
        driver.start(line, START_LIMIT)
        timer = threading.Timer(0.3, os.kill, (driver.pid, signal.SIGTERM))
        timer.start()
        try:
            driver.round(0, False, ROUND_LIMIT)
            return ["finished its round in spite of SIGTERM"]
        except DriverFailed as error:
            if "hangs" in str(error):
                return [f"did not end on SIGTERM: {error}"]
        finally:
            timer.join()
        left = _group(driver.pid)
    return [f"{len(left)} processes that it started outlived it"] if left else Passed()


def input_ends(subject: Subject) -> Result:
    """It ends with exit code 0 when there is no round at all."""
    plan = _possible(subject)
    with _prepared(plan) as (store, line), subject.driver(store) as driver:
        driver.start(line, START_LIMIT)
        how = driver.close()
    return Passed() if how == "exit code 0" else [f"ended with {how}"]


def _possible(subject: Subject, count: int = 10) -> Plan:
    """A plan that the driver can do, whatever it is."""
    description = subject.description
    if "get" in description.operations and description.sinks:
        return small.objects("get", sink=description.sinks[0], count=count, concurrency=None)
    if "put" in description.operations and description.sources:
        source = description.sources[0]
        return small.objects("put", source=source, count=count, concurrency=None)
    return small.listing(keys=20 * count * 1000 // 400)


def _group(number: int) -> list[psutil.Process]:
    """Processes of a group that live."""
    found = []
    for process in psutil.process_iter(["status"]):
        try:
            alive = process.info["status"] != psutil.STATUS_ZOMBIE
            if alive and os.getpgid(process.pid) == number:
                found.append(process)
        except ProcessLookupError:
            continue
    return found


class _prepared:
    """A store that holds what the plan needs, and the plan's line for it."""

    def __init__(self, plan: Plan, preset: str | None = None, tls: bool = False):
        self._plan = plan
        self._folder = tempfile.TemporaryDirectory(prefix="wirespeed-lab-")
        try:
            self._store = open_store("origin", cpus=(0,), preset=preset, tls=tls)
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> tuple[Store, dict]:
        try:
            self._store.prepare(self._plan)
            if self._plan.source == "file":
                files.write_sources(self._plan, Path(self._folder.name))
        except BaseException:
            self.__exit__()
            raise
        store = self._store
        at = (store.endpoint, store.region, store.bucket, store.ca_file, self._folder.name)
        return store, self._plan.for_driver(*at)

    def __exit__(self, *_: object) -> None:
        self._store.close()
        self._folder.cleanup()


def _difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """What the server counted in between; gauges and peaks as they were last."""
    gauges = ("_peak", "connections_open", "requests_in_flight")
    return {
        name: value if name.endswith(gauges) else value - before.get(name, 0)
        for name, value in after.items()
    }


CASES: dict[str, Callable[[Subject], Result]] = {
    "get discard": _works(lambda: small.objects("get", sink="discard"), False),
    "get memory": _works(lambda: small.objects("get", sink="memory"), False),
    "get stream": _works(lambda: small.objects("get", sink="stream"), False),
    "get file": _works(lambda: small.objects("get", sink="file"), False),
    "get ranges": _works(lambda: small.ranges()),
    "get, the client's defaults": _works(lambda: small.objects("get", concurrency=None)),
    "get over TLS": _works(lambda: small.objects("get", tls=True), tls=True),
    "get with a listing": _works(lambda: small.listed()),
    "get with checksums": _works(lambda: small.objects("get", checksums=True)),
    "get without checksums": _works(lambda: small.objects("get", checksums=False)),
    "get in parts": _works(lambda: small.parts("get", "memory"), False),
    "get in parts to a file": _works(lambda: small.parts("get", "file"), False),
    "put": _works(lambda: small.objects("put")),
    "put from files": _works(lambda: small.objects("put", source="file")),
    "put with checksums": _works(lambda: small.objects("put", checksums=True)),
    "put without checksums": _works(lambda: small.objects("put", checksums=False)),
    "put in parts": _works(lambda: small.parts("put", "discard")),
    "list": _works(lambda: small.listing()),
    "concurrency 1": _works(lambda: small.alike(1), preset="patient"),
    "concurrency 7": _works(lambda: small.alike(7), preset="patient"),
    "cannot": cannot,
    "bad plans": bad_plans,
    "failing items": failing_items,
    "SIGTERM": terminated,
    "input ends": input_ends,
}
