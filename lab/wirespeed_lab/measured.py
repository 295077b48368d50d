"""A whole command, measured from outside: wall clock, CPU time, peak memory."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import procfs
from .contender import pinned

#: Seconds between two looks at the high-water mark. It only ever rises, so only
#: what a process adds in its last moment can be missed.
LOOK_EVERY = 0.02


class CommandFailed(Exception):
    """A command ended with another exit code than 0; the text holds what it said."""


def run(
    command: Sequence[str], cpu: int, environment: Mapping[str, str], limit: float = 180
) -> dict:
    """Runs the command to its end on one core. Returns seconds, user_s,
    system_s, peak_rss_bytes and its standard output."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            pinned(command, cpu),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            env={**os.environ, **environment},
        )
        peak = 0
        ended = threading.Event()

        def watch() -> None:
            nonlocal peak
            while not ended.wait(LOOK_EVERY):
                try:
                    # Not the moment before exec, when the process is still Python or taskset.
                    if Path(os.readlink(f"/proc/{process.pid}/exe")) == Path(command[0]).resolve():
                        peak = max(peak, procfs.peak_rss_bytes(process.pid))
                except OSError:
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        killer = threading.Timer(limit, process.kill)
        killer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        finally:
            seconds = time.perf_counter() - start
            killer.cancel()
            ended.set()
            watcher.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            said = errors.read()[-1500:].decode(errors="replace").strip()
            raise CommandFailed(
                f"`{' '.join(command)}` ended with {process.returncode}"
                + (f": {said}" if said else "")
            )
        return {
            "seconds": seconds,
            "user_s": usage.ru_utime,
            "system_s": usage.ru_stime,
            "peak_rss_bytes": peak,
            "output": out.read().decode(errors="replace"),
        }
