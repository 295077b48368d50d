"""kill -9 in the middle of a job, again and again: with a state file it goes on where it was."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import servers
from files import files_below
from shell import Shell

MIB = 1 << 20
# So slow that a kill finds the job in the middle, also where the machine is busy with other tests.
RATE = "60MB/s"
PARALLEL = 4
PART = 5 * MIB
# Objects of one request, of two parts, and of many.
SIZES = [16 << 10] * 60 + [700 << 10] * 40 + [9 * MIB] * 3 + [45 * MIB] * 2
KILLS = 4


@pytest.fixture(scope="module")
def slow(tmp_path_factory, transcript) -> Iterator[servers.Server]:
    """A server of this module's own, whose counts are of nothing else."""
    with servers.origin(tmp_path_factory.mktemp("slow"), flags=("--nic", RATE)) as server:
        transcript.keep_secret(server.secret_key)
        yield server


@pytest.fixture
def slow_bucket(slow) -> str:
    name = f"resume-{random.randrange(1 << 60):x}"
    slow.boto3().create_bucket(Bucket=name)
    return name


@pytest.fixture
def tree(tmp_path) -> tuple[Path, dict[str, bytes]]:
    """A folder of objects of all sizes, and what is in it."""
    drawn = random.Random(11)
    contents = {
        f"{number % 7}/{number:03}-{size}": drawn.randbytes(size)
        for number, size in enumerate(SIZES)
    }
    for name, body in contents.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return tmp_path / "tree", contents


def counted(server: servers.Server, what: str) -> int:
    """`bytes_in` or `bytes_out` of a server."""
    with urllib.request.urlopen(f"{server.endpoint}/-/stats") as answer:
        return json.load(answer)[what]


def killed_and_resumed(
    ws: Shell, words: list, moved: Callable[[], int], total: int, seed: int
) -> int:
    """Runs a job until it is done, and kills it each time that a drawn share of it was moved.

    Returns how often it was killed.
    """
    drawn = random.Random(seed)
    kills = 0
    while True:
        stop_after = moved() + drawn.uniform(0.05, 0.25) * total if kills < KILLS else None

        def kill_in_time(process: subprocess.Popen, stop_after: float | None = stop_after) -> None:
            while stop_after is not None and process.poll() is None:
                if moved() >= stop_after:
                    process.kill()
                    return
                time.sleep(0.005)

        ran = ws(*words, code=None, meanwhile=kill_in_time)
        if ran.code == 0:
            return kills
        assert ran.code == 137, str(ran)
        kills += 1


def settings() -> list[str]:
    return ["--concurrency", str(PARALLEL), "--part-size", str(PART), "--quiet"]


@pytest.mark.parametrize("verb", [["cp", "--recursive"], ["sync"]], ids=["cp", "sync"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_download_that_is_killed_goes_on(
    slow, wirespeed_at, slow_bucket, tree, tmp_path, verb, seed
):
    _, contents = tree
    s3 = slow.boto3()
    for key, body in contents.items():
        s3.put_object(Bucket=slow_bucket, Key=key, Body=body)
    ws, state, target = wirespeed_at(slow, slow.endpoint), tmp_path / "state", tmp_path / "target"
    total, before = sum(SIZES), counted(slow, "bytes_out")
    words = [*verb, f"s3://{slow_bucket}/", target, "--state", state, *settings()]
    kills = killed_and_resumed(ws, words, lambda: counted(slow, "bytes_out"), total, seed)
    assert kills == KILLS, "it was done before it could be killed"
    assert files_below(target) == contents, "every byte, and no temporary is left"
    assert not state.exists(), "a job that is done leaves no state"
    moved = counted(slow, "bytes_out") - before
    # On the wire, or received and not yet in a file, when it was killed: for each request at most
    # a part, with the listings and heads of each run beside it.
    assert moved <= total + kills * PARALLEL * PART + (kills + 1) * MIB


@pytest.mark.parametrize("verb", [["cp", "--recursive"], ["sync"]], ids=["cp", "sync"])
@pytest.mark.parametrize("seed", [1, 2])
def test_an_upload_that_is_killed_goes_on(
    slow, wirespeed_at, slow_bucket, tree, tmp_path, verb, seed
):
    folder, contents = tree
    ws, state = wirespeed_at(slow, slow.endpoint), tmp_path / "state"
    total, before = sum(SIZES), counted(slow, "bytes_in")
    words = [*verb, folder, f"s3://{slow_bucket}/", "--state", state, *settings()]
    kills = killed_and_resumed(ws, words, lambda: counted(slow, "bytes_in"), total, seed)
    assert kills == KILLS, "it was done before it could be killed"
    s3 = slow.boto3()
    stored = {key: s3.get_object(Bucket=slow_bucket, Key=key)["Body"].read() for key in contents}
    assert stored == contents
    assert s3.list_objects_v2(Bucket=slow_bucket)["KeyCount"] == len(contents)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=slow_bucket), "none is left"
    assert not state.exists()
    moved = counted(slow, "bytes_in") - before
    assert moved <= total + kills * PARALLEL * PART + (kills + 1) * MIB


def test_what_is_finished_is_not_asked_for_again(slow, wirespeed_at, slow_bucket, tmp_path):
    s3 = slow.boto3()
    for number in range(20):
        s3.put_object(Bucket=slow_bucket, Key=f"k{number:02}", Body=b"x" * 1000)
    ws, state, target = wirespeed_at(slow, slow.endpoint), tmp_path / "state", tmp_path / "target"
    words = ["cp", "--recursive", f"s3://{slow_bucket}/", target, "--state", state]
    with slow.misbehaving({"action": "status:403", "verb": "get", "key": "k07"}):
        ran = ws(*words, code=1)
    assert b"k07" in ran.err, str(ran)
    assert state.exists(), "one failed: the job is not done"
    (target / "k03").unlink()
    ran = ws(*words)
    assert [line for line in ran.lines if "k07" in line], str(ran)
    assert not (target / "k03").exists(), "what was finished is believed, and not looked at"
    assert not state.exists()


def test_another_job_may_not_take_the_file(slow, wirespeed_at, slow_bucket, tmp_path):
    slow.boto3().put_object(Bucket=slow_bucket, Key="a/k", Body=b"x")
    ws, state = wirespeed_at(slow, slow.endpoint), tmp_path / "state"
    with slow.misbehaving({"action": "status:403", "verb": "get", "key": "a/k"}):
        ws("cp", "-r", f"s3://{slow_bucket}/a", tmp_path / "t", "--state", state, code=None)
    kept = state.read_bytes()
    ran = ws("cp", "-r", f"s3://{slow_bucket}/b", tmp_path / "t", "--state", state, code=2)
    assert b"another job" in ran.err, str(ran)
    assert state.read_bytes() == kept


def test_the_file_is_in_use_by_one_process(slow, wirespeed_at, slow_bucket, tree, tmp_path):
    folder, _ = tree
    ws, state = wirespeed_at(slow, slow.endpoint), tmp_path / "state"
    words = ["cp", "--recursive", folder, f"s3://{slow_bucket}/", "--state", state, *settings()]

    def try_a_second(process: subprocess.Popen) -> None:
        while not (state.exists() and state.stat().st_size):
            time.sleep(0.01)
        with contextlib.ExitStack() as stack:
            stack.callback(process.kill)
            ran = ws(*words, code=None)
            assert ran.code == 4, str(ran)
            assert str(process.pid).encode() in ran.err, str(ran)

    ws(*words, code=137, meanwhile=try_a_second)
