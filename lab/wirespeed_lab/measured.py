"""A whole command, measured from outside: wall clock, CPU time, peak memory."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from . import procfs
from .contender import pinned

#: Seconds between two looks at the high-water mark. It only ever rises, so only
#: what a process adds in its last moment can be missed.
LOOK_EVERY = 0.02


class CommandFailed(Exception):
    """A command ended with another exit code than 0; the text holds what it said."""


def run(
    command: Sequence[str],
    cpu: int,
    environment: Mapping[str, str],
    limit: float = 180,
    count_lines: bool = False,
) -> dict:
    """Runs the command to its end on one core. Returns seconds, user_s,
    system_s, peak_rss_bytes and its standard output; or, of an output that is too
    long to be kept, the number of its lines."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            pinned(command, cpu),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if count_lines else out,
            stderr=errors,
            env={**os.environ, **environment},
        )
        counter = _LineCounter(process.stdout) if count_lines else None
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
            if counter:
                counter.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            said = errors.read()[-1500:].decode(errors="replace").strip()
            raise CommandFailed(
                f"`{' '.join(command)}` ended with {process.returncode}"
                + (f": {said}" if said else "")
            )
        said = (
            {"lines": counter.lines} if counter else {"output": out.read().decode(errors="replace")}
        )
        return {
            "seconds": seconds,
            "user_s": usage.ru_utime,
            "system_s": usage.ru_stime,
            # Of what another program starts (a script) the high-water mark was not looked at;
            # the kernel's own begins at that of this process.
            "peak_rss_bytes": peak or usage.ru_maxrss << 10,
            **said,
        }


class _LineCounter(threading.Thread):
    """Reads a pipe as fast as it is filled, on any core but the client's own where there is one."""

    def __init__(self, pipe: IO[bytes]):
        super().__init__(daemon=True)
        self._pipe = pipe
        self.lines = 0
        self.start()

    def run(self) -> None:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        while chunk := os.read(self._pipe.fileno(), 1 << 20):
            self.lines += chunk.count(b"\n")
        self._pipe.close()
