"""The command line of the cloud: `cloud run`, `cloud sweep`, `cloud prices`.

`cloud run` is a rehearsal unless it says `--launch`: it prints what would be launched, what that
can cost at most, and asks EC2 whether it would, launching nothing. A launch is rehearsed first as
well.
"""

from __future__ import annotations

import argparse
import ipaddress
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..hosts import command as hosts_command
from . import prices, userdata

if TYPE_CHECKING:
    from . import fleet

#: Longest life of a machine, in minutes.
LONGEST = 24 * 60
MOST_MACHINES = 64
#: Between looks whether an agent answers yet, in seconds.
LOOK = 3.0


def add(subparsers: argparse._SubParsersAction) -> None:
    """Adds `cloud` with its sub-commands; each has `run`, a callable of the arguments that
    returns the exit status."""
    cloud = subparsers.add_parser("cloud", help="measure on machines of EC2").add_subparsers(
        required=True, metavar="COMMAND"
    )
    _add_run(cloud)
    sweep = cloud.add_parser("sweep", help="find, and with --remove remove, what launches left")
    sweep.add_argument("--region", required=True, action="append", help="may be repeated")
    sweep.add_argument("--launch", metavar="NAME", help="of this launch alone")
    sweep.add_argument("--remove", action="store_true", help="terminate and delete it all")
    sweep.set_defaults(run=_sweep)
    table = cloud.add_parser("prices", help="print the table of prices")
    table.add_argument("--prices", type=Path, default=prices.TABLE, metavar="FILE")
    table.set_defaults(run=_prices)


def _add_run(cloud: argparse._SubParsersAction) -> None:
    run = cloud.add_parser(
        "run",
        help="launch, measure, tear down; a rehearsal without --launch",
        description="Launches machines, runs a workload on all of them at once, and removes them. "
        "Without --launch nothing is launched. The figures for what it can cost leave out requests "
        "to S3, what is stored there, and traffic out of the region.",
    )
    run.add_argument("workload", metavar="WORKLOAD")
    run.add_argument("--clients", required=True, metavar="ID,...")
    run.add_argument("--server", required=True, metavar="URL", help="the store, as machines see it")
    run.add_argument("--type", required=True, metavar="TYPE", help="such as c5n.9xlarge")
    run.add_argument("--count", type=int, default=1, metavar="N")
    run.add_argument("--minutes", type=int, required=True, help="longest life of each machine")
    run.add_argument("--budget", type=float, required=True, metavar="USD", help="at most this")
    run.add_argument("--prices", type=Path, metavar="FILE", help="your table, USD an hour")
    run.add_argument(
        "--confirm-prices", action="store_true", help="the lab's own table was looked up and holds"
    )
    run.add_argument("--region", required=True)
    run.add_argument(
        "--setup",
        type=Path,
        required=True,
        metavar="FILE",
        help="shell script that installs the lab and the clients, and exports credentials",
    )
    run.add_argument("--from", dest="allow", required=True, metavar="CIDR", help="who coordinates")
    run.add_argument("--image", metavar="AMI", help="default: the newest Amazon Linux 2023")
    run.add_argument("--profile", metavar="NAME", help="instance profile")
    run.add_argument("--subnet", metavar="ID")
    run.add_argument("--port", type=int, default=7171)
    run.add_argument("--private", action="store_true", help="reach agents by private addresses")
    run.add_argument("--rounds", type=int, default=10)
    run.add_argument("--scale", type=float, default=1.0)
    run.add_argument("--seed", type=int)
    run.add_argument("--write-to", metavar="BUCKET", help="a bucket that may be written to")
    run.add_argument("--out", dest="records", type=Path, metavar="DIR")
    run.add_argument("--clock-bound", type=float, default=1000.0, metavar="MS")
    run.add_argument("--launch", action="store_true", help="do it; without this, a rehearsal")
    run.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from . import fleet

    token = secrets.token_hex(32)
    try:
        cost = _cost(args)
        launch = _launch(args, token)
        ec2, ssm = _client("ec2", args.region), _client("ssm", args.region)
        image = fleet.image(ec2, ssm, launch)
        print(_offer(args, launch, image, cost))
        prices.check(cost, args.budget)
        fleet.rehearse(ec2, launch, image)
        if not args.launch:
            print("Rehearsed: EC2 would launch this. Nothing was launched; --launch does.")
            return 0
        with fleet.launched(ec2, launch, image, _say) as machines:
            return _measure(args, machines, token)
    except (ValueError, OSError, prices.OverBudget) as error:
        print(f"wirespeed-lab cloud: {error}", file=sys.stderr)
        return 2
    except fleet.CloudFailed as error:
        print(f"wirespeed-lab cloud: {error}", file=sys.stderr)
        return 1
    except fleet.Ended as signal:
        print(f"wirespeed-lab cloud: ended by {signal}; nothing is left", file=sys.stderr)
        return 130


def _cost(args: argparse.Namespace) -> float:
    """USD at most. Raises ValueError, BadPrices among it, and OSError."""
    if not 1 <= args.count <= MOST_MACHINES:
        raise ValueError(f"--count {args.count}: 1 to {MOST_MACHINES}")
    if not 1 <= args.minutes <= LONGEST:
        raise ValueError(f"--minutes {args.minutes}: 1 to {LONGEST}")
    if args.prices is None and not args.confirm_prices:
        raise ValueError(
            "the lab's own prices are old: look them up (`wirespeed-lab cloud prices` prints them) "
            "and say --confirm-prices, or give yours with --prices FILE"
        )
    table = prices.read(args.prices or prices.TABLE)
    return prices.most(table.of(args.type, args.region), args.count, args.minutes)


def _launch(args: argparse.Namespace, token: str) -> fleet.Launch:
    from . import fleet

    network = ipaddress.ip_network(args.allow)
    if network.version != 4 or network.prefixlen < 8:
        raise ValueError(f"--from {args.allow}: an IPv4 network, and not everybody")
    if not 1024 <= args.port < 65536:
        raise ValueError(f"--port {args.port}: 1024 to 65535")
    return fleet.Launch(
        instance_type=args.type,
        count=args.count,
        minutes=args.minutes,
        port=args.port,
        allow=str(network),
        user_data=userdata.script(args.minutes, token, args.port, args.setup.read_text()),
        image=args.image,
        profile=args.profile,
        subnet=args.subnet,
    )


def _offer(args: argparse.Namespace, launch: fleet.Launch, image: str, cost: float) -> str:
    return "\n".join(
        [
            f"launch {launch.name}: {launch.count} x {launch.instance_type} ({image}) in "
            f"{args.region}, each for {launch.minutes} minutes at most",
            f"  agents on port {launch.port}, open to {launch.allow}",
            f"  costs {cost:.2f} USD at most, without what S3 takes; budget {args.budget:.2f} USD",
            f"  runs {args.workload} with {args.clients} against {args.server}",
        ]
    )


def _measure(args: argparse.Namespace, machines: Sequence[fleet.Machine], token: str) -> int:
    hosts = []
    for machine in machines:
        address = machine.private if args.private else machine.public
        if address is None:
            raise ValueError(f"{machine.id} has no public address: --private, or another subnet")
        hosts.append((address, args.port))
    wait_for_agents(hosts, time.monotonic() + args.minutes * 60)
    with tempfile.NamedTemporaryFile("w", prefix="wirespeed-lab-token-") as file:
        file.write(token)
        file.flush()
        return hosts_command.run(
            argparse.Namespace(
                **vars(args),
                hosts=",".join(f"{host}:{port}" for host, port in hosts),
                token_file=Path(file.name),
            )
        )


def wait_for_agents(
    hosts: Sequence[tuple[str, int]],
    until: float,
    connect: Callable[..., Any] = socket.create_connection,
) -> None:
    """Returns when each accepts a connection. Raises CloudFailed when one does not before
    ``until`` (monotonic seconds): its setup failed, or the network keeps it away."""
    from . import fleet

    for host, port in hosts:
        while True:
            try:
                connect((host, port), timeout=LOOK).close()
            except OSError as error:
                if time.monotonic() + LOOK >= until:
                    raise fleet.CloudFailed(
                        f"the agent at {host}:{port} does not answer ({error}): does the setup "
                        "script work, and may this machine reach it?"
                    ) from None
                time.sleep(LOOK)
            else:
                break


def _sweep(args: argparse.Namespace) -> int:
    from botocore.exceptions import BotoCoreError, ClientError

    from . import sweep

    status = 0
    for region in args.region:
        ec2 = _client("ec2", region)
        try:
            found = sweep.remove(ec2, args.launch) if args.remove else sweep.find(ec2, args.launch)
            left = sweep.find(ec2, args.launch) if args.remove else []
        except (BotoCoreError, ClientError) as error:
            print(f"wirespeed-lab cloud: {region}: {error}", file=sys.stderr)
            status = 1
            continue
        word = "removed" if args.remove else "found"
        for one in found:
            print(f"{region}: {word} {one} of launch {one.launch}")
        for one in left:
            print(f"wirespeed-lab cloud: {region}: {one} is still there", file=sys.stderr)
            status = 1
        if not found:
            print(f"{region}: nothing carries the lab's tag")
    return status


def _prices(args: argparse.Namespace) -> int:
    try:
        table = prices.read(args.prices)
    except (ValueError, OSError) as error:
        print(f"wirespeed-lab cloud: {error}", file=sys.stderr)
        return 2
    print(f"{table.source}: USD an hour in {table.region}, as of {table.as_of}")
    for name, price in table.usd_per_hour.items():
        print(f"{name:16} {price:.4f}")
    return 0


def _client(service: str, region: str) -> Any:
    import boto3

    return boto3.client(service, region_name=region)


def _say(what: str) -> None:
    print(what, flush=True)
