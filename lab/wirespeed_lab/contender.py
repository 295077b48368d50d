"""One client process under measurement, driven round by round.

A driver started with ``--step`` prints ``ready``, then runs one round for every
line ``go`` and prints the round as one JSON line. Between rounds it sleeps, so
that many of them share a core and take turns.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence

from . import procfs

#: Seconds for a process to say ready, and for one round.
START_LIMIT = 60
ROUND_LIMIT = 180


class ContenderFailed(Exception):
    """A client died, said something that is no round, or took too long."""


@dataclasses.dataclass(frozen=True)
class Contender:
    """A client and how to start it. ``role`` is engine, limit, peer, baseline, pass or pwrite.
    ``packages`` are the exact versions of what it runs on, where they are not our own. One
    that is slow by a lot does 1/``share`` of the work, and its figures are per object."""

    name: str
    role: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    packages: Mapping[str, str] = dataclasses.field(default_factory=dict)
    share: int = 1

    def as_json(self) -> dict:
        """What a record says of it."""
        said: dict = {"name": self.name, "role": self.role, "command": list(self.command)}
        if self.packages:
            said["packages"] = dict(self.packages)
        if self.share > 1:
            said["share"] = self.share
        return said


class Running:
    """A started contender, pinned to one core."""

    def __init__(self, contender: Contender, cpu: int):
        self.contender = contender
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._rest = b""
        self._process = subprocess.Popen(
            pinned(contender.command, cpu),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **contender.environment},
        )
        try:
            line = self._line(START_LIMIT)
            if line != "ready":
                raise self._failed(f"said {line!r} instead of ready")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def go(self) -> dict:
        """Runs one round. The result holds the driver's own numbers and the
        peak resident size as the kernel saw it."""
        try:
            self._process.stdin.write(b"go\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed("ended") from None
        line = self._line(ROUND_LIMIT)
        try:
            result = json.loads(line)
            for field in ("seconds", "bytes", "objects", "requests", "user_s", "system_s"):
                result[field] + 0
        except (ValueError, KeyError, TypeError) as error:
            raise self._failed(f"printed no round ({error!r}): {line[:200]!r}") from None
        result["peak_rss_bytes"] = procfs.peak_rss_bytes(self._process.pid)
        return result

    def close(self) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _line(self, limit: float) -> str:
        until = time.monotonic() + limit
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise self._failed(f"said nothing for {limit} s")
            chunk = os.read(self._process.stdout.fileno(), 65536)
            if not chunk:
                raise self._failed("ended")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")

    def _failed(self, what: str) -> ContenderFailed:
        self._errors.seek(0)
        said = self._errors.read()[-1500:].decode(errors="replace").strip()
        return ContenderFailed(f"{self.contender.name} {what}" + (f": {said}" if said else ""))


def pinned(command: Sequence[str], cpus: int | Sequence[int]) -> list[str]:
    """The command on one core or on several, where the machine has all of them."""
    wanted = (cpus,) if isinstance(cpus, int) else cpus
    if not wanted or max(wanted) >= (os.cpu_count() or 1):
        return list(command)
    return ["taskset", "--cpu-list", ",".join(map(str, wanted)), *command]
