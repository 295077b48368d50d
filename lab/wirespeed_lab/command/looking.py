"""``list``, ``show``, ``compare`` and ``verify``: what there is and what it says."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.table import Table

from .. import clients, places, plans, stores
from ..hosts import command as hosts_command
from ..hosts import record as hosts_record
from ..hosts import verifying as hosts_verifying
from ..records import BadRecord, Record, comparing, summarise
from ..records import verify as check
from ..records.record import PLAN
from . import tables
from .choosing import Refused, hosts_at, record_at


def list_(args: argparse.Namespace) -> int:
    """Prints what can be run, and what was."""
    console = tables.console()
    parts = {
        "workloads": _workloads,
        "clients": _clients,
        "presets": _presets,
        "records": _records,
    }
    for name, part in parts.items():
        if args.what in (None, name):
            console.print(part())
    return 0


def show(args: argparse.Namespace) -> int:
    """Prints the tables of a record. One that was never summed up is summed up now."""
    if of_hosts := hosts_at(args.record):
        print("\n\n".join(hosts_command.shown(path) for path in of_hosts))
        return 0
    console, record = tables.console(), record_at(args.record)
    summary = record.summary or summarise(record.plan, record.lines())
    known = [cell["id"] for cell in summary["cells"]]
    if args.cell and args.cell not in known:
        raise Refused(f"{record.folder} has no cell {args.cell!r}; it has {', '.join(known)}")
    settings, machine = record.plan["settings"], record.environment["machine"]
    server = settings["server"] + (f", {settings['preset']}" if settings["preset"] else "")
    console.print(
        f"{record.folder.name}: {machine['cpu']}, {machine['cores']} cores; server {server}; "
        f"{settings['blocks']} blocks",
        highlight=False,
    )
    tables.print_summary(console, summary, args.cell, args.wide)
    return 0


def compare(args: argparse.Namespace) -> int:
    """Prints how two clients, or two records, differ."""
    (record_a, client_a), (record_b, client_b) = (
        _side(text, args.record) for text in (args.a, args.b)
    )
    if bool(client_a) != bool(client_b):
        raise Refused("compare two records or two clients, not one of each")
    same = record_a.folder.resolve() == record_b.folder.resolve()
    if same and not client_a:
        raise Refused(f"{record_a.folder} is on both sides: name two clients of it")
    if args.each:
        if not same:
            raise Refused("--each pairs rounds: both clients must be of one record")
        repeated = comparing.repeatedly(record_a, client_a, client_b, args.each)
        if not repeated:
            raise Refused(f"the two have no {args.each} blocks in common")
        tables.print_repeated(tables.console(), repeated)
        return 0
    if same:
        found = comparing.within(record_a, client_a, client_b)
    else:
        pairs = [(client_a, client_b)] if client_a and client_b else None
        found = comparing.between(record_a, record_b, pairs)
    if not found:
        raise Refused("the two have no cell in which both were measured")
    tables.print_comparisons(tables.console(), found, independent=not same)
    return 0


def verify(args: argparse.Namespace) -> int:
    """Recomputes summaries; 1 when any record is not what its samples say."""
    asked = args.records or _every_record()
    if not asked:
        raise Refused(f"{places.RECORDS} holds no record to verify")
    bad = 0
    for path in asked:
        verified = {found: hosts_verifying.verify(found) for found in hosts_at(path)}
        for found, complaints in (verified or {path: check(record_at(path))}).items():
            bad += bool(complaints)
            print(f"{found}: {'NOT ' if complaints else ''}as its samples say")
            for complaint in complaints:
                print(f"  {complaint}")
    return 1 if bad else 0


def _every_record() -> list[Path]:
    folders = [path.parent for path in places.RECORDS.glob(f"*/{PLAN}")]
    return sorted(folders + list(places.RECORDS.glob(f"*/{hosts_record.NAMES}")))


def _side(text: str, record: Path | None) -> tuple[Record, str | None]:
    """A record and perhaps a client of it, from RECORD, RECORD:CLIENT or CLIENT."""
    for folder, client in ((text, None), text.rpartition(":")[::2]):
        try:
            found = record_at(Path(folder)) if folder else None
        except BadRecord:
            continue
        if found:
            return found, _known(found, client) if client else None
    found = record_at(record)
    return found, _known(found, text)


def _known(record: Record, client: str) -> str:
    names = [said["client"] for said in record.plan["clients"]]
    if client not in names:
        raise Refused(f"{record.folder} has no client {client!r}; it has {', '.join(names)}")
    return client


def _workloads() -> Table:
    table = _table("workloads", "name", "operation", "sink", "mode", "what")
    for name in plans.names():
        found = plans.load(name)
        table.add_row(name, found.operation, found.sink, found.mode, found.title)
    return table


def _clients() -> Table:
    table = _table("clients", "id", "language", "what", "")
    for name, client in clients.registry().items():
        table.add_row(name, client.language, client.title, client.missing() or "installed")
    return table


def _presets() -> Table:
    table = _table("presets of the embedded server", "name")
    for name in stores.preset_names():
        table.add_row(name)
    return table


def _records() -> Table:
    table = _table("records", "name", "cells", "clients", "")
    for path in sorted(places.RECORDS.glob(f"*/{PLAN}")):
        try:
            record = Record.open(path.parent)
            cells, taking_part = record.plan["cells"], record.plan["clients"]
            state = "complete" if (record.summary or {}).get("complete") else "not complete"
        except BadRecord as error:
            table.add_row(path.parent.name, "", "", str(error))
            continue
        table.add_row(path.parent.name, str(len(cells)), str(len(taking_part)), state)
    for path in sorted(places.RECORDS.glob(f"*/{hosts_record.NAMES}")):
        table.add_row(f"{path.parent.name}/{path.name}", "", "", "several hosts")
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column(column)
    return table
