"""``python -m wirespeed_lab.demo``: moves a data set through the engine and shows what it cost.

Starts the embedded server, uploads one 1 GiB object, 2,000 x 1 MiB and
20,000 x 4 KiB, lists them, downloads them to memory and to files, compares
every byte with what was generated, and prints each step beside the raw-socket
limit and beside boto3 on the same work. Exit code 1 when a byte is wrong, 2
when a step could not be done.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from . import dataset, demo_steps, demo_table, machine, places
from .contender import ContenderFailed
from .dataset import PARTS
from .origin import Origin
from .server import ServerFailed

SEED = 20261120
SERVER_CPU = 0
#: Bytes of disk that the data set and its download take, and to spare.
DISK_NEEDED = 8 << 30


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="wirespeed_lab.demo", description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=places.REPOSITORY / ".demo")
    parser.add_argument("--keep", action="store_true", help="leave the data where it is")
    parser.add_argument("--seed", type=int, default=SEED, help="of the data set")
    chosen = parser.parse_args(argv)
    console = Console(width=None if sys.stdout.isatty() else 132, highlight=False)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(chosen.folder).free
    if free < DISK_NEEDED:
        console.print(
            f"[red]the demo can't run[/]: {chosen.folder} has {free >> 30} GiB free and it needs "
            f"{DISK_NEEDED >> 30}; name another place with --folder"
        )
        return 2
    work = Path(tempfile.mkdtemp(prefix="run-", dir=chosen.folder))
    try:
        return _run(work, chosen.seed, console)
    except (places.MissingProgram, ServerFailed, ContenderFailed, demo_steps.StepFailed) as error:
        console.print(f"[red]the demo can't run[/]: {error}")
        return 2
    except KeyboardInterrupt:
        console.print("interrupted")
        return 130
    finally:
        if chosen.keep:
            console.print(f"kept in {work}")
        else:
            dataset.remove(work)


def _run(work: Path, seed: int, console: Console) -> int:
    started = time.monotonic()
    here = machine.describe()
    console.print(f"{here['cpu']}, {here['cores']} cores, Linux {here['kernel']}")
    data = work / "data"
    with console.status("making the data set ..."):
        dataset.generate(data, PARTS, seed)
    total = sum(part.bytes for part in PARTS)
    console.print(
        f"data: {', '.join(part.title for part in PARTS)} "
        f"({total / (1 << 30):.2f} GiB, seed {seed})"
    )
    with Origin(SERVER_CPU, buckets=(demo_steps.BUCKET,)) as server:
        console.print(f"server: wirespeed-origin on core {SERVER_CPU}, clients on the other")
        site = demo_steps.Site(server, data, work)
        results = []
        for step in demo_steps.steps(site):
            with console.status(f"{step.title} ..."):
                results.append(step.run())
        served = server.cpu_seconds()
    demo_table.show(results, console)
    with console.status("comparing every byte ..."):
        wrong = dataset.differences(data, site.downloads)
    console.print(f"{time.monotonic() - started:.0f} s in all; the server used {served:.1f} core-s")
    if wrong:
        for complaint in wrong:
            console.print(f"[red]WRONG BYTES[/] {complaint}")
        return 1
    console.print(
        f"[green]every byte of {sum(part.objects for part in PARTS):,} files is the one that was "
        "uploaded[/], and the Python package received the same"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
