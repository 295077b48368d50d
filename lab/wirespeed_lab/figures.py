"""``python -m wirespeed_lab.figures``: measures the project's figures, shows a record, or writes
the tables of docs/benchmarks.md and of the README.

    figures [--rows get-memory,python,...] [--quick] [--record PATH]
    figures show RECORD...
    figures readme RECORD...

``python`` stands for all rows of the Python package, ``bulk`` for those of whole commands over
many objects, ``engine`` for all others; those that take a quarter of an hour each run by name
only. Several records are shown as one; of a row that stands in more than one, the last counts.

Exit code 0 when every figure asked for was met, 1 when one was missed or a
client failed, 3 when none was missed but some are not resolved, 2 when the
measurement could not be made.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import random
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from . import checks, facts, facts_bulk, machine, peak, places, readme, record, report, rounds, rows
from . import rows_bulk as bulk
from . import rows_checksums as sums
from . import rows_peers as peers
from . import rows_python as python
from . import rows_store as store
from . import rows_tls as tls
from .origin import Origin, Synthetic
from .rounds import Effort
from .server import ServerFailed

SERVER_CPU, CLIENT_CPU = 0, 1
PEAK = "peak-memory"
PREFIX = "python"
BULK = "bulk"
#: A row's server: over plain HTTP, over TLS, or like a distant store; and what makes the row.
ROWS: dict[str, tuple[str, Callable[[rows.Site], rounds.Row]]] = {
    **{name: ("plain", make) for name, make in rows.ROWS.items()},
    "get-memory-tls": ("tls", tls.get_memory),
    "put-memory-tls": ("tls", tls.put_memory),
    "checksums-get": ("plain", sums.get),
    "checksums-put": ("plain", sums.put),
    "checksums-get-tls": ("tls", sums.get),
    "checksums-put-tls": ("tls", sums.put),
    "get-modelled": ("modelled", store.get_default),
    "python-get": ("plain", python.get),
    "python-many": ("plain", python.many),
    "python-peers-crt": ("plain", peers.get_crt),
    "python-peers-other": ("plain", peers.get_other),
    **{
        f"python-ranges-{gap}": ("plain", functools.partial(peers.ranges, gap=gap))
        for gap in peers.GAPS
    },
    "python-list": ("plain", peers.listing),
    **bulk.ROWS,
}
#: Parts of a record that take no turns, and their servers.
PARTS: dict[str, tuple[str, Callable[[rows.Site, int], dict]]] = {
    PEAK: ("plain", peak.run),
    "python-instructions": ("plain", facts.instructions),
    "python-memory": ("plain", facts.memory),
    "python-endurance": ("plain", facts.endurance),
    "bulk-list-latency": ("bulk-pages", facts_bulk.latency),
    "bulk-list-memory": ("bulk", facts_bulk.memory),
    "bulk-sync": ("bulk", facts_bulk.sync),
}
EVERY = (*ROWS, *PARTS)
#: What a run without names leaves out.
BY_NAME_ONLY = ("bulk-tmpfs-all", "bulk-upload-all")
#: How a server of a kind is unlike the others.
MODELS = {
    "modelled": store.MODEL,
    "bulk-modelled": store.MODEL,
    "bulk-pages": bulk.PAGE_MODEL,
}
#: Enough to see that all parts work; its rows are mostly not resolved.
QUICK = Effort(most_blocks=10, most_seconds=30)


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="wirespeed_lab.figures",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )
    option = parser.add_argument
    option(
        "--rows",
        default=",".join(name for name in EVERY if name not in BY_NAME_ONLY),
        help=f"comma-separated, of {', '.join(EVERY)}",
    )
    option("--quick", action="store_true", help="few blocks a row")
    option("--blocks", type=int, help="most blocks a row")
    option("--seconds", type=float, help="most seconds a row")
    option("--seed", type=int, default=1, help="of the order in which clients take turns")
    option("--record", type=Path, help="where the record goes (default: lab/records)")
    option("--disk", type=Path, help="folder on a disk for files (default: .demo)")
    option("--tmpfs", type=Path, default=Path("/dev/shm"), help="folder on a tmpfs")
    chosen = parser.parse_args(argv)
    usual = [name for name in EVERY if name not in BY_NAME_ONLY]
    groups = {
        prefix: [name for name in usual if name.startswith(prefix)] for prefix in (PREFIX, BULK)
    }
    groups["engine"] = [name for name in usual if name not in (*groups[PREFIX], *groups[BULK])]
    wanted = [name for name in chosen.rows.split(",") if name]
    chosen.rows = [row for name in wanted for row in groups.get(name, [name])]
    for name in chosen.rows:
        if name not in EVERY:
            parser.error(f"no row {name!r}; there are {', '.join((*EVERY, *groups))}")
    return chosen


def _effort(chosen: argparse.Namespace, row: rounds.Row) -> Effort:
    base = QUICK if chosen.quick else Effort()
    usual = base.most_seconds if chosen.quick else row.seconds or base.most_seconds
    return Effort(
        most_blocks=chosen.blocks or base.most_blocks,
        most_seconds=chosen.seconds or usual,
    )


class _Servers(contextlib.ExitStack):
    """The servers of a run, each started when a row first asks for it."""

    def __init__(self, disk: Path, tmpfs: Path):
        super().__init__()
        self._disk, self._tmpfs = disk, tmpfs
        self._running: dict[str, Origin] = {}
        self.commands: dict[str, dict] = {}

    def take(self, kind: str) -> tuple[Origin, rows.Site]:
        """The server for this kind of row, and the place as its clients see it."""
        ca_file = self._disk / "ca.pem" if kind == "tls" else None
        if kind not in self._running:
            server = Origin(
                SERVER_CPU,
                synthetic=(
                    Synthetic(rows.BUCKET, rows.LARGE_KEY, rows.LARGE),
                    Synthetic(rows.BUCKET, rows.VAST_KEY, rows.VAST),
                    Synthetic(rows.BUCKET, rows.HUGE_KEY, rows.HUGE),
                    Synthetic(
                        rows.BUCKET, rows.SMALL_PREFIX, rows.SMALL, rows.SMALL_COUNT, rows.DIGITS
                    ),
                    Synthetic(python.PYTHON_BUCKET, python.BIG_KEY, python.BIG),
                    Synthetic(
                        *(python.PYTHON_BUCKET, python.LISTED_PREFIX, 1),
                        *(python.LISTED, rows.DIGITS),
                    ),
                    Synthetic(
                        *(python.PYTHON_BUCKET, python.SHARED_PREFIX, 1),
                        *(python.LISTED // python.SHARE, rows.DIGITS),
                    ),
                    Synthetic(
                        *(python.PYTHON_BUCKET, facts.MIDDLE_PREFIX, rows.MIB),
                        *(facts.MIDDLE_COUNT, rows.DIGITS),
                    ),
                    *bulk.SYNTHETIC,
                ),
                buckets=(rows.CHECKED,),
                discarding=(rows.UPLOADS, bulk.DISCARDING),
                ca_file=ca_file,
                model=MODELS.get(kind, ()),
            )
            self._running[kind] = self.enter_context(server)
            self.commands[kind] = {"command": server.command, "cpu": SERVER_CPU}
        server = self._running[kind]
        site = rows.Site(server.endpoint, server.credentials, self._disk, self._tmpfs, ca_file)
        return server, site


def _measure(chosen: argparse.Namespace, console: Console) -> tuple[dict, Path]:
    command = [sys.executable, "-m", "wirespeed_lab.figures", *sys.argv[1:]]
    result = record.new("figures", machine.describe(), machine.versions(), command)
    name = datetime.datetime.now(datetime.UTC).strftime("figures-%Y%m%dT%H%M%SZ.json")
    path = chosen.record or places.RECORDS / name
    disk = chosen.disk or places.REPOSITORY / ".demo"
    disk.mkdir(parents=True, exist_ok=True)
    shuffle = random.Random(chosen.seed)
    result["seed"] = chosen.seed
    with (
        tempfile.TemporaryDirectory(prefix="figures-", dir=disk) as on_disk,
        tempfile.TemporaryDirectory(prefix="wirespeed-figures-", dir=chosen.tmpfs) as on_tmpfs,
        _Servers(Path(on_disk), Path(on_tmpfs)) as servers,
    ):
        result["servers"] = servers.commands
        for name in chosen.rows:
            with console.status(f"{name} ...") as status:
                kind, make = ROWS.get(name) or PARTS[name]
                server, site = servers.take(kind)
                if name.startswith("checksums-get"):
                    sums.prepare(site)
                if name in PARTS:
                    part = make(site, CLIENT_CPU)
                else:
                    row = make(site)
                    part = rounds.run(
                        *(row, server, CLIENT_CPU, _effort(chosen, row)),
                        *(shuffle, status.update),
                    )
            result["rows"].append(part)
            record.write(result, path)
            console.print(f"{name}: {part.get('stopped') or 'done'}")
    return result, path


def exit_code(result: dict) -> int:
    """What a whole record amounts to (see the module)."""
    verdicts = [
        finding.verdict
        for row in result["rows"]
        for finding in (checks.judge_all(row) if "checks" in row else [])
    ]
    missed_bounds = any(
        bound["peak_rss_bytes"] > bound["at_most_bytes"]
        for row in result["rows"]
        for bound in row.get("bounds", [])
    )
    missed_bounds |= any(
        fact["measured"] > fact["at_most"]
        for row in result["rows"]
        for fact in row.get("facts", [])
    )
    failed = any(row["failures"] for row in result["rows"])
    if missed_bounds or failed or "missed" in verdicts or "not run" in verdicts:
        return 1
    return 3 if "not resolved" in verdicts else 0


def main(argv: list[str]) -> int:
    console = Console(width=None if sys.stdout.isatty() else 160)
    if argv[:1] in (["show"], ["readme"]):
        paths = [Path(name) for name in argv[1:]]
        if not paths:
            console.print(f"usage: figures {argv[0]} RECORD...")
            return 2
        try:
            read = [record.read(path) for path in paths]
            if argv[0] == "show":
                report.show(record.together(read), console)
            else:
                pages = (
                    places.REPOSITORY / "docs" / "benchmarks.md",
                    places.REPOSITORY / "README.md",
                )
                readme.write(read, paths, *pages)
        except (record.BadRecord, readme.NoMarkers) as error:
            console.print(f"[red]{error}[/]")
            return 2
        return 0
    chosen = _arguments(argv)
    try:
        result, path = _measure(chosen, console)
    except (places.MissingProgram, ServerFailed, subprocess.SubprocessError) as error:
        console.print(f"[red]can't measure[/]: {error}", highlight=False)
        return 2
    report.show(result, console)
    again = shlex.join(["python", "-m", "wirespeed_lab.figures", "show", str(path)])
    console.print(f"record: {path}\nshow it again: {again}")
    return exit_code(result)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
