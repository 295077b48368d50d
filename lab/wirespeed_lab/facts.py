"""What is no ratio of rounds: the Python package's peak memory, its instructions beside the
engine's, and half a minute of many threads and of forked workers.

A fact is a number beside the most that it may be; everything it was made from stands with it.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import measured, rows_python
from .contender import Contender, ContenderFailed, Running, pinned
from .measured import CommandFailed
from .rows import LARGE_CONNECTIONS, MIB, Site
from .rows_python import BIG, ENGINE, GET, POOL, PYTHON_BUCKET, big, engine_get, ours

MIDDLE_PREFIX, MIDDLE_COUNT = "middle/", 200
#: What a `get` may use beside the object.
ALLOWANCE = 80 * MIB
ROUNDS = 3
#: Rounds of the two runs whose difference is counted: what start-up costs is in both.
FEW, MANY = 2, 6
REPEATS = 3
#: The most that they may be of the engine's.
INSTRUCTIONS = 1.03
#: Seconds for one run under valgrind, some fifty times slower.
COUNT_LIMIT = 300
THREADS, WORKERS, SECONDS = 200, 8, 30
#: By how much the resident size may differ between the middle and the last third of the time.
GROWTH = 16 * MIB


def _part(name: str, title: str) -> dict:
    return {"id": name, "title": title, "facts": [], "failures": {}}


def _fact(what: str, unit: str, value: float, most: float, **more: object) -> dict:
    return {"what": what, "unit": unit, "measured": value, "at_most": most, **more}


def memory(site: Site, cpu: int) -> dict:
    """The high-water mark of a fresh process that gets 2 GiB, with default settings."""
    record = _part("python-memory", "Python: peak memory")
    for mode in ("get", "get-into"):
        contender = ours(site, mode, "engine", mode, *big(site))
        try:
            with Running(contender, cpu) as process:
                samples = [process.go() for _ in range(ROUNDS)]
        except ContenderFailed as failure:
            record["failures"][mode] = str(failure)
            continue
        peak = samples[-1]["peak_rss_bytes"]
        record["facts"].append(
            _fact(
                *(f"{mode} of 2 GiB", "MiB peak", peak / MIB, (BIG + ALLOWANCE) / MIB),
                **contender.as_json(),
                samples=samples,
            )
        )
    return record


def instructions(site: Site, cpu: int) -> dict:
    """Instructions in user mode of a `get` of 2 GiB, by callgrind, over those of the engine.
    How much one read of a socket brings differs from run to run: the median of several."""
    record = _part("python-instructions", "Python: instructions of GET 2 GiB")
    trusting = (*big(site), "--memory", str(POOL), "--unchecked")
    contenders = (engine_get(site), ours(site, GET, "engine", "get", *trusting))
    counts: dict[str, list[int]] = {contender.name: [] for contender in contenders}
    for _ in range(REPEATS):
        for contender in contenders:
            try:
                few, many = (count(contender, cpu, rounds) for rounds in (FEW, MANY))
            except (CommandFailed, OSError) as failure:
                record["failures"][contender.name] = str(failure)
                return record
            counts[contender.name].append((many - few) // (MANY - FEW))
    ratio = statistics.median(counts[GET]) / statistics.median(counts[ENGINE])
    record["facts"].append(
        _fact(f"{GET} over {ENGINE}", "instructions", ratio, INSTRUCTIONS, counts=counts)
    )
    return record


def count(contender: Contender, cpu: int, rounds: int) -> int:
    """Instructions that a run of so many rounds executes, start-up included."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile"
        command = ("valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={profile}")
        try:
            done = subprocess.run(
                pinned((*command, *contender.command), cpu),
                input=b"go\n" * rounds,
                capture_output=True,
                env={**os.environ, **contender.environment},
                timeout=COUNT_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CommandFailed(f"{contender.name} took over {COUNT_LIMIT} s") from None
        if done.returncode != 0 or done.stdout.count(b"\n") != rounds + 1:
            said = done.stderr[-1500:].decode(errors="replace").strip()
            raise CommandFailed(f"{contender.name} ended with {done.returncode}: {said}")
        return total(profile.read_text())


def total(profile: str) -> int:
    """The instructions in what callgrind wrote."""
    found = re.search(r"^(?:summary|totals): (\d+)", profile, re.MULTILINE)
    if not found:
        raise CommandFailed("callgrind wrote no total")
    return int(found[1])


def endurance(site: Site, cpu: int) -> dict:
    """Many threads, and forked workers, getting 1 MiB objects for half a minute."""
    record = _part("python-endurance", f"Python: 1 MiB objects for {SECONDS} s")
    for mode, title in (
        ("threads", f"{THREADS} threads"),
        ("forks", f"{WORKERS} forked workers of {THREADS // WORKERS} threads"),
    ):
        contender = rows_python.driver(
            *(site, mode, "engine", "wirespeed-python", "--mode", mode),
            *("--bucket", PYTHON_BUCKET, "--prefix", MIDDLE_PREFIX, "--size", str(MIB)),
            *("--count", str(MIDDLE_COUNT), "--connections", str(LARGE_CONNECTIONS)),
            *("--seconds", str(SECONDS), "--threads", str(THREADS), "--workers", str(WORKERS)),
            file="endurance.py",
        )
        try:
            said = measured.run(contender.command, cpu, contender.environment, SECONDS * 3)
            result = json.loads(said["output"])
        except (CommandFailed, ValueError) as failure:
            record["failures"][title] = str(failure)
            continue
        more = {**contender.as_json(), "result": result}
        record["facts"].append(_fact(f"{title}: errors", "", len(result["errors"]), 0, **more))
        grown = max(growth(series) for series in result["resident_bytes"])
        record["facts"].append(_fact(f"{title}: growth", "MiB", grown / MIB, GROWTH / MIB))
    return record


def growth(series: Sequence[int]) -> int:
    """How much more memory a process held at most in the last third of its time than in the
    second, in the unit of the series."""
    third = len(series) // 3
    if third == 0:
        raise ValueError("too few looks at the memory to tell whether it grew")
    return max(series[-third:]) - max(series[third : len(series) - third])
