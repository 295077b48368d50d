"""A server under load: started on one core, watched from outside, stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence

from . import procfs
from .contender import pinned

START_LIMIT = 20


class ServerFailed(Exception):
    """The server did not start, or ended while it was needed."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server process that listens on ``port`` of the loopback interface."""

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        cpu: int | Sequence[int],
        environment: Mapping[str, str] | None = None,
        scheme: str = "http",
    ):
        self.command = list(command)
        self.port = port
        self.endpoint = f"{scheme}://127.0.0.1:{port}"
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._process = subprocess.Popen(
            pinned(command, cpu),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env={**os.environ, **(environment or {})},
        )
        until = time.monotonic() + START_LIMIT
        while True:
            if self._process.poll() is not None or time.monotonic() > until:
                failure = self._failed("did not start")
                self.close()
                raise failure
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_seconds(self) -> float:
        """CPU time that the server has used so far."""
        try:
            return procfs.cpu_seconds(self._process.pid)
        except OSError:
            raise self._failed("ended") from None

    def counts(self) -> dict[str, int]:
        """What the server itself counts, by the name that samples give it: only ever more."""
        return {}

    def peak_rss_bytes(self) -> int:
        return procfs.peak_rss_bytes(self._process.pid)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._errors.close()

    def _failed(self, what: str) -> ServerFailed:
        self._errors.seek(0)
        said = self._errors.read()[-1500:].decode(errors="replace").strip()
        return ServerFailed(f"{self.command[0]} {what}" + (f": {said}" if said else ""))
