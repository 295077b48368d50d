"""``run``: makes a record and a session for it, or takes both up again."""

from __future__ import annotations

import argparse
import datetime
import random
import sys
import tempfile
from pathlib import Path

from .. import clients, machine, places, plans
from ..hosts import command as hosts_command
from ..measuring import Cores, Method, quietness
from ..records import Record, folder_name
from ..sessions import (
    Cell,
    Entry,
    LiveView,
    PlainView,
    Session,
    Settings,
    Sweep,
    compile_cells,
)
from . import tables
from .choosing import Refused, client_of, entries

EXIT = {"complete": 0, "stopped": 1, "interrupted": 130}
#: Seconds of looking at the machine before anything is measured.
QUIET_S = 1.0


def run(args: argparse.Namespace) -> int:
    """The exit code; the tables of what was measured are printed."""
    if args.hosts:
        if len(args.workload) != 1:
            raise Refused("--hosts takes one workload at a time")
        (args.workload,), args.records = args.workload, args.out
        return hosts_command.run(args)
    if bool(args.resume) == bool(args.workload):
        raise Refused("name a workload, or --resume a record; `wirespeed-lab list` shows both")
    console = tables.console()
    method = Method.choose()
    record, taking_part, cells, settings = _resumed(args) if args.resume else _new(args, method)
    live = console.is_terminal and not args.plain
    view = LiveView(console) if live else PlainView(console)
    outcome = Session(record, taking_part, cells, settings, method, view).run()
    if record.summary:
        tables.print_summary(console, record.summary)
    console.print(f"Record: {record.folder}", highlight=False, soft_wrap=True)
    if outcome.state != "complete":
        again = f"wirespeed-lab run --resume {record.folder}"
        print(f"wirespeed-lab: {outcome.text}\nGo on with: {again}", file=sys.stderr)
    return EXIT[outcome.state]


def _new(
    args: argparse.Namespace, method: Method
) -> tuple[Record, list[Entry], list[Cell], Settings]:
    taking_part, absent = entries(args.clients, clients.registry())
    workloads = [plans.load(name) for name in dict.fromkeys(args.workload)]
    cells = compile_cells(workloads, args.scale, Sweep.parse(args.sweep), args.tls)
    settings = Settings(
        cores=Cores.split(args.server_cores, args.client_cores),
        server=args.server,
        preset=args.model,
        tls=args.tls,
        write_to=args.write_to,
        blocks=args.rounds,
        repeats=args.repeats,
        seed=random.SystemRandom().randrange(1 << 31) if args.seed is None else args.seed,
        folder=args.folder,
    )
    now, described = datetime.datetime.now(datetime.UTC), machine.describe()
    plan = {
        "schema": 1,
        "started": now.isoformat(timespec="seconds"),
        "command": _command(args),
        "seed": settings.seed,
        "settings": settings.as_json(),
        "cells": [cell.as_json() for cell in cells],
        "clients": [entry.as_json() for entry in taking_part],
        "absent": absent,
    }
    quiet = quietness({*settings.cores.client, *settings.cores.server}, QUIET_S)
    environment = {
        "schema": 1,
        "machine": described,
        "versions": machine.versions(),
        "measuring": method.as_json(),
        "cores": settings.cores.as_json(),
        "noise": {**quiet.as_json(), "reasons": list(quiet.reasons)},
        "notes": _notes(settings.cores, method, quiet.reasons),
    }
    folder = args.out or places.RECORDS / folder_name(described, now)
    return Record.create(folder, plan, environment), taking_part, cells, settings


def _resumed(args: argparse.Namespace) -> tuple[Record, list[Entry], list[Cell], Settings]:
    record = Record.open(args.resume)
    plan = record.plan
    registry = clients.registry()
    taking_part = []
    for said in plan["clients"]:
        client = client_of(said["client"], registry)
        if reason := client.missing():
            raise Refused(f"{said['id']} of this record can't be run: {reason}")
        taking_part.append(Entry(said["client"], client))
    cells = [
        Cell(cell["id"], plans.Plan.from_json(cell["plan"], f"{record.folder}, {cell['id']}"))
        for cell in plan["cells"]
    ]
    return record, taking_part, cells, Settings.from_plan(plan, args.folder)


def _command(args: argparse.Namespace) -> list[str]:
    """What was asked, without where this machine keeps things."""
    words = ["run", *(Path(name).stem for name in args.workload)]
    for name in ("clients", "server", "model", "sweep", "rounds", "scale"):
        value = getattr(args, name)
        if value is not None:
            words += [f"--{name}", str(value)]
    return words + (["--tls"] if args.tls else [])


def _notes(cores: Cores, method: Method, reasons: tuple[str, ...]) -> list[str]:
    notes = [cores.why] if cores.why else []
    if method.why:
        notes.append(f"CPU time is taken from /proc: {method.why}")
    if reasons:
        notes.append(f"the machine was not quiet before the session: {', '.join(reasons)}")
    return [note.replace(tempfile.gettempdir(), "the temporary folder") for note in notes]
