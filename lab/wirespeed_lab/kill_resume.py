"""A large job, killed at random moments and resumed: is every byte right, what moved twice?

    python -m wirespeed_lab.kill_resume [--size 20GiB] [--kills 10] [--way down|up|both]

The moments are drawn as shares of the bytes, as the server counts them, from a seed, so that they
lie all over the job on a fast machine as on a slow one; ``kill -9`` then hits it wherever it is.
What is moved is half in objects of 1 GiB and the rest in ever smaller ones. Down, the server
computes the objects and every file is compared with their formula; up, the files are those of the
way down (or made by the same formula), the server keeps them in a directory, and each is read back
over plain HTTP. What counts as moved is what the server sent or received in bodies and heads,
whoever dropped it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from . import machine, places, record
from .contender import pinned
from .origin import Origin, Synthetic

sys.path.insert(0, str(places.DRIVERS / "python"))
import synthetic_bytes

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
#: What of the bytes lies in objects of what size.
SHARES = ((GIB, 0.5), (64 * MIB, 0.3), (MIB, 0.15), (64 * KIB, 0.05))
UNITS = {"KiB": KIB, "MiB": MIB, "GiB": GIB}
#: Bytes compared at a time, at most a period of the formula.
PIECE = MIB
BUCKET = "tree"


def size(text: str) -> int:
    """``20GiB``, or bytes."""
    for unit, bytes_ in UNITS.items():
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * bytes_)
    return int(text)


def series(total: int) -> tuple[Synthetic, ...]:
    """The objects: of each size as many as its share of the bytes asks for."""
    counts = [(bytes_, int(total * share) // bytes_) for bytes_, share in SHARES]
    return tuple(
        Synthetic(BUCKET, f"{bytes_ // KIB}KiB/", bytes_, count)
        for bytes_, count in counts
        if count
    )


def names(all_series: tuple[Synthetic, ...]) -> dict[str, int]:
    """Every key with its size."""
    return {
        f"{one.key}{number:0{one.digits}}": one.size
        for one in all_series
        for number in range(one.count)
    }


def wrong(key: str, length: int, read) -> str | None:
    """Why what ``read(n)`` brings is not the object, if it is not."""
    at = 0
    while piece := read(PIECE):
        if piece != synthetic_bytes.expected(key, at, len(piece)):
            return f"{key}: wrong bytes from {at} on"
        at += len(piece)
    return None if at == length else f"{key}: {at} bytes, not {length}"


def wrong_files(folder: Path, expected: dict[str, int]) -> list[str]:
    """What of the folder is not as it should be; what should not be there too."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    problems = [f"{name}: left behind" for name in sorted(found - set(expected))]
    for key, length in expected.items():
        if key not in found:
            problems.append(f"{key}: missing")
            continue
        with (folder / key).open("rb", buffering=0) as file:
            if problem := wrong(key, length, file.read):
                problems.append(problem)
    return problems


def wrong_objects(server: Origin, expected: dict[str, int]) -> list[str]:
    """What the server stores otherwise than it should."""
    problems = []
    for key, length in expected.items():
        try:
            with urllib.request.urlopen(f"{server.endpoint}/{BUCKET}/{key}") as answer:
                problem = wrong(key, length, answer.read)
        except OSError as error:
            problem = f"{key}: {error}"
        if problem:
            problems.append(problem)
    return problems


def make_files(folder: Path, expected: dict[str, int]) -> None:
    """The objects as files."""
    for key, length in expected.items():
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for at in range(0, length, PIECE):
                file.write(synthetic_bytes.expected(key, at, min(PIECE, length - at)))


def run_and_kill(
    server: Origin, words: list[str], counter: str, total: int, kills: int, drawn: random.Random
) -> dict:
    """Runs a job to its end through so many kills, and tells what was moved."""

    def moved() -> int:
        with urllib.request.urlopen(f"{server.endpoint}/-/stats", timeout=10) as answer:
            return json.load(answer)[counter]

    command = pinned(words, os.cpu_count() - 1 if os.cpu_count() else 0)
    # One moment in each of as many equal stretches: at random, and all of them within the job.
    moments = [total * (number + drawn.random()) / (kills + 1) for number in range(kills)]
    began, first, runs = time.monotonic(), moved(), []
    while True:
        process = subprocess.Popen(
            command,
            env={**os.environ, **server.credentials},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        moment = moments[len(runs)] if len(runs) < kills else None
        while process.poll() is None:
            if moment is not None and moved() - first >= moment:
                process.kill()
                break
            time.sleep(0.002 if moment is not None else 0.05)
        said = process.communicate()[1].decode(errors="replace")
        if process.returncode not in (0, -9):
            raise SystemExit(f"{' '.join(words)} ended with {process.returncode}: {said[-2000:]}")
        runs.append({"killed": process.returncode == -9, "moved_bytes": moved() - first})
        if process.returncode == 0:
            break
    all_moved = moved() - first
    return {
        "command": words,
        "bytes": total,
        "moved_bytes": all_moved,
        "moved_twice_percent": 100 * (all_moved - total) / total,
        "kills": sum(run["killed"] for run in runs),
        "runs": runs,
        "seconds": time.monotonic() - began,
    }


def job(server: Origin, source: str, target: str, state: Path, extra: list[str]) -> list[str]:
    """The command line of one way."""
    words = [str(places.wirespeed()), "--endpoint-url", server.endpoint, "--region", "us-east-1"]
    return [*words, "cp", "--recursive", "--quiet", source, target, "--state", str(state), *extra]


def measure(chosen: argparse.Namespace) -> dict:
    """One record of both ways, or of the one that was asked for."""
    result = record.new("kill-resume", machine.describe(), machine.versions(), sys.argv)
    result |= {"size": chosen.size, "seed": chosen.seed, "nic": chosen.nic, "rows": []}
    objects = series(chosen.size)
    expected = names(objects)
    total, drawn = sum(expected.values()), random.Random(chosen.seed)
    model = ("--nic", chosen.nic) if chosen.nic else ()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as scratch:
        tree, state = Path(scratch, "tree"), Path(scratch, "state")
        needed = total * (2 if chosen.way != "down" else 1)
        if shutil.disk_usage(scratch).free < needed + GIB:
            raise SystemExit(f"{scratch} has no room for {needed} bytes: --size, --way or --folder")
        if chosen.way != "up":
            with Origin(0, objects, model=model) as server:
                words = job(server, f"s3://{BUCKET}/", str(tree), state, chosen.extra)
                row = run_and_kill(server, words, "bytes_out", total, chosen.kills, drawn)
            row |= {"way": "down", "objects": len(expected), "state_left": state.exists()}
            result["rows"].append(row | {"wrong": wrong_files(tree, expected)})
        else:
            make_files(tree, expected)
        if chosen.way != "down":
            Path(scratch, "store").mkdir()
            stored = (*model, "--dir", str(Path(scratch, "store")))
            with Origin(0, buckets=(BUCKET,), model=stored) as server:
                words = job(server, str(tree), f"s3://{BUCKET}/", state, chosen.extra)
                row = run_and_kill(server, words, "bytes_in", total, chosen.kills, drawn)
                row |= {"way": "up", "objects": len(expected), "state_left": state.exists()}
                result["rows"].append(row | {"wrong": wrong_objects(server, expected)})
    return result


def main() -> None:
    """The command line; 1 where a byte was wrong or more was moved twice than is allowed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=size, default=20 * GIB, help="bytes to move (default 20GiB)")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--way", choices=("down", "up", "both"), default="both")
    parser.add_argument("--nic", default="1GB/s", help="the modelled server's; empty for none")
    parser.add_argument("--folder", type=Path, help="where the files go (default: the system's)")
    parser.add_argument("--at-most", type=float, default=5.0, help="percent that may move twice")
    parser.add_argument("--record", type=Path, help="the record to write")
    parser.add_argument("extra", nargs="*", help="behind --: more flags for the job")
    chosen = parser.parse_args()
    result = measure(chosen)
    failed = False
    for row in result["rows"]:
        failed |= bool(row["wrong"]) or row["moved_twice_percent"] > chosen.at_most
        print(
            f"{row['way']}: {row['bytes'] / GIB:.2f} GiB in {row['objects']:,} objects, "
            f"{row['kills']} kills: {row['moved_twice_percent']:.2f} % moved twice, "
            f"{len(row['wrong'])} wrong, {row['seconds']:.1f} s"
        )
        for problem in row["wrong"][:10]:
            print(f"  {problem}")
    if chosen.record:
        record.write(result, chosen.record)
    sys.exit(failed)


if __name__ == "__main__":
    main()
