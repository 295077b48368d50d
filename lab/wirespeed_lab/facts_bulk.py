"""What of the bulk rows is no ratio of rounds: a parallel listing beside a serial one when every
page takes 60 ms, the memory of a listing of ten million keys, and a `sync` that finds
nothing to do.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

from . import measured, places
from .facts import _fact, _part
from .measured import CommandFailed
from .rows import MIB, Site
from .rows_bulk import BUCKET, FLAT, FLAT_COUNT, HUGE, HUGE_COUNT, ours
from .whole import NotProven, last_record, stats

REPEATS = 3
#: What is asked: times faster than serial paging, times its requests.
FASTER, REQUESTS = 30, 1.2
#: Pages of a serial listing of FLAT_COUNT keys.
PAGES = FLAT_COUNT // 1000
#: What a listing may hold however many keys there are: in order the engine reads 128 MiB ahead at
#: most; in no order each of up to 128 listers holds a page.
LISTED = {"ls": 160 * MIB, "du": 64 * MIB}
#: `sync` over the time of listing both sides, and its peak.
SYNC_TIME, SYNC_MEMORY = 2.0, 300 * MIB
SECONDS = 600
#: When the server says that its computed objects were written: 2026-01-01T00:00:00Z.
SERIES_MODIFIED = 1_767_225_600


def _run(site: Site, cpu: int, *arguments: str, lines: bool = False) -> dict:
    """One whole command of ours; with the requests that it sent."""
    before = stats(site.endpoint)["requests_total"]
    result = measured.run(
        *(ours("--endpoint-url", site.endpoint, *arguments), cpu, dict(site.environment), SECONDS),
        count_lines=lines,
    )
    return {**result, "requests": stats(site.endpoint)["requests_total"] - before}


def _without_output(result: dict) -> dict:
    return {key: value for key, value in result.items() if key != "output"}


def latency(site: Site, cpu: int) -> dict:
    """1,000,000 flat keys at 60 ms a page, beside raw serial paging of the same."""
    record = _part("bulk-list-latency", f"listing {FLAT_COUNT:,} flat keys at 60 ms a page")
    prefix = f"s3://{BUCKET}/{FLAT}"
    try:
        serial = measured.run(
            (
                *(str(places.rust_driver("serial-list")), "--endpoint", site.endpoint),
                *("--bucket", BUCKET, "--keys-prefix", FLAT),
            ),
            *(cpu, dict(site.environment), SECONDS),
        )
        for what, arguments, lines in (
            ("du", ("--json", "--quiet", "du", prefix), False),
            ("ls --recursive, in order", ("ls", "--recursive", prefix), True),
        ):
            runs = [_run(site, cpu, *arguments, lines=lines) for _ in range(REPEATS)]
            for run in runs:
                found = run["lines"] if lines else last_record(run["output"])["objects"]
                if found != FLAT_COUNT:
                    raise NotProven(f"{what} found {found} keys of {FLAT_COUNT}")
            seconds = statistics.median(run["seconds"] for run in runs)
            requests = statistics.median(run["requests"] for run in runs)
            more = {
                "runs": [_without_output(run) for run in runs],
                "serial": _without_output(serial),
            }
            share = seconds / serial["seconds"]
            record["facts"].append(
                _fact(f"{what}: time over serial", "", share, 1 / FASTER, **more)
            )
            record["facts"].append(
                _fact(f"{what}: requests over serial", "", requests / PAGES, REQUESTS)
            )
    except (CommandFailed, NotProven, KeyError) as failure:
        record["failures"]["wirespeed"] = str(failure)
    return record


def memory(site: Site, cpu: int) -> dict:
    """The peaks of listings of a million and of ten million keys, in order and in no order: the
    highest of some runs, since how many pages lie in memory at once is chance."""
    record = _part("bulk-list-memory", "peak memory of listings")
    for what, bound in LISTED.items():
        arguments = ("ls", "--recursive") if what == "ls" else ("du",)
        for prefix, count in ((FLAT, FLAT_COUNT), (HUGE, HUGE_COUNT)):
            try:
                runs = [
                    _run(site, cpu, *arguments, f"s3://{BUCKET}/{prefix}", lines=what == "ls")
                    for _ in range(REPEATS)
                ]
            except CommandFailed as failure:
                record["failures"][what] = str(failure)
                break
            peak = max(run["peak_rss_bytes"] for run in runs) / MIB
            more = {"runs": [_without_output(run) for run in runs]}
            title = f"{what}: {count:,} keys"
            record["facts"].append(_fact(title, "MiB", peak, bound / MIB, **more))
    return record


def sync(site: Site, cpu: int) -> dict:
    """`sync` of 1,000,000 objects with as many local files that are the same, both ways."""
    record = _part("bulk-sync", f"sync with nothing to do, {FLAT_COUNT:,} objects and files")
    folder = _empty_files(site.tmpfs / "synced")
    remote = f"s3://{BUCKET}/{FLAT}"
    try:
        listed = _run(site, cpu, "ls", "--recursive", remote, lines=True)
        walked = measured.run(
            ("find", str(folder), "-type", "f", "-printf", "%s %T@ %P\\n"),
            *(cpu, {}, SECONDS),
            count_lines=True,
        )
        both = listed["seconds"] + walked["seconds"]
        for way, source, target in (
            ("down", remote, str(folder)),
            ("up", str(folder), remote),
        ):
            runs = []
            for _ in range(REPEATS):
                run = _run(site, cpu, "--json", "sync", source, target)
                summary = last_record(run["output"])
                if summary.get("objects") != 0:
                    raise NotProven(f"sync {way} moved something: {summary}")
                runs.append(_without_output(run))
            seconds = statistics.median(run["seconds"] for run in runs)
            peak = max(run["peak_rss_bytes"] for run in runs)
            more = {
                "runs": runs,
                "listed": _without_output(listed),
                "walked": _without_output(walked),
            }
            record["facts"].append(
                _fact(f"{way}: time over listing both", "", seconds / both, SYNC_TIME, **more)
            )
            record["facts"].append(_fact(f"{way}: peak", "MiB", peak / MIB, SYNC_MEMORY / MIB))
    except (CommandFailed, NotProven) as failure:
        record["failures"]["sync"] = str(failure)
    return record


def _empty_files(folder: Path) -> Path:
    """Files of the names, the size and the time of the flat series, in one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(FLAT_COUNT):
        path = folder / f"{number:08d}"
        path.touch()
        os.utime(path, (SERIES_MODIFIED, SERIES_MODIFIED))
    return folder
