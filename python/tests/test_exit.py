"""The interpreter's end: with anything in flight it comes soon and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

MIB = 1 << 20
BEGIN = """
import asyncio, os, sys, threading, time
import wirespeed

bucket, folder = sys.argv[1:]
stalled = f"s3://{bucket}/stalled"

def quietly(call):
    try:
        call()
    except BaseException:
        pass

def in_thread(call, daemon=True):
    threading.Thread(target=quietly, args=(call,), daemon=daemon).start()
"""
END = """
print(time.monotonic(), flush=True)
"""


@pytest.fixture
def stalled(client: Any, origin: Any, bucket: str, environment: dict[str, str]) -> Any:
    """A bucket in which the object `stalled` comes by halves, and never can be written."""
    client.put("stalled", bytes(40 * MIB), bucket=bucket)
    client.put("good", b"good", bucket=bucket)
    client.put("whole", bytes(40 * MIB), bucket=bucket)
    faults = [
        {"action": "stall-after:100000", "verb": "get", "bucket": bucket, "key": "stalled"},
        {"action": "stall", "verb": "upload-part", "bucket": bucket, "nth": 2},
    ]
    with origin.misbehaving(*faults):
        yield bucket


def ends(
    script: str, bucket: str, folder: Path, env: dict[str, str], status: int = 0, within: float = 5
) -> str:
    """Runs a script that says when it begins to end; gives what it wrote to stderr."""
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", BEGIN + script, bucket, str(folder)],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    ended = time.monotonic()
    assert run.returncode == status, run.stderr
    assert ended - float(run.stdout.split()[-1]) < within
    return run.stderr


DAEMONS = {
    "get": "lambda: wirespeed.get(stalled)",
    "get as bytes": "lambda: wirespeed.get(stalled, as_bytes=True)",
    "get on_part": "lambda: wirespeed.get(stalled, on_part=lambda offset, view: None)",
    "get_into": "lambda: wirespeed.get_into(stalled, bytearray(40 << 20))",
    "get_many": "lambda: wirespeed.get_many([stalled] * 8)",
    "as_completed": "lambda: list(wirespeed.get_many([stalled] * 8, as_completed=True))",
    "stream": "lambda: wirespeed.stream(stalled).read()",
    "download": "lambda: wirespeed.download(stalled, folder + '/here')",
    "put": "lambda: wirespeed.put(stalled, bytes(40 << 20))",
}


@pytest.mark.parametrize("verb", DAEMONS)
def test_daemon_threads_that_wait_do_not_hold_it_up(
    stalled: str, environment: dict[str, str], tmp_path: Path, verb: str
) -> None:
    script = f"for _ in range(4):\n    in_thread({DAEMONS[verb]})\ntime.sleep(0.7)\n" + END
    assert ends(script, stalled, tmp_path, environment) == ""
    assert list(tmp_path.iterdir()) == [], "a temporary file is left"


def test_daemon_threads_that_are_busy_do_not_hold_it_up(
    stalled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = (
        "def busy():\n"
        "    while True:\n"
        "        quietly(lambda: wirespeed.get(f's3://{bucket}/good'))\n"
        "for _ in range(8):\n"
        "    in_thread(busy)\n"
        "time.sleep(0.7)\n" + END
    )
    for _ in range(3):
        assert ends(script, stalled, tmp_path, environment) == ""


def test_daemon_threads_in_a_callback_do_not_hold_it_up(
    stalled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = (
        "def slowly(*_):\n"
        "    for _ in range(300):\n"
        "        time.sleep(0.001)\n"
        "for _ in range(4):\n"
        "    in_thread(lambda: wirespeed.put(f's3://{bucket}/up', bytes(40 << 20), progress=slowly))\n"
        "    in_thread(lambda: wirespeed.get(f's3://{bucket}/whole', on_part=slowly))\n"
        "time.sleep(0.7)\n" + END
    )
    for _ in range(3):
        assert ends(script, stalled, tmp_path, environment) == ""


def test_tasks_of_asyncio_that_are_pending_do_not_hold_it_up(
    stalled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = (
        "async def main():\n"
        "    client = wirespeed.Client()\n"
        "    begin = lambda: asyncio.wait_for(client.aio.get(stalled), 60)\n"
        "    tasks = [asyncio.create_task(begin()) for _ in range(8)]\n"
        "    await asyncio.sleep(0.5)\n"
        "asyncio.run(main())\n" + END
    )
    assert ends(script, stalled, tmp_path, environment) == ""


def test_a_loop_that_is_never_closed_does_not_hold_it_up(
    stalled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = (
        "loop = asyncio.new_event_loop()\n"
        "async def begin():\n"
        "    global pending\n"
        "    pending = [wirespeed.aio.get(stalled) for _ in range(8)]\n"
        "    await asyncio.sleep(0.3)\n"
        "loop.run_until_complete(begin())\n" + END
    )
    ends(script, stalled, tmp_path, environment)


def test_streams_iterators_and_buffers_that_are_held_do_not_hold_it_up(
    stalled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = (
        "held = [wirespeed.stream(stalled) for _ in range(4)]\n"
        "held.append(wirespeed.get_many([stalled] * 5, as_completed=True))\n"
        "into = [bytearray(40 << 20) for _ in range(5)]\n"
        "held.append(wirespeed.get_many([stalled] * 5, as_completed=True, into=into))\n"
        "held.append(memoryview(wirespeed.get(f's3://{bucket}/good')))\n"
        "held.append(wirespeed.get(f's3://{bucket}/good').__dlpack__())\n"
        "held.append(wirespeed.list(f's3://{bucket}/'))\n"
        "held[-1].__iter__().__next__()\n"
        "time.sleep(0.2)\n" + END
    )
    assert ends(script, stalled, tmp_path, environment) == ""


def test_uploads_leave_no_parts(
    s3: Any, stalled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = (
        "in_thread(lambda: wirespeed.put(f's3://{bucket}/up', bytes(40 << 20)))\n"
        "held = wirespeed.writer(f's3://{bucket}/up2')\n"
        "in_thread(lambda: held.write(bytes(40 << 20)))\n"
        "time.sleep(1)\n" + END
    )
    assert ends(script, stalled, tmp_path, environment) == ""
    assert s3.list_multipart_uploads(Bucket=stalled).get("Uploads", []) == []
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket=stalled)["Contents"]]
    assert sorted(keys) == ["good", "stalled", "whole"]


def test_the_status_is_the_programs(
    stalled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = "in_thread(lambda: wirespeed.get(stalled))\ntime.sleep(0.3)\n" + END
    assert ends(script + "sys.exit(7)\n", stalled, tmp_path, environment, status=7) == ""
    err = ends(script + "raise ZeroDivisionError\n", stalled, tmp_path, environment, status=1)
    assert err.strip().endswith("ZeroDivisionError")
    assert "wirespeed" not in err


def test_an_exit_in_another_way_is_one_too(
    stalled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = "in_thread(lambda: wirespeed.get(stalled))\ntime.sleep(0.3)\n" + END
    assert ends(script + "os._exit(3)\n", stalled, tmp_path, environment, status=3) == ""


def test_a_call_in_an_exit_handler_is_refused_or_done(
    stalled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    # After the import, so run before the engine is stopped; and before it, so run after.
    script = (
        "import atexit\n"
        "wirespeed.get(f's3://{bucket}/good')\n"
        "def last():\n"
        "    assert wirespeed.get(f's3://{bucket}/good') == b'good'\n"
        "atexit.register(last)\n" + END
    )
    assert ends(script, stalled, tmp_path, environment) == ""
    late = (
        "import atexit, sys, time\n"
        "def last():\n"
        "    try:\n"
        "        wirespeed.get(f's3://{bucket}/good')\n"
        "    except wirespeed.CancelledError as error:\n"
        "        assert 'interpreter ends' in str(error)\n"
        "        print('refused', flush=True)\n"
        "    print(time.monotonic(), flush=True)\n"
        "atexit.register(last)\n"
    )
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            late + BEGIN + "wirespeed.get(f's3://{bucket}/good')\n",
            stalled,
            str(tmp_path),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("refused")


def test_a_client_that_outlives_the_modules_is_no_trouble(
    stalled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = (
        "class Late:\n"
        "    def __init__(self):\n"
        "        self.client = wirespeed.Client()\n"
        "        self.kept = self.client.get(stalled.replace('stalled', 'good'))\n"
        "    def __del__(self):\n"
        "        assert bytes(self.kept) == b'good'\n"
        "        self.client.close()\n"
        "sys.late = Late()\n"
        "cycle = [Late()]\n"
        "cycle.append(cycle)\n" + END
    )
    assert ends(script, stalled, tmp_path, environment) == ""


def test_an_exit_handler_may_join_a_thread_that_waits(
    stalled: str, environment: dict[str, str], tmp_path: Path
) -> None:
    # Registered before the import, so run after the engine is stopped.
    early = (
        "import atexit, time\n"
        "def last():\n"
        "    thread.join()\n"
        "    print(*raised)\n"
        "    print(time.monotonic(), flush=True)\n"
        "atexit.register(last)\n"
    )
    late = (
        "raised = []\n"
        "def wait():\n"
        "    for _ in range(100):\n"
        "        try:\n"
        "            wirespeed.get(stalled)\n"
        "        except wirespeed.CancelledError as error:\n"
        "            raised.append('interpreter ends' in str(error))\n"
        "thread = threading.Thread(target=wait, daemon=True)\n"
        "thread.start()\n"
        "time.sleep(0.5)\n"
    )
    for _ in range(3):
        run = subprocess.run(
            [sys.executable, "-c", early + BEGIN + late, stalled, str(tmp_path)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=20,
        )
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout.splitlines()[0] == " ".join(["True"] * 100)
