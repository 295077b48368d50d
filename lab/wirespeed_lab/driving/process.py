"""A process of the lab's: its own group, a clean environment, chosen cores, and pipes that are
read with a time limit and never hold more than a bound. Knows nothing of the protocol."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO

#: Bytes of a line at most.
LINE_LIMIT = 8 << 20
#: Bytes of standard error that are kept, the last ones.
TAIL = 4096
#: Seconds for a process to end by itself, and then after SIGTERM.
CLOSE_LIMIT, TERM_LIMIT = 5.0, 2.0
_CHUNK = 1 << 18
#: What of the lab's own environment would change what a client does.
_REMOVED = ("AWS_", "WIRESPEED_", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT")
_ISOLATED = {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}


class Silent(Exception):
    """Nothing came in time."""


class TooLong(Exception):
    """A line has no end within the bound."""


class Ended(Exception):
    """The process has closed its standard output."""


def environment(added: Mapping[str, str]) -> dict[str, str]:
    """The lab's environment without what is meant for the lab itself, or for clients in general:
    AWS's configuration and proxies."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_REMOVED) and not name.lower().endswith("_proxy")
    }
    return {**kept, **_ISOLATED, **added}


class Process:
    """A started command. Everything it starts is in its process group, which is its session too.
    ``pinned`` says whether it runs on the ``cpus`` asked for, ``pinning`` why not."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cpus: Iterable[int] = ()):
        self._tail = b""
        self._buffer = bytearray()
        self._scanned = 0
        self._open = True
        self._dropping = False
        self._ending: str | None = None
        with _on(frozenset(cpus)) as self.pinning:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(env),
                bufsize=0,
                start_new_session=True,
            )
        self.pinned = not self.pinning
        self._stdin, self._stdout, self._stderr = _pipes(self._process)
        self._selector = selectors.DefaultSelector()
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        for pipe in (self._stdout, self._stderr):
            self._selector.register(pipe, selectors.EVENT_READ)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, line: bytes, until: float) -> None:
        """Writes all of it. Raises Silent when the process does not read it before ``until``
        (monotonic seconds), Ended when it cannot any more."""
        left = memoryview(line)
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        try:
            while left:
                try:
                    left = left[os.write(self._stdin.fileno(), left[:_CHUNK]) :]
                except BlockingIOError:
                    self._wait(until)
                except OSError:
                    raise Ended from None
        finally:
            self._selector.unregister(self._stdin)

    def line(self, until: float, on_output: Callable[[], None] | None = None) -> bytes:
        """The next line of standard output, without its end. ``on_output`` is called as soon as
        there is any output to read. Raises Silent, TooLong, or Ended at the end of the output."""
        while True:
            if on_output and self._buffer:
                on_output()
                on_output = None
            end = self._buffer.find(b"\n", self._scanned)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._scanned = 0
                return line
            self._scanned = len(self._buffer)
            if self._scanned > LINE_LIMIT:
                raise TooLong
            if not self._open:
                raise Ended
            self._wait(until)

    def unasked(self) -> bytes:
        """Output that has come already, without waiting for any."""
        with contextlib.suppress(Silent, TooLong):
            while self._open:
                self._wait(time.monotonic())
        return bytes(self._buffer)

    def ended(self, limit_s: float) -> int | None:
        """The exit status once the process has ended: negative for the signal that ended it. None
        if it lives on for ``limit_s``. It is not reaped: its group keeps its number."""
        until = time.monotonic() + limit_s
        while True:
            with contextlib.suppress(Silent):
                self._wait(time.monotonic() + 0.01)
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found:
                exited = found.si_code == os.CLD_EXITED
                return found.si_status if exited else -found.si_status
            if time.monotonic() >= until:
                return None

    def tail(self) -> str:
        """What the process wrote on standard error last."""
        with contextlib.suppress(Silent, OSError):
            # So often at most: one that writes without end must not hold up who asks.
            for _ in range(64 if self._ending is None else 0):
                self._wait(time.monotonic(), only_errors=True)
        return self._tail.decode(errors="replace").strip()

    def close(self, limit_s: float | None = None) -> str:
        """Ends the process and all of its group: its input ends, after ``limit_s`` SIGTERM comes,
        then SIGKILL. Says how it ended."""
        if self._ending is not None:
            return self._ending
        limit_s = CLOSE_LIMIT if limit_s is None else limit_s
        self._dropping = True
        with contextlib.suppress(OSError):
            self._stdin.close()
        status, how = self.ended(limit_s), ""
        if status is None:
            how = f", which it did only on SIGTERM, {limit_s:g} s after its input had ended"
            _signal(self.pid, signal.SIGTERM)
            status = self.ended(TERM_LIMIT)
        if status is None:
            how = ", which nothing but SIGKILL made it do"
            _signal(self.pid, signal.SIGKILL)
            status = self.ended(TERM_LIMIT)
        self.tail()
        # Whatever it has started and left behind.
        _signal(self.pid, signal.SIGKILL)
        self._process.wait()
        self._selector.close()
        self._stdout.close()
        self._stderr.close()
        self._ending = said(status) + how
        return self._ending

    def kill(self) -> str:
        """Ends the process and all of its group at once."""
        if self._ending is None:
            _signal(self.pid, signal.SIGKILL)
        return self.close()

    def _wait(self, until: float, only_errors: bool = False) -> None:
        """Takes in what there is, or waits for something. Raises Silent at ``until``."""
        ready = self._selector.select(max(0.0, until - time.monotonic()))
        if only_errors:
            ready = [one for one in ready if one[0].fileobj is self._stderr]
        if not ready:
            if not self._selector.get_map():
                # Both outputs are closed: only time can pass.
                time.sleep(min(0.01, max(0.0, until - time.monotonic())))
            if time.monotonic() >= until or only_errors:
                raise Silent
            return
        for key, _ in ready:
            if key.fileobj is self._stdin:
                continue
            chunk = os.read(key.fd, _CHUNK)
            if not chunk:
                self._selector.unregister(key.fileobj)
                self._open = self._open and key.fileobj is not self._stdout
            elif key.fileobj is self._stderr:
                self._tail = (self._tail + chunk)[-TAIL:]
            elif not self._dropping:
                self._buffer += chunk
                if len(self._buffer) > LINE_LIMIT + _CHUNK:
                    raise TooLong


def said(status: int | None) -> str:
    """An exit status in words."""
    if status is None:
        return "no exit at all"
    if status >= 0:
        return f"exit code {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise OSError("it has no pipes")
    return process.stdin, process.stdout, process.stderr


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


@contextlib.contextmanager
def _on(cpus: frozenset[int]) -> Iterator[str]:
    """This thread on ``cpus``, for a child to inherit: so not even its first instruction runs
    elsewhere. Yields why that cannot be, or nothing."""
    if not cpus:
        yield ""
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        yield f"cores {sorted(cpus)} are not to be had: {error.strerror}"
        return
    try:
        yield ""
    finally:
        os.sched_setaffinity(0, before)
