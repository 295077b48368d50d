"""What can be asked on the command line, and whom it is handed to."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .. import places
from ..cloud import command as cloud_command
from ..hosts import command as hosts_command
from ..measuring import CoresRefused
from ..plans import BadInput
from ..records import BadRecord
from ..sessions import SweepRefused
from ..sessions.settings import BLOCKS, REPEATS
from ..stores import BadPreset, StoreFailed
from . import doctoring, looking, running
from .choosing import Refused

#: What a person can mend: said in one line, without a traceback.
MENDABLE = (
    BadInput,
    BadPreset,
    BadRecord,
    CoresRefused,
    Refused,
    StoreFailed,
    SweepRefused,
    places.MissingProgram,
)


def main(argv: list[str]) -> int:
    """The exit code of the command."""
    chosen = parser().parse_args(argv)
    try:
        return chosen.run(chosen)
    except MENDABLE as error:
        print(f"wirespeed-lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("wirespeed-lab: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read the output has enough of it; nothing more may be written at the exit.
        sys.stdout = None
        return 0


def parser() -> argparse.ArgumentParser:
    """All sub-commands and their options."""
    top = argparse.ArgumentParser(
        prog="wirespeed-lab", description="Compares S3 clients, and keeps what it saw."
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    _run(commands)
    _looking(commands)
    hosts_command.add(commands)
    cloud_command.add(commands)
    return top


def _run(commands: argparse._SubParsersAction) -> None:
    run = commands.add_parser("run", help="measure clients on a workload and keep a record")
    run.add_argument("workload", nargs="*", metavar="WORKLOAD", help="a name or a file")
    run.add_argument(
        "--clients",
        metavar="ID,...",
        help="default: all that are installed; ID#2 takes part once more, ID+10%% is made dearer",
    )
    run.add_argument(
        "--server", default="origin", metavar="KIND", help="origin, minio, versitygw or a URL"
    )
    run.add_argument("--model", metavar="PRESET", help="what the embedded server behaves like")
    run.add_argument("--tls", action="store_true", help="every workload over TLS")
    run.add_argument("--sweep", metavar="AXES", help="such as concurrency=8/16/32,part=1MiB/8MiB")
    run.add_argument(
        "--rounds",
        "--blocks",
        type=_positive,
        default=BLOCKS,
        metavar="N",
        dest="rounds",
        help=f"counted rounds of each client, in shuffled blocks (default {BLOCKS})",
    )
    run.add_argument(
        "--repeats",
        type=_counting,
        default=REPEATS,
        metavar="N",
        help=f"of a round in which the machine was disturbed, at most (default {REPEATS})",
    )
    run.add_argument(
        "--scale",
        type=_scale,
        default=1.0,
        metavar="F",
        help="factor of sizes or counts; `fit` shrinks each workload to this machine",
    )
    run.add_argument("--seed", type=_counting, metavar="N", help="of the shuffles")
    run.add_argument("--server-cores", metavar="LIST", help="such as 0-3")
    run.add_argument("--client-cores", metavar="LIST", help="such as 4-7")
    run.add_argument(
        "--folder", type=Path, metavar="DIR", help="where clients read and write files"
    )
    run.add_argument(
        "--write-to", metavar="BUCKET", help="at a URL: a bucket that may be written to"
    )
    run.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="default: lab/records/<date>-<machine>, with --hosts lab/records/<date>-<N>-hosts",
    )
    run.add_argument("--resume", type=Path, metavar="DIR", help="go on with a record")
    run.add_argument("--plain", action="store_true", help="plain lines, also in a terminal")
    hosts_command.add_run_options(run)
    run.set_defaults(run=running.run)


def _looking(commands: argparse._SubParsersAction) -> None:
    listing = commands.add_parser("list", help="workloads, clients, presets and records")
    listing.add_argument("what", nargs="?", choices=("workloads", "clients", "presets", "records"))
    listing.set_defaults(run=looking.list_)

    doctor = commands.add_parser("doctor", help="what is installed, and is this machine fit")
    doctor.add_argument("--seconds", type=float, default=2.0, help="of looking for noise")
    doctor.set_defaults(run=doctoring.doctor)

    show = commands.add_parser("show", help="the tables of a record")
    show.add_argument(
        "record",
        nargs="?",
        type=Path,
        metavar="PATH",
        help="a folder, or a file of `run --hosts` (default: the newest folder)",
    )
    show.add_argument("--cell", metavar="ID", help="this one alone")
    show.add_argument("--wide", action="store_true", help="all metrics")
    show.set_defaults(run=looking.show)

    compare = commands.add_parser("compare", help="two clients of a record, or two records")
    for side in ("a", "b"):
        compare.add_argument(
            side, metavar=side.upper(), help="a record, a client, or RECORD:CLIENT"
        )
    compare.add_argument("--record", type=Path, metavar="DIR", help="where the clients are")
    compare.add_argument(
        "--each",
        type=_positive,
        metavar="N",
        help="compare every N blocks by themselves: how often a difference is seen",
    )
    compare.set_defaults(run=looking.compare)

    verify = commands.add_parser("verify", help="recompute summaries from samples")
    verify.add_argument(
        "records",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="folders, or files of `run --hosts` (default: all)",
    )
    verify.set_defaults(run=looking.verify)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is none: at least 1")
    return number


def _counting(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than none")
    return number


def _scale(text: str) -> float | None:
    if text == "fit":
        return None
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no factor: 0.1, or fit") from None
