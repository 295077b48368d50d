"""Clients run as processes, and all that they print kept to be searched for secrets."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

# A client that needs longer than this for what is asked here hangs.
LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Ran:
    """A client that has ended."""

    argv: tuple[str, ...]
    code: int
    out: bytes
    err: bytes
    seconds: float

    @property
    def text(self) -> str:
        """Both streams, to look for a message in."""
        return (self.out + self.err).decode(errors="replace")

    @property
    def lines(self) -> list[str]:
        """Standard output by lines."""
        return self.out.decode().splitlines()

    @property
    def json(self) -> list[dict]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.lines]

    def __str__(self) -> str:
        return f"{' '.join(self.argv)}\nexit {self.code} after {self.seconds:.2f} s\n{self.text}"


class Transcript:
    """Everything that clients printed, and the secrets that must not stand in it."""

    def __init__(self) -> None:
        self._secrets: set[bytes] = set()
        self._printed: list[Ran] = []

    def keep_secret(self, secret: str) -> None:
        """From now on a client that prints `secret`, as it is or escaped, has failed."""
        self._secrets |= {secret.encode(), quote(secret, safe="").encode()}

    def add(self, ran: Ran) -> Ran:
        """Keeps what one client printed."""
        self._printed.append(ran)
        return ran

    def leaks(self) -> list[str]:
        """Who printed a secret since this was last asked."""
        said, self._printed = self._printed, []
        return [f"{r.argv}" for r in said for s in self._secrets if s in r.out or s in r.err]

    def leaks_in(self, log: Path) -> bool:
        """Whether a secret stands in a log."""
        text = log.read_bytes()
        return any(secret in text for secret in self._secrets)


class Shell:
    """Runs one client with one environment."""

    def __init__(
        self,
        argv: list[str | Path],
        env: Mapping[str, str],
        transcript: Transcript,
        limit: float = LIMIT_SECONDS,
    ):
        self._limit = limit
        self._argv = [str(word) for word in argv]
        self._env = dict(env)
        self._transcript = transcript

    def with_env(self, **changed: str) -> Shell:
        """The same client with some of the environment changed."""
        return Shell(self._argv, self._env | changed, self._transcript, self._limit)

    def __call__(
        self,
        *words: str | Path,
        code: int | None = 0,
        stdin: bytes = b"",
        meanwhile: Callable[[subprocess.Popen], None] | None = None,
        cwd: Path | None = None,
    ) -> Ran:
        """Runs the client to its end.

        Args:
            words: the arguments, after those that the client is always started with.
            code: the exit status that it must end with; None takes any.
            stdin: what it reads on standard input.
            meanwhile: called with the process while it runs.
            cwd: the folder to run in.
        """
        argv = [*self._argv, *(str(word) for word in words)]
        began = time.monotonic()
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._env,
            cwd=cwd,
        )
        try:
            if meanwhile:
                meanwhile(process)
            out, err = process.communicate(stdin, self._limit)
        except BaseException:
            process.kill()
            process.wait()
            raise
        # As a shell tells it: 128 and the signal for one that a signal has ended.
        ended = process.returncode if process.returncode >= 0 else 128 - process.returncode
        ran = Ran(tuple(argv), ended, out, err, time.monotonic() - began)
        self._transcript.add(ran)
        assert code is None or ran.code == code, str(ran)
        return ran

    def interrupted(self, after: float, *words: str | Path) -> tuple[Ran, float]:
        """Runs the client, presses Ctrl-C after so many seconds, and times how long it goes on."""
        pressed = 0.0

        def press(process: subprocess.Popen) -> None:
            nonlocal pressed
            time.sleep(after)
            pressed = time.monotonic()
            process.send_signal(signal.SIGINT)

        ran = self(*words, code=None, meanwhile=press)
        return ran, time.monotonic() - pressed
