"""Jobs in shards on a Dask cluster of real processes, some of which are killed in the middle."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import servers

import wirespeed
from wirespeed import bulk

distributed = pytest.importorskip("distributed")

import wirespeed.dask  # noqa: E402

KEYS = [f"d{n % 5}/f{n:03}" for n in range(100)]
EXPECTED = {key: (key.encode() * 2000)[:6000] for key in KEYS}


def files(folder: Path) -> dict[str, bytes]:
    """All files below a folder, but what a killed process was writing."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(".wirespeed-partial")
    }


@pytest.fixture
def source(bucket: str, client: wirespeed.Client, environment: dict[str, str]) -> Iterator[str]:
    """A prefix with `KEYS`; the default client, here and on workers, finds it."""
    client.put_many([(f"s3://{bucket}/p/{key}", body) for key, body in EXPECTED.items()])
    wirespeed.set_default_client(None)
    yield f"s3://{bucket}/p"
    wirespeed.set_default_client(None)


@pytest.fixture
def cluster(source: str) -> Iterator[Any]:
    """Two workers, each a process, begun again when it dies."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


def test_a_cluster_of_its_own_is_begun_and_ended(source: str, tmp_path: Path) -> None:
    told: list[bulk.Progress] = []
    report = wirespeed.dask.sync(source, tmp_path, workers=1, shards=4, progress=told.append)
    assert files(tmp_path) == EXPECTED
    assert (report.transferred, report.shards, report.ok) == (len(KEYS), 4, True)
    assert [progress.shards for progress in told] == [1, 2, 3, 4]
    assert told[-1].bytes == told[-1].expected == report.bytes


def test_any_scheduler_runs_shards_by_its_address_or_its_client(
    source: str, cluster: Any, tmp_path: Path
) -> None:
    report = wirespeed.dask.copy(source, tmp_path, address=cluster.scheduler_address, shards=4)
    assert report.transferred == len(KEYS)
    with distributed.Client(cluster) as client:
        (tmp_path / KEYS[3]).unlink()
        (tmp_path / "extra").write_bytes(b"x")
        report = wirespeed.dask.sync(source, tmp_path, delete=True, client=client, shards=4)
    assert (report.transferred, report.deleted, report.unchanged) == (1, 1, len(KEYS) - 1)
    assert files(tmp_path) == EXPECTED


def test_killing_workers_loses_nothing_and_doubles_nothing(
    source: str,
    cluster: Any,
    tmp_path: Path,
    origin: servers.Server,
    stats: Callable[[], dict[str, Any]],
) -> None:
    killed: list[int] = []
    with distributed.Client(cluster) as client:
        pids = client.run(os.getpid)

        def kill(progress: bulk.Progress) -> None:
            if progress.shards in (1, 3):
                pid = pids.pop(next(iter(pids)))
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        before = stats()["requests"].get("get", 0)
        with origin.misbehaving({"action": "slow-head:30", "verb": "get"}):
            report = wirespeed.dask.sync(
                source, tmp_path, client=client, shards=10, progress=kill, attempts=5
            )
    assert len(killed) == 2
    assert report.ok
    assert files(tmp_path) == EXPECTED
    # At most what each of the two had in hand when it was killed was fetched twice.
    assert stats()["requests"]["get"] - before <= len(KEYS) + 2 * (len(KEYS) // 10 + 2)


def test_what_fails_is_in_one_report(source: str, cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(bulk.BulkError) as raised:
        wirespeed.dask.copy(
            source,
            tmp_path,
            names=[KEYS[0], "missing", KEYS[1]],
            address=cluster.scheduler_address,
            shards=3,
        )
    report = raised.value.report
    assert (report.transferred, report.failed) == (2, 1)
    assert report.failures[0].source == f"{source}/missing"


def test_a_worker_that_cannot_run_a_shard_is_reported(source: str, cluster: Any) -> None:
    [shard] = bulk.plan(source, "/t", shards=1)
    wrong = bulk.Shard(
        0, 1, shard.items, shard.bytes, shard.spec.replace('"version":1', '"version":7')
    )
    report = wirespeed.dask.run(
        [wrong], address=cluster.scheduler_address, attempts=2, errors="return"
    )
    assert "plan it again" in report.lost[0]
