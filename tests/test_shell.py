"""The harness sees what it is there to see: exit codes, secrets, how long an interrupt takes."""

from __future__ import annotations

import os
import socket
import time
from urllib.parse import quote

import endpoints
import pytest
from shell import Shell, Transcript

SECRET = "/+a secret key/"


def run_and_search(script: str) -> list[str]:
    transcript = Transcript()
    transcript.keep_secret(SECRET)
    Shell(["sh", "-c"], os.environ, transcript)(script)
    return transcript.leaks()


@pytest.mark.parametrize("where", ["", ">&2"])
@pytest.mark.parametrize("spelled", [SECRET, quote(SECRET, safe="")])
def test_a_secret_that_is_printed_is_found(where, spelled):
    assert len(run_and_search(f"echo 'key: {spelled}!' {where}")) == 1


def test_other_words_are_no_secret():
    assert run_and_search("echo a secret key") == []


def test_a_secret_in_a_log_is_found(tmp_path):
    transcript = Transcript()
    transcript.keep_secret(SECRET)
    (tmp_path / "log").write_text(f"GET /?key={quote(SECRET, safe='')}\n")
    assert transcript.leaks_in(tmp_path / "log")
    (tmp_path / "log").write_text("GET /\n")
    assert not transcript.leaks_in(tmp_path / "log")


def test_another_exit_code_fails(transcript):
    with pytest.raises(AssertionError, match="exit 3"):
        Shell(["sh", "-c"], os.environ, transcript)("exit 3")


def test_an_interrupt_is_timed(transcript):
    sh = Shell(["sh", "-c"], os.environ, transcript)
    # Late enough for the shell to have set its trap, also on a busy machine.
    ran, more = sh.interrupted(1.0, "trap 'sleep 0.3; exit 130' INT; while :; do sleep 0.01; done")
    assert ran.code == 130
    assert 0.3 <= more < 1.0


def test_a_slow_line_is_as_slow_as_it_says():
    with (
        endpoints.answering(b"x" * (2 << 20)) as fast,
        endpoints.slow(int(fast.rpartition(":")[2]), 4 << 20) as slow,
        socket.create_connection(("127.0.0.1", int(slow.rpartition(":")[2]))) as line,
    ):
        began = time.monotonic()
        line.sendall(b"?")
        got = 0
        while data := line.recv(1 << 16):
            got += len(data)
    assert got == 2 << 20
    assert 0.45 < time.monotonic() - began < 2.0
