"""Jobs in shards under `concurrent.futures`: planned, run in real worker processes, some of
which are killed in the middle, and reported of as one."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import servers

import wirespeed
from wirespeed import bulk

KEYS = [f"d{n % 5}/f{n:03}" for n in range(120)] + ["a.b", "a", "d1.txt", "z/ü"]


def content(key: str) -> bytes:
    """What the object of that key holds: 4 to 8 KiB, each another."""
    return (key.encode() * 2000)[: 4096 + 32 * (hash_of(key) % 128)]


def hash_of(key: str) -> int:
    """The same in every process."""
    return sum(key.encode())


def files(folder: Path) -> dict[str, bytes]:
    """All files below a folder, but what a killed process was writing."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(".wirespeed-partial")
    }


@pytest.fixture
def here(environment: dict[str, str]) -> Iterator[None]:
    """The default client, here and in children, finds the store."""
    wirespeed.set_default_client(None)
    yield
    wirespeed.set_default_client(None)


@pytest.fixture
def source(bucket: str, client: wirespeed.Client, here: None) -> str:
    """A prefix with `KEYS`, and a neighbour that is not below it."""
    client.put_many([(f"s3://{bucket}/p/{key}", content(key)) for key in KEYS])
    client.put(f"s3://{bucket}/p2", b"neighbour")
    return f"s3://{bucket}/p"


EXPECTED = {key: content(key) for key in KEYS}


def test_a_sync_over_processes_brings_everything_and_the_next_has_nothing_to_do(
    source: str, tmp_path: Path
) -> None:
    told: list[bulk.Progress] = []
    report = bulk.sync(source, tmp_path / "t", workers=2, shards=5, progress=told.append)
    assert files(tmp_path / "t") == EXPECTED
    assert (report.transferred, report.unchanged, report.shards) == (len(KEYS), 0, 5)
    assert report.bytes == sum(map(len, EXPECTED.values()))
    assert report.ok
    assert [progress.shards for progress in told] == [1, 2, 3, 4, 5]
    assert told[-1].bytes == told[-1].expected == report.bytes
    assert told[-1].objects == told[-1].expected_objects == len(KEYS)

    again = bulk.sync(source, tmp_path / "t", executor=ThreadPoolExecutor(2))
    assert (again.transferred, again.unchanged) == (0, len(KEYS))


def test_shards_go_both_ways_between_buckets_and_delete_in_all_ranges(
    source: str, new_bucket: Callable[[], str], client: wirespeed.Client, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(2) as threads:
        bulk.sync(source, tmp_path, executor=threads, shards=3)
        for key in ["d2/f002", "a"]:
            (tmp_path / key).unlink()
        other = new_bucket()
        for key in ["!before", "d3/x", "\U0010fffdbehind"]:
            client.put(f"s3://{other}/q/{key}", b"x")
        report = bulk.sync(tmp_path, f"s3://{other}/q/", delete=True, executor=threads, shards=4)
        left = sorted(set(KEYS) - {"d2/f002", "a"})
        assert sorted(client.list(f"s3://{other}/q/").keys()) == [f"q/{key}" for key in left]
        assert (report.transferred, report.deleted) == (len(KEYS) - 2, 3)

        copied = bulk.copy(
            f"s3://{other}/q",
            f"s3://{other}/r",
            executor=threads,
            shards=3,
            storage_class="STANDARD_IA",
        )
        assert copied.transferred == len(left)
        assert client.get(f"s3://{other}/r/d1.txt", as_bytes=True) == content("d1.txt")


def test_a_plan_is_balanced_plain_data(source: str) -> None:
    shards = bulk.plan(source, "/shared/t", shards=4, larger=0, older_than=datetime.now(UTC))
    assert [shard.number for shard in shards] == [0, 1, 2, 3]
    assert sum(shard.items for shard in shards) == len(KEYS)
    assert sum(shard.bytes for shard in shards) == sum(map(len, EXPECTED.values()))
    assert max(shard.items for shard in shards) <= len(KEYS) // 4 + 2
    for shard in shards:
        assert pickle.loads(pickle.dumps(shard)) == shard
        assert bulk.Shard.from_json(shard.spec) == shard
        assert json.loads(shard.spec)["job"]["to"] == "/shared/t"


def test_a_shard_holds_no_secret(source: str, store: servers.Server) -> None:
    [shard] = bulk.plan(source, "/shared/t", shards=1)
    assert store.secret_key not in shard.spec
    assert store.access_key not in shard.spec
    assert json.loads(shard.spec)["job"]["settings"]["endpoint_url"] == store.endpoint


def test_a_list_of_names_is_cut_and_each_failure_is_reported(source: str, tmp_path: Path) -> None:
    names = ["a", ("d1.txt", 5000), "missing", "z/ü"]
    with (
        ThreadPoolExecutor(2) as threads,
        pytest.raises(bulk.BulkError, match="1 items failed") as raised,
    ):
        bulk.copy(source, tmp_path, names=names, executor=threads, shards=2)
    assert files(tmp_path) == {key: content(key) for key in ["a", "d1.txt", "z/ü"]}
    [failure] = raised.value.report.failures
    assert (failure.kind, failure.action) == ("not_found", "download")
    assert failure.source == f"{source}/missing"
    assert pickle.loads(pickle.dumps(raised.value)).report == raised.value.report


def test_rules_go_along(source: str, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        report = bulk.copy(
            source, tmp_path, executor=threads, rules=[("exclude", "*"), ("include", "d1*")]
        )
    wanted = {key for key in KEYS if key.startswith("d1")}
    assert set(files(tmp_path)) == wanted
    assert report.transferred == len(wanted)


class Killer:
    """Kills a worker process with each of the first shards that are done."""

    def __init__(self, kills: int) -> None:
        self.left, self.killed = kills, 0

    def __call__(self, progress: bulk.Progress) -> None:
        if self.left and progress.shards < progress.expected_shards:
            workers = multiprocessing.active_children()
            if workers:
                os.kill(workers[0].pid or 0, signal.SIGKILL)
                self.left -= 1
                self.killed += 1


def test_killing_workers_loses_nothing_and_doubles_nothing(
    source: str, tmp_path: Path, origin: servers.Server, stats: Callable[[], dict[str, Any]]
) -> None:
    killer = Killer(3)
    before = stats()["requests"].get("get", 0)
    with origin.misbehaving({"action": "slow-head:30", "verb": "get"}):
        report = bulk.sync(source, tmp_path, workers=2, shards=12, attempts=10, progress=killer)
    assert killer.killed == 3
    assert report.ok
    assert files(tmp_path) == EXPECTED
    assert report.transferred + report.unchanged == len(KEYS)
    # At most what the two workers had in hand at each of the three deaths was fetched again.
    in_hand = 3 * 2 * (len(KEYS) // 12 + 2)
    assert stats()["requests"]["get"] - before <= len(KEYS) + in_hand < 2 * len(KEYS)


def kills_its_process(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Poisoned(ProcessPoolExecutor):
    """Processes that one shard kills, each time."""

    def submit(self, function: Any, /, shard: Any, **keywords: Any) -> Future[Any]:
        if shard.number == 1:
            return super().submit(kills_its_process)
        return super().submit(function, shard, **keywords)


def test_a_shard_that_kills_every_worker_is_reported_and_takes_no_other_with_it(
    source: str, tmp_path: Path
) -> None:
    context = multiprocessing.get_context("spawn")
    report = bulk.sync(
        source,
        tmp_path,
        executor=lambda: Poisoned(2, mp_context=context),
        workers=2,
        shards=4,
        attempts=2,
        errors="return",
    )
    assert list(report.lost) == [1]
    assert "died 2 times" in report.lost[1]
    assert not report.ok
    shards = bulk.plan(source, tmp_path, shards=4)
    assert report.transferred == len(KEYS) - shards[1].items


def test_an_executor_that_broke_and_cannot_be_made_again_is_reported(
    source: str, tmp_path: Path
) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as processes:
        with pytest.raises(BrokenProcessPool):
            processes.submit(kills_its_process).result()
        report = bulk.sync(source, tmp_path, executor=processes, shards=3, errors="return")
    assert sorted(report.lost) == [0, 1, 2]
    assert "give a function that makes one" in report.lost[0]


def test_a_shard_of_the_command_line_is_a_shard_here(
    source: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    wirespeed_command = servers.TARGET / "wirespeed"
    planned = subprocess.run(
        [wirespeed_command, "plan", source, tmp_path, "--shards", "2"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = map(bulk.Shard.from_json, planned.stdout.splitlines())
    here = bulk.run_shard(first)
    ran = subprocess.run(
        [wirespeed_command, "run-shard", "-"],
        input=second.spec,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    report = bulk.merge([bulk.ShardResult.from_json(ran.stdout), here])
    assert report.ok
    assert report.transferred == len(KEYS)
    assert files(tmp_path) == EXPECTED


@pytest.mark.parametrize(
    ("arguments", "options", "error", "says"),
    [
        (("/a", "/b"), {}, wirespeed.ConfigError, "both sides are folders"),
        (("s3:///a", "/b"), {}, wirespeed.ConfigError, "names no bucket"),
        (("s3://bucket/a", "/b"), {"compare": "luck"}, wirespeed.ConfigError, "size_and_time"),
        (("s3://bucket/a", "/b"), {"exclusions": 1}, wirespeed.ConfigError, "exclusions"),
        (("s3://bucket/a", "/b"), {"older_than": datetime(2026, 1, 1)}, TypeError, "time zone"),
        (("s3://no-such-bucket-here/a", "/b"), {}, wirespeed.NotFoundError, "no-such-bucket-here"),
        (("/no/such/folder", "s3://bucket/a"), {}, wirespeed.LocalFileNotFoundError, "/no/such"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_runs(
    here: None,
    arguments: tuple[str, str],
    options: dict[str, Any],
    error: type[Exception],
    says: str,
) -> None:
    with pytest.raises(error, match=says):
        bulk.sync(*arguments, **options)


def test_a_spec_of_another_version_is_refused(source: str) -> None:
    [shard] = bulk.plan(source, "/t", shards=1)
    told = json.loads(shard.spec) | {"version": 7}
    with pytest.raises(wirespeed.ConfigError, match="plan it again"):
        bulk.run_shard(bulk.Shard.from_json(json.dumps(told)))


def test_a_signal_ends_a_shard_that_is_run(
    source: str, tmp_path: Path, origin: servers.Server, environment: dict[str, str]
) -> None:
    program = f"""
import signal, sys
from wirespeed import bulk

[shard] = bulk.plan({source!r}, {str(tmp_path)!r}, shards=1)
def interrupt(progress):
    signal.raise_signal(signal.SIGINT)
try:
    bulk.run_shard(shard, progress=interrupt)
except KeyboardInterrupt:
    sys.exit(42)
"""
    with origin.misbehaving({"action": "slow-head:300", "verb": "get", "key": "p/z/ü"}):
        ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True)
    assert ran.returncode == 42, ran.stderr
    assert not list(tmp_path.rglob("*.wirespeed-partial"))
