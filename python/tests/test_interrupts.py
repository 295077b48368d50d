"""Ctrl-C: heard at once by whatever waits, and the process goes on as if nothing had been begun."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

# Interrupts a call three times and says how it was. Run with the call as its first argument.
SCRIPT = """
import gc, json, os, signal, sys, threading, time
import wirespeed

verb, bucket = sys.argv[1:]
handler = signal.getsignal(signal.SIGINT)
client = wirespeed.Client()
destination = bytearray(20 << 20)
into = [bytearray(1000) for _ in range(49)] + [bytearray(20 << 20)]
source = bytearray(1000)
writer = None

def many(**options):
    keys = [f"k{index}" for index in range(49)] + ["stalled"]
    return client.get_many(keys, bucket=bucket, **options)

def write():
    with client.writer("stalled", bucket=bucket) as writer:
        writer.write(source)

def iterate():
    for _ in client.list("stalled", bucket=bucket):
        pass

calls = {
    "get": lambda: client.get("stalled", bucket=bucket),
    "get as bytes": lambda: client.get("stalled", bucket=bucket, as_bytes=True),
    "get on_part": lambda: client.get("stalled", bucket=bucket, on_part=lambda offset, view: None),
    "get_into": lambda: client.get_into("stalled", destination, bucket=bucket),
    "get_many": lambda: many(),
    "get_many as bytes": lambda: many(as_bytes=True),
    "get_many into": lambda: many(into=into),
    "get_many as completed": lambda: list(many(as_completed=True)),
    "get_ranges": lambda: client.get_ranges("stalled", [(0, 5), (100, 105)], bucket=bucket),
    "stream": lambda: client.stream("stalled", bucket=bucket).read(),
    "put": lambda: client.put("stalled", source, bucket=bucket),
    "writer": write,
    "head": lambda: client.head("stalled", bucket=bucket),
    "list": iterate,
    "list keys": lambda: client.list("stalled", bucket=bucket).keys(),
    "download": lambda: client.download(f"s3://{bucket}/stalled", "/dev/shm/never-here"),
}
call, took, requests = calls[verb], [], []
for _ in range(3):
    sent = []
    def interrupt():
        time.sleep(0.4)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        call()
        sys.exit("it returned")
    except KeyboardInterrupt:
        took.append(time.monotonic() - sent[0])
    thread.join()
    # What was lent is the owner's again.
    for owned in (destination, source, *into):
        owned.append(0)
        owned.pop()
deadline = time.monotonic() + 5
while client.metrics()["memory_in_use"] and time.monotonic() < deadline:
    gc.collect()
    time.sleep(0.01)
print(json.dumps({
    "took": took,
    "handler": signal.getsignal(signal.SIGINT) is handler is signal.default_int_handler,
    "in use": client.metrics()["memory_in_use"],
    "goes on": client.get("k1", bucket=bucket, as_bytes=True).decode(),
}))
"""

VERBS = [
    "get",
    "get as bytes",
    "get on_part",
    "get_into",
    "get_many",
    "get_many as bytes",
    "get_many into",
    "get_many as completed",
    "get_ranges",
    "stream",
    "put",
    "writer",
    "head",
    "list",
    "list keys",
    "download",
]


@pytest.fixture
def stalled(client: Any, bucket: str, environment: dict[str, str]) -> str:
    """A bucket with 50 good objects and one that never comes."""
    for index in range(50):
        client.put(f"k{index}", b"x" * 100, bucket=bucket)
    client.put("stalled", bytes(20 << 20), bucket=bucket)
    return bucket


def interrupted(verb: str, bucket: str, env: dict[str, str]) -> dict[str, Any]:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, verb, bucket],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stderr) == (0, "")
    return json.loads(run.stdout)


def check(said: dict[str, Any]) -> None:
    # The machine may be busy, but not three times.
    assert min(said["took"]) < 0.2
    assert max(said["took"]) < 2
    assert said["handler"], "a signal handler was installed"
    assert said["in use"] == 0
    assert said["goes on"] == "x" * 100


@pytest.mark.parametrize("verb", VERBS)
def test_ctrl_c_ends_a_call_that_waits_for_an_answer(
    origin: Any, stalled: str, environment: dict[str, str], verb: str
) -> None:
    faults = [{"action": "stall", "bucket": stalled, "key": "stalled"}]
    if verb.startswith("list"):
        faults = [{"action": "stall", "bucket": stalled, "verb": "list"}]
    with origin.misbehaving(*faults):
        check(interrupted(verb, stalled, environment))


@pytest.mark.parametrize(
    "verb",
    ["get", "get as bytes", "get on_part", "get_into", "stream", "get_many", "get_many into"],
)
def test_ctrl_c_ends_a_call_whose_bytes_stop_coming(
    origin: Any, stalled: str, environment: dict[str, str], verb: str
) -> None:
    fault = {"action": "stall-after:70000", "verb": "get", "bucket": stalled, "key": "stalled"}
    with origin.misbehaving(fault):
        check(interrupted(verb, stalled, environment))


HANDLER = """
import os, signal, sys, threading, time
import wirespeed

class Mine(Exception):
    pass

def handle(number, frame):
    heard.append(number)
    if number == signal.SIGUSR1:
        raise Mine("from a handler")

heard = []
for number in (signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, handle)

def send():
    for number in (signal.SIGUSR2, signal.SIGUSR2, signal.SIGUSR1):
        time.sleep(0.3)
        os.kill(os.getpid(), number)

threading.Thread(target=send).start()
try:
    wirespeed.get(f"s3://{sys.argv[1]}/stalled")
except Mine as error:
    print(error, len(heard))
"""


def test_any_signal_is_heard_and_what_its_handler_raises_is_raised(
    origin: Any, stalled: str, environment: dict[str, str]
) -> None:
    with origin.misbehaving({"action": "stall", "bucket": stalled, "key": "stalled"}):
        run = subprocess.run(
            [sys.executable, "-c", HANDLER, stalled],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "from a handler 3\n"


ASYNCIO = """
import asyncio, os, signal, sys, threading, time
import wirespeed

async def main():
    loop = asyncio.get_running_loop()
    def interrupt():
        time.sleep(0.5)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    await wirespeed.aio.get(f"s3://{sys.argv[1]}/stalled")

sent = []
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - sent[0] < 2)
print(wirespeed.get(f"s3://{sys.argv[1]}/k1", as_bytes=True).decode())
"""


def test_ctrl_c_ends_asyncio_run_too(
    origin: Any, stalled: str, environment: dict[str, str]
) -> None:
    with origin.misbehaving({"action": "stall", "bucket": stalled, "key": "stalled"}):
        run = subprocess.run(
            [sys.executable, "-c", ASYNCIO, stalled],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == ["interrupted True", "x" * 100]


PLAIN = """
import sys, wirespeed
print("waiting", flush=True)
wirespeed.get(f"s3://{sys.argv[1]}/stalled")
"""


def test_a_program_that_does_not_catch_it_dies_of_the_signal(
    origin: Any, stalled: str, environment: dict[str, str]
) -> None:
    import signal
    import time

    with origin.misbehaving({"action": "stall", "bucket": stalled, "key": "stalled"}):
        process = subprocess.Popen(
            [sys.executable, "-c", PLAIN, stalled],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert err.strip().endswith("KeyboardInterrupt")
