"""What driving costs: wirespeed-rust beside the bare engine, which makes the same calls for the
same plan and takes no samples. Owns the two measurements and their verdict.

    python -m wirespeed_lab.overhead [--out FILE]

Instructions of user mode are counted by callgrind, from `go` until the clock has stopped: what
is printed after it is left out. Core-seconds are of rounds that take turns, client and server on
a core each."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import machine, places, record, stats
from .measuring import Cores, Meter, Method
from .plans import Item, Plan
from .stores import StoreFailed, open_store

DRIVERS = places.REPOSITORY / "lab" / "drivers" / "rust"
DRIVER, BARE = "wirespeed-rust", "bare"
#: Rounds under callgrind: what the fewer cost, start-up included, is taken from what more cost.
FEW, MANY, REPEATS = 1, 2, 3
BLOCKS = 40
LIMIT_S = 600
#: At most so much more than the bare engine.
INSTRUCTIONS = stats.Threshold(1.01)
#: Small objects, of which driving costs the largest share, and large ones.
WORK = {
    "4 KiB": tuple(Item(f"small/{n:08d}", 4096) for n in range(4096)),
    "1 MiB": tuple(Item(f"large/{n:08d}", 1 << 20) for n in range(256)),
}
CALLGRIND = ("valgrind", "--tool=callgrind", "--quiet")
#: Counts within what prints the samples, and nowhere else.
PRINTING = "--toggle-collect=*Round*report*"


class Failed(Exception):
    """A program is missing or ended badly; the text says which, and what to do."""


def programs() -> dict[str, list[str]]:
    """Builds both, as clients are built. Raises Failed."""
    command = ("cargo", "build", "--locked", "--release")
    environment = {key: value for key, value in os.environ.items() if key != "CARGO_TARGET_DIR"}
    for what in (("--bin", DRIVER), ("--example", BARE)):
        done = subprocess.run((*command, *what), cwd=DRIVERS, env=environment, check=False)
        if done.returncode:
            raise Failed(f"`{' '.join((*command, *what))}` in {DRIVERS} ended with an error")
    built = DRIVERS / "target" / "release"
    return {DRIVER: [str(built / DRIVER), "run"], BARE: [str(built / "examples" / BARE)]}


def instructions(command: list[str], plan: str, environment: dict[str, str], core: int) -> int:
    """Of one round, without what prints its samples. Raises Failed."""

    def count(rounds: int, *only: str) -> int:
        with tempfile.TemporaryDirectory() as folder:
            profile = Path(folder) / "profile"
            done = subprocess.run(
                [*CALLGRIND, *only, f"--callgrind-out-file={profile}", *command],
                input=plan + "".join(_go(n) for n in range(rounds)),
                capture_output=True,
                text=True,
                env=environment,
                timeout=LIMIT_S,
                check=False,
                preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            )
            if done.returncode or not (said := profile.read_text() if profile.exists() else ""):
                raise Failed(f"{command[0]} under callgrind: {done.stderr[-500:].strip()}")
        found = re.search(r"^(?:summary|totals): (\d+)", said, re.MULTILINE)
        if not found:
            raise Failed("callgrind wrote no total")
        return int(found[1])

    spent = count(MANY) - count(FEW)
    printing = count(MANY, PRINTING) - count(FEW, PRINTING)
    return (spent - printing) // (MANY - FEW)


class Running:
    """A started program, ready for its next round."""

    def __init__(self, command: list[str], plan: str, environment: dict[str, str], core: int):
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        self._meter = Meter(self._process.pid, Method.choose())
        self._rounds = 0
        self._write(plan)
        self._until("ready")

    def round(self) -> float:
        """Core-seconds of a round, until the first word after its end. Raises Failed."""
        self._meter.begin()
        self._write(_go(self._rounds))
        self._rounds += 1
        line = self._line()
        self._meter.end()
        if '"done"' not in line:
            self._until("done")
        return self._meter.usage().core_s

    def close(self) -> None:
        self._meter.close()
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _write(self, text: str) -> None:
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def _line(self) -> str:
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"{self._process.args[0]} ended with {self._process.wait(30)}")
        return line

    def _until(self, kind: str) -> None:
        while f'"{kind}"' not in self._line():
            pass


def core_seconds(
    commands: dict[str, list[str]], plan: str, environment: dict[str, str], core: int
) -> dict[str, list[float]]:
    """Of each round of each program; they take turns, and who begins alternates."""
    with contextlib.ExitStack() as stack:
        running = {}
        for name, command in commands.items():
            running[name] = Running(command, plan, environment, core)
            stack.callback(running[name].close)
        for one in running.values():
            one.round()
        found: dict[str, list[float]] = {name: [] for name in commands}
        for block in range(BLOCKS):
            for name in sorted(running, reverse=bool(block % 2)):
                found[name].append(running[name].round())
    return found


def rows(commands: dict[str, list[str]]) -> Iterator[dict]:
    """A row for each kind of work. Raises Failed and StoreFailed."""
    cores = Cores.split()
    os.sched_setaffinity(0, cores.server)
    for name, work in WORK.items():
        plan = Plan(f"overhead {name}", "get", "discard", work, concurrency=16)
        with open_store("origin", cpus=cores.server) as store:
            store.prepare(plan)
            said = json.dumps(plan.for_driver(store.endpoint, store.region, store.bucket)) + "\n"
            environment = {**os.environ, **store.credentials}
            used = core_seconds(commands, said, environment, cores.client[0])
            counted: dict[str, list[int]] = {client: [] for client in commands}
            for _ in range(REPEATS):
                for client, command in commands.items():
                    one = instructions(command, said, environment, cores.client[0])
                    counted[client].append(one)
        ratio = statistics.median(counted[DRIVER]) / statistics.median(counted[BARE])
        cost = stats.paired_ratio(used[DRIVER], used[BARE], confidence=stats.expanded(BLOCKS))
        yield {
            "id": f"driving-overhead {name}",
            "objects": len(work),
            "instructions_ratio": ratio,
            "instructions": counted,
            "core_s_ratio": [cost.median, cost.low, cost.high],
            "core_s": used,
            "met": ratio <= INSTRUCTIONS.value and cost.low <= 1,
        }


def _go(round: int) -> str:
    return json.dumps({"type": "go", "round": round, "verify": False}) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=Path, help="default: a new file below lab/records")
    told = parser.parse_args()
    kept = record.new(
        "driving-overhead",
        machine.describe(),
        machine.versions(),
        ["python", "-m", "wirespeed_lab.overhead"],
    )
    try:
        for row in rows(programs()):
            kept["rows"].append(row)
            median, low, high = row["core_s_ratio"]
            print(
                f"{row['id']}: {row['instructions_ratio']:.4f} x the instructions, "
                f"{median:.3f} [{low:.3f}..{high:.3f}] x the core-seconds: "
                f"{'met' if row['met'] else 'missed'}",
                flush=True,
            )
    except (Failed, StoreFailed) as error:
        print(f"overhead: {error}", file=sys.stderr)
        return 2
    now = datetime.datetime.now(datetime.UTC)
    out = told.out or places.RECORDS / f"driving-overhead-{now:%Y%m%dT%H%M%SZ}.json"
    record.write(kept, out)
    print(f"Record: {out}")
    return 0 if all(row["met"] for row in kept["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
