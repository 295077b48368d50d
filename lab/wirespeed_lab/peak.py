"""Peak memory: the kernel's high-water mark of a fresh process, against a bound.

Resident size only: socket buffers belong to the kernel and stand in the
engine's own report (ARCHITECTURE.md, memory).
"""

from __future__ import annotations

from . import rows
from .contender import Contender, ContenderFailed, Running
from .rows import MIB, Site

#: The budget that the engine is told to keep within, and what it may use beside it.
BUDGET = 256 * MIB
ALLOWANCE = 64 * MIB
ROUNDS = 3


def _cases(site: Site) -> list[tuple[str, int, int, tuple[str, ...]]]:
    """What is moved, its bytes, the caller's destination in bytes, and the arguments."""
    large = f"s3://{rows.BUCKET}/{rows.LARGE_KEY}"
    huge = f"s3://{rows.BUCKET}/{rows.HUGE_KEY}"
    to_file = ("--sink", "file", "--path", str(site.disk))
    return [
        ("1 GiB to memory", rows.LARGE, rows.LARGE, ("get", large, "--sink", "memory")),
        ("1 GiB to a file", rows.LARGE, 0, ("get", large, *to_file)),
        ("8 GiB to a file", rows.HUGE, 0, ("get", huge, *to_file)),
        ("1 GiB discarded", rows.LARGE, 0, ("get", large, "--sink", "discard")),
    ]


def run(site: Site, cpu: int) -> dict:
    """The peak-memory part of a record: one bound a case, and failures by case."""
    record = {
        "id": "peak-memory",
        "title": "Peak memory",
        "budget_bytes": BUDGET,
        "allowance_bytes": ALLOWANCE,
        "bounds": [],
        "failures": {},
    }
    for what, size, destination, arguments in _cases(site):
        command = rows.engine_command(site, *arguments, memory=BUDGET)
        contender = Contender("wirespeed", "engine", command, site.credentials)
        try:
            with Running(contender, cpu) as process:
                samples = [process.go() for _ in range(ROUNDS if size == rows.LARGE else 1)]
            if any(sample["bytes"] != size for sample in samples):
                raise ContenderFailed(f"wirespeed moved other than {size} bytes: disqualified")
        except ContenderFailed as failure:
            record["failures"][what] = str(failure)
            continue
        record["bounds"].append(
            {
                "what": what,
                "command": list(command),
                "samples": samples,
                "peak_rss_bytes": samples[-1]["peak_rss_bytes"],
                "at_most_bytes": destination + BUDGET + ALLOWANCE,
            }
        )
    return record
