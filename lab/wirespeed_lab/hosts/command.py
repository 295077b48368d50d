"""The command line of hosts: `agent`, and `run --hosts`.

`add` gives a parser its sub-command, `add_run_options` gives `run` the options of several hosts,
and `run` does what they ask for. `shown` is what a person reads of a record.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import datetime
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from .. import clients, places, plans, stores
from ..records import CutOff
from . import addresses, coordinator, record, together, wire
from . import agent as agents
from .summary import Told


def add(subparsers: argparse._SubParsersAction) -> None:
    """Adds `agent`, whose `run` is a callable of the arguments that returns the exit status."""
    parser = subparsers.add_parser(
        "agent",
        help="drive clients on this host for `run --hosts` elsewhere",
        description="Listens for a coordinator that holds the same token, and drives the clients "
        "of this host's own registry when it says so. Credentials are taken from AWS_ACCESS_KEY_ID "
        "and AWS_SECRET_ACCESS_KEY here; they are never sent.",
    )
    parser.add_argument("--listen", required=True, metavar="HOST:PORT")
    parser.add_argument("--token-file", required=True, type=Path, metavar="FILE")
    parser.add_argument("--cpus", metavar="LIST", help="cores for the clients, such as 2-7 or 1,3")
    parser.add_argument("--folder", type=Path, help="where clients may write files (default: /tmp)")
    parser.add_argument("--once", action="store_true", help="end after one coordinator")
    parser.set_defaults(run=_agent)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `run` needs for several hosts."""
    parser.add_argument(
        "--hosts", metavar="HOST:PORT,...", help="run on these agents at once, not on this machine"
    )
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="the agents' token")
    parser.add_argument(
        "--clock-bound",
        type=float,
        default=1000.0,
        metavar="MS",
        help="how far the wall clocks of hosts may be off (default: 1000)",
    )


def run(args: argparse.Namespace) -> int:
    """`run --hosts`. The exit status: 0, 1 when a host failed or nothing could be measured, 2 when
    the arguments can't be."""
    try:
        request = _request(args)
    except (ValueError, OSError) as error:
        print(f"wirespeed-lab: {error}", file=sys.stderr)
        return 2
    now = datetime.datetime.now(datetime.UTC)
    folder = args.records or places.RECORDS / f"{now:%Y%m%dT%H%M%SZ}-{len(request.hosts)}-hosts"
    try:
        with _placed(args, request) as placed, record.written(folder, now) as tell:
            summary = asyncio.run(together.measure(placed, tell))
    except (coordinator.HostsFailed, stores.StoreFailed, CutOff) as error:
        print(f"wirespeed-lab: {error}", file=sys.stderr)
        return 1
    print(table(summary))
    print(f"Record: {folder}")
    return 0 if summary["clients"] else 1


def shown(path: Path) -> str:
    """What a record says: where it was measured, and its summary. One that was never summed up is
    summed up as far as it goes. Raises BadRecord."""
    told, summary, remark = Told(), None, []
    try:
        for line in record.lines(path):
            told.take(line)
            summary = line if line["type"] == "summary" else summary
    except record.CutShort as error:
        remark = [str(error)]
    if summary is None:
        remark.append("The measurement did not come to its end: this is what its lines say.")
    machines = ", ".join(
        f"{name} ({said['machine'].get('cpu')}, {said['machine'].get('cores')} cores)"
        for name, said in told.header["hosts"].items()
    )
    title = f"{path.name}: {told.header['started']}; server {told.header['store']['endpoint']}"
    return "\n".join([title, f"hosts {machines}", table(summary or told.summary()), *remark])


def table(summary: Mapping) -> str:
    """What a person reads of a summary."""
    hosts = len(summary["hosts"])
    lines = [
        f"{summary['workload']} on {hosts} hosts at once, {summary['blocks']} blocks; medians "
        "[95 % interval] over the time in which all were running",
        f"{'client':28} {'GB/s':>24} {'operations/s':>28} {'s':>8}",
    ]
    for name, found in summary["clients"].items():
        rate, count = found["bytes_per_second"], found["operations_per_second"]
        lines.append(
            f"{name:28} {_spread(rate, 1e9, '.3f'):>24} {_spread(count, 1, '.1f'):>28} "
            f"{found['common_seconds']['median']:8.2f}"
        )
        lines += [f"    {warning}" for warning in found["warnings"]]
    lines += [f"{name:28} out: {reason}" for name, reason in summary["out"].items()]
    return "\n".join(lines)


def cores(text: str | None) -> tuple[int, ...]:
    """The cores of a list such as `2-5,7`. Raises ValueError."""
    found: list[int] = []
    for part in (text or "").split(",") if text else []:
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(f"{text!r} is no list of cores, such as 2-7 or 1,3")
        found += range(int(first), int(last or first) + 1)
    return tuple(dict.fromkeys(found))


def _agent(args: argparse.Namespace) -> int:
    try:
        (address,) = addresses.parse(args.listen, lowest_port=0)
        token = wire.read_token(args.token_file)
        setting = agents.Setting(token, clients.registry, cpus=cores(args.cpus), folder=args.folder)
    except (ValueError, OSError) as error:
        print(f"wirespeed-lab agent: {error}", file=sys.stderr)
        return 2
    try:
        asyncio.run(agents.serve(setting, address, once=args.once))
    except OSError as error:
        print(f"wirespeed-lab agent: can't listen on {address}: {error}", file=sys.stderr)
        return 1
    return 0


def _request(args: argparse.Namespace) -> together.Request:
    if not args.token_file:
        raise ValueError("--hosts needs --token-file, the same token that the agents have")
    if "://" not in args.server:
        raise ValueError(
            f"--server {args.server}: with --hosts it must be a URL that every host can reach"
        )
    if not 0 < args.clock_bound < 1e6:
        raise ValueError(f"--clock-bound {args.clock_bound}: more than 0 ms, less than 1000 s")
    clients = tuple(dict.fromkeys(filter(None, (args.clients or "").split(","))))
    if not clients:
        raise ValueError("--hosts needs --clients, those that are installed on every host")
    if args.scale is None:
        raise ValueError("--scale fit is for one machine: with --hosts give a factor")
    plan = plans.load(args.workload).compile(args.scale)
    if plan.mode != "warm":
        raise ValueError(
            f"{args.workload} is measured {plan.mode}, which is for one machine: several hosts "
            "measure warm clients"
        )
    return together.Request(
        hosts=addresses.parse(args.hosts),
        token=wire.read_token(args.token_file),
        plan=plan,
        clients=clients,
        store={},
        blocks=args.rounds,
        seed=1 if args.seed is None else args.seed,
        wall_bound_ns=int(args.clock_bound * 1e6),
    )


@contextlib.contextmanager
def _placed(args: argparse.Namespace, request: together.Request) -> Iterator[together.Request]:
    """The request with a store that holds what its plan needs."""
    with stores.open_store(args.server, cpus=(), write_to=args.write_to) as store:
        for place in range(len(request.hosts) if request.plan.operation == "put" else 1):
            store.prepare(together.plan_at(request.plan, place, len(request.hosts)))
        said = {
            "endpoint": store.endpoint,
            "region": store.region,
            "bucket": store.bucket,
            "ca_pem": store.ca_file.read_text() if store.ca_file else None,
        }
        yield dataclasses.replace(request, store=said, uploads=store.check_uploads)


def _spread(estimate: Mapping, unit: float, form: str) -> str:
    middle, low, high = (estimate[k] / unit for k in ("median", "low", "high"))
    return f"{middle:{form}} [{low:{form}}, {high:{form}}]"
