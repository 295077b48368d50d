"""Jobs of many objects on a Dask cluster.

    import wirespeed.dask

    report = wirespeed.dask.sync("s3://bucket/a", "s3://other/a", address="tcp://scheduler:8786")

Thin: the shards are those of `wirespeed.bulk`, each a task. Dask decides where they run and runs
again what was on a worker that is gone. Needs ``distributed`` here, and wirespeed on the workers.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from typing import Any, Literal, Unpack

import wirespeed
from wirespeed.bulk import Options, Progress, Report, Shard, plan, run_shard
from wirespeed.bulk.jobs import SHARDS_A_WORKER, Account

try:
    # Their types are partly unknown, and their names partly not exported.
    _dask: Any = importlib.import_module("dask")
    _distributed: Any = importlib.import_module("distributed")
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"{missing.name} is not installed: pip install distributed,"
        " or pip install 'wirespeed[dask]'",
        name=missing.name,
    ) from missing

__all__ = ["copy", "run", "sync"]


def sync(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    delete: bool = False,
    address: str | None = None,
    client: Any = None,
    workers: int | None = None,
    shards: int | None = None,
    attempts: int = 3,
    progress: Callable[[Progress], object] | None = None,
    errors: Literal["raise", "return"] = "raise",
    s3: wirespeed.Client | None = None,
    **options: Unpack[Options],
) -> Report:
    """Copies what the target does not have, or has otherwise, on a cluster.

    Args:
        source: ``"s3://bucket/prefix"``, or a folder that every worker sees under this path.
        target: the same of the other side.
        delete: also deletes what the source has no more: nothing where a listing failed.
        address: of a scheduler, as ``"tcp://host:8786"``.
        client: a ``distributed.Client``, in the place of an address. Without either a cluster of
            processes of this machine is begun, and ended.
        workers: how many processes such a cluster has; as many as cores where it is ``None``.
        shards: how many the job is cut into, at most; 8 a worker where it is ``None``.
        attempts: how often a shard is begun whose worker dies, or raises.
        progress: called with a `wirespeed.bulk.Progress` when a shard is done.
        errors: ``"raise"`` raises `wirespeed.bulk.BulkError` at the end where anything failed,
            ``"return"`` leaves it to the report. In either case all the rest is done.
        s3: who looks through the source, and works on the workers, where it goes by pickling.
            ``None`` for the default client here, and on each worker one with the credentials that
            are there.
        options: as of `wirespeed.bulk.Options`.

    Raises:
        BulkError: something failed; its `report` says what.
        ConfigError: the job makes no sense.
    """
    with _connected(address, client, workers, attempts) as cluster:
        number = shards or SHARDS_A_WORKER * _workers(cluster)
        planned = plan(source, target, delete=delete, shards=number, client=s3, **options)
        return _run(cluster, planned, attempts, progress, errors, s3)


def copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    names: Iterable[str | tuple[str, int]] | None = None,
    address: str | None = None,
    client: Any = None,
    workers: int | None = None,
    shards: int | None = None,
    attempts: int = 3,
    progress: Callable[[Progress], object] | None = None,
    errors: Literal["raise", "return"] = "raise",
    s3: wirespeed.Client | None = None,
    **options: Unpack[Options],
) -> Report:
    """Copies all of the source, or the names given, on a cluster. The keywords are those of `sync`;
    of a shard whose worker died what it had copied is copied again.

    Raises:
        BulkError: something failed; its `report` says what.
        ConfigError: the job makes no sense.
    """
    with _connected(address, client, workers, attempts) as cluster:
        number = shards or SHARDS_A_WORKER * _workers(cluster)
        planned = plan(
            source, target, verb="copy", names=names, shards=number, client=s3, **options
        )
        return _run(cluster, planned, attempts, progress, errors, s3)


def run(
    shards: Iterable[Shard],
    *,
    address: str | None = None,
    client: Any = None,
    workers: int | None = None,
    attempts: int = 3,
    progress: Callable[[Progress], object] | None = None,
    errors: Literal["raise", "return"] = "raise",
    s3: wirespeed.Client | None = None,
) -> Report:
    """Runs shards of `wirespeed.bulk.plan` on a cluster; the keywords are those of `sync`."""
    with _connected(address, client, workers, attempts) as cluster:
        return _run(cluster, list(shards), attempts, progress, errors, s3)


@contextlib.contextmanager
def _connected(
    address: str | None, client: Any, workers: int | None, attempts: int
) -> Generator[Any]:
    if client is not None:
        yield client
        return
    if address is not None:
        with _distributed.Client(address, set_as_default=False) as connected:
            yield connected
        return
    # A thread a process: each shard has the engine's own threads to itself.
    deaths = {"distributed.scheduler.allowed-failures": attempts - 1}
    number = workers or os.cpu_count() or 1
    with (
        _dask.config.set(deaths),
        _distributed.LocalCluster(
            n_workers=number, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        _distributed.Client(cluster, set_as_default=False) as connected,
    ):
        yield connected


def _workers(cluster: Any) -> int:
    """Shards that run at a time; of a cluster that is still to grow, one."""
    return max(1, sum(cluster.nthreads().values()))


def _run(
    cluster: Any,
    shards: list[Shard],
    attempts: int,
    progress: Callable[[Progress], object] | None,
    errors: Literal["raise", "return"],
    s3: wirespeed.Client | None,
) -> Report:
    account = Account(shards, progress)
    job = uuid.uuid4().hex
    begun: Counter[int] = Counter()
    running: dict[str, Shard] = {}

    def submit(shard: Shard) -> Any:
        begun[shard.number] += 1
        key = f"wirespeed-{job}-{shard.number}-{begun[shard.number]}"
        running[key] = shard
        # A key of its own and `pure=False`: no result of an earlier job is taken for this one's.
        return cluster.submit(run_shard, shard, client=s3, key=key, pure=False)

    # Not every client is the default one.
    first = [submit(shard) for shard in shards]
    ended = _distributed.as_completed(first, loop=cluster.loop, raise_errors=False)
    for future in ended:
        shard = running.pop(future.key)
        # A result is fetched as soon as it is there: lost with its worker, it would be run again.
        trouble = future.exception()
        if trouble is None:
            account.done(future.result())
        elif begun[shard.number] < attempts and not isinstance(trouble, _distributed.KilledWorker):
            ended.add(submit(shard))
        else:
            account.lost(shard, f"{type(trouble).__name__}: {trouble}")
        future.release()
    return account.close(errors)
