"""Jobs: planned, run in an executor, and reported of as one.

Owns what a job's keywords mean in a spec, and what happens when a worker process dies: its pool is
broken then, with every shard that was running in it, so a new pool is made and those shards are run
again. The last attempt at a shard is made with nothing else running, so that one which kills its
worker every time takes no other with it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from datetime import UTC, datetime
from typing import Any, Literal, TypedDict, Unpack

import wirespeed
from wirespeed._wirespeed import _plan_shards  # pyright: ignore[reportPrivateUsage]

from .shards import Progress, Report, Shard, ShardResult, merge, run_shard

#: Shards a worker gets where their number is not given: enough that the last ones end together.
SHARDS_A_WORKER = 8


class BulkError(wirespeed.WirespeedError):
    """Something of a job failed; `report` says what, and what was done."""

    report: Report

    def __init__(self, report: Report) -> None:
        super().__init__(_sentence(report))
        self.report = report

    def __reduce__(self) -> tuple[type[BulkError], tuple[Report]]:
        return BulkError, (self.report,)


class Options(TypedDict, total=False):
    """Keywords of a job, beyond where it goes from and to."""

    #: Which names are wanted, as ``[("exclude", "*"), ("include", "*.jpg")]``: the last that
    #: matches decides. ``*`` stands for ``/`` too.
    rules: Sequence[tuple[Literal["include", "exclude"], str]]
    older_than: datetime
    newer_than: datetime
    #: Only what has more, or fewer, bytes than this.
    larger: int
    smaller: int
    #: When both sides have the same.
    compare: Literal["size_and_time", "exact_time", "size_only", "checksum", "always"]
    #: What is on the other side stays as it is.
    no_clobber: bool
    #: Times and modes of files are kept as metadata, and given back.
    preserve: bool
    #: Symbolic links are left out.
    no_follow_symlinks: bool
    #: Copies from S3 to S3 pass through the workers.
    through_here: bool
    #: Nothing is changed, only counted.
    dry_run: bool
    request_payer: bool
    expected_bucket_owner: str
    content_type: str
    no_guess_mime_type: bool
    content_encoding: str
    content_disposition: str
    content_language: str
    cache_control: str
    expires: datetime
    website_redirect: str
    metadata: Mapping[str, str]
    tags: Mapping[str, str]
    storage_class: str
    acl: str
    sse: Literal["AES256", "aws:kms"]
    sse_kms_key_id: str
    sse_kms_bucket_key: bool
    sse_kms_context: str
    checksum: Literal["CRC64NVME", "CRC32", "CRC32C", "SHA1", "SHA256", "none"]
    metadata_directive: Literal["COPY", "REPLACE"]


_WRITE = frozenset(
    {
        "content_type",
        "no_guess_mime_type",
        "content_encoding",
        "content_disposition",
        "content_language",
        "cache_control",
        "expires",
        "website_redirect",
        "metadata",
        "tags",
        "storage_class",
        "acl",
        "sse",
        "sse_kms_key_id",
        "sse_kms_bucket_key",
        "sse_kms_context",
        "checksum",
        "metadata_directive",
    }
)


def plan(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    verb: Literal["sync", "copy"] = "sync",
    shards: int = 64,
    delete: bool = False,
    names: Iterable[str | tuple[str, int]] | None = None,
    client: wirespeed.Client | None = None,
    **options: Unpack[Options],
) -> list[Shard]:
    """Cuts a job into shards, by one look through the source or by a list of names.

    Args:
        source: ``"s3://bucket/prefix"``, or a folder that every worker sees under this path.
        target: the same of the other side.
        verb: whether what the target has already is left out, or all is copied.
        shards: how many, at most; they are of about the same objects and bytes.
        delete: a sync deletes what the source has no more.
        names: only these, relative to the source, with their sizes in bytes where they are known;
            the source is not listed then.
        client: who looks; the default client where it is ``None``. Its endpoint and region go
            along in the shards, its credentials do not.

    Raises:
        ConfigError: the job makes no sense.
        WirespeedError: the source cannot be listed.
    """
    listed = None
    if names is not None:
        pairs = ((name, None) if isinstance(name, str) else name for name in names)
        listed = json.dumps([{"key": key, "size": size} for key, size in pairs])
    job = _spec(verb, source, target, delete, options)
    texts = _plan_shards(client or wirespeed.default_client(), job, listed, shards)
    return [Shard.from_json(text) for text in texts]


def sync(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    delete: bool = False,
    executor: Executor | Callable[[], Executor] | None = None,
    workers: int | None = None,
    shards: int | None = None,
    attempts: int = 3,
    progress: Callable[[Progress], object] | None = None,
    errors: Literal["raise", "return"] = "raise",
    client: wirespeed.Client | None = None,
    **options: Unpack[Options],
) -> Report:
    """Copies what the target does not have, or has otherwise, over many processes.

    Args:
        source: ``"s3://bucket/prefix"``, or a folder that every worker sees under this path.
        target: the same of the other side.
        delete: also deletes what the source has no more: nothing where a listing failed.
        executor: where shards run: one of `concurrent.futures`' kind, or a function that makes one,
            which is called again when one is broken. ``None`` for processes of this machine.
        workers: how many shards run at a time; as many as cores where it is ``None``.
        shards: how many the job is cut into, at most; 8 a worker where it is ``None``.
        attempts: how often a shard is begun whose worker dies.
        progress: called with a `Progress` when a shard is done.
        errors: ``"raise"`` raises `BulkError` at the end where anything failed, ``"return"`` leaves
            it to the report. In either case all the rest is done.
        client: as of `plan`; goes to the workers too, by pickling, where it is given.
        options: as of `Options`.

    Raises:
        BulkError: something failed; its `report` says what.
        ConfigError: the job makes no sense.
    """
    planned = plan(
        source,
        target,
        delete=delete,
        shards=shards or SHARDS_A_WORKER * _width(executor, workers),
        client=client,
        **options,
    )
    return run(
        planned,
        executor=executor,
        workers=workers,
        attempts=attempts,
        progress=progress,
        errors=errors,
        client=client,
    )


def copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    names: Iterable[str | tuple[str, int]] | None = None,
    executor: Executor | Callable[[], Executor] | None = None,
    workers: int | None = None,
    shards: int | None = None,
    attempts: int = 3,
    progress: Callable[[Progress], object] | None = None,
    errors: Literal["raise", "return"] = "raise",
    client: wirespeed.Client | None = None,
    **options: Unpack[Options],
) -> Report:
    """Copies all of the source, or the names given, over many processes. The keywords are those of
    `sync`; of a shard whose worker died what it had copied is copied again.

    Raises:
        BulkError: something failed; its `report` says what.
        ConfigError: the job makes no sense.
    """
    planned = plan(
        source,
        target,
        verb="copy",
        names=names,
        shards=shards or SHARDS_A_WORKER * _width(executor, workers),
        client=client,
        **options,
    )
    return run(
        planned,
        executor=executor,
        workers=workers,
        attempts=attempts,
        progress=progress,
        errors=errors,
        client=client,
    )


def run(
    shards: Iterable[Shard],
    *,
    executor: Executor | Callable[[], Executor] | None = None,
    workers: int | None = None,
    attempts: int = 3,
    progress: Callable[[Progress], object] | None = None,
    errors: Literal["raise", "return"] = "raise",
    client: wirespeed.Client | None = None,
) -> Report:
    """Runs shards of `plan` in an executor; the keywords are those of `sync`."""
    account = Account(list(shards), progress)
    with _Pool(executor, workers) as pool:
        _run(pool, account, attempts, client)
    return account.close(errors)


class Account:
    """What has come of a job's shards so far, and who is told of it."""

    def __init__(
        self, shards: list[Shard], progress: Callable[[Progress], object] | None = None
    ) -> None:
        self.shards = shards
        self._progress = progress
        self._results: dict[int, ShardResult] = {}
        self._lost: dict[int, str] = {}

    def done(self, result: ShardResult) -> None:
        """A shard has come to its end."""
        self._results[result.number] = result
        if self._progress is None:
            return
        done = [shard for shard in self.shards if shard.number in self._results]
        self._progress(
            Progress(
                bytes=sum(shard.bytes for shard in done),
                expected=sum(shard.bytes for shard in self.shards),
                objects=sum(shard.items for shard in done),
                expected_objects=sum(shard.items for shard in self.shards),
                shards=len(done),
                expected_shards=len(self.shards),
                failed=sum(result.failed for result in self._results.values()),
            )
        )

    def lost(self, shard: Shard, why: str) -> None:
        """A shard is given up."""
        self._lost[shard.number] = why

    def close(self, errors: Literal["raise", "return"]) -> Report:
        """The report of all."""
        report = merge(self._results.values(), self._lost)
        if errors == "raise" and not report.ok:
            raise BulkError(report)
        return report


class _Pool:
    """An executor, and another where it is broken and can be made again."""

    def __init__(
        self, executor: Executor | Callable[[], Executor] | None, workers: int | None
    ) -> None:
        self.width = _width(executor, workers)
        self._make: Callable[[], Executor] | None = None
        self._executor: Executor | None = None
        if isinstance(executor, Executor):
            self._executor = executor
        else:
            self._make = executor or self._processes

    def _processes(self) -> Executor:
        # Forked, a worker would begin with the locks of threads that it does not have.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.width, mp_context=context)

    def submit(self, shard: Shard, client: wirespeed.Client | None) -> Future[ShardResult]:
        """Hands a shard to the executor, which may say that it is broken."""
        if self._executor is None:
            assert self._make is not None
            self._executor = self._make()
        return self._executor.submit(run_shard, shard, client=client)

    def renew(self) -> bool:
        """Lets go of a broken executor; whether there can be another."""
        if self._make is None:
            return False
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
        self._executor = None
        return True

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        # An executor of the caller's own is the caller's to end.
        self.renew()


def _run(pool: _Pool, account: Account, attempts: int, client: wirespeed.Client | None) -> None:
    waiting = deque(account.shards)
    running: dict[Future[ShardResult], Shard] = {}
    begun: Counter[int] = Counter()
    usable = True
    while usable and (waiting or running):
        broken: BaseException | None = None
        suspects: list[Shard] = []
        while waiting and _may_begin(waiting[0], running.values(), begun, attempts, pool.width):
            shard = waiting.popleft()
            try:
                future = pool.submit(shard, client)
            except BrokenExecutor as error:
                broken = error
                waiting.appendleft(shard)
                break
            running[future] = shard
            begun[shard.number] += 1
        if broken is None:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
        else:
            # All that ran in it has ended, or does so now.
            done, _ = wait(running)
        for future in done:
            shard = running.pop(future)
            try:
                account.done(future.result())
            except BrokenExecutor as error:
                broken = error
                suspects.append(shard)
        if broken is None:
            continue
        for future, shard in running.items():
            try:
                account.done(future.result())
            except BrokenExecutor:
                suspects.append(shard)
        running.clear()
        usable = pool.renew()
        for shard in suspects:
            if begun[shard.number] >= attempts:
                account.lost(shard, f"its worker died {attempts} times: {broken}")
            else:
                waiting.append(shard)
        if not usable:
            why = f"the executor broke ({broken}); give a function that makes one, to make another"
            for shard in waiting:
                account.lost(shard, why)


def _may_begin(
    shard: Shard,
    running: Iterable[Shard],
    begun: Counter[int],
    attempts: int,
    width: int,
) -> bool:
    others = list(running)
    # What has been begun most often by now may be what kills the workers: it runs alone.
    alone = any(1 < begun[other.number] == attempts for other in others)
    if begun[shard.number] and begun[shard.number] + 1 == attempts:
        return not others
    return not alone and len(others) < width


def _width(executor: Executor | Callable[[], Executor] | None, workers: int | None) -> int:
    given = workers or getattr(executor, "_max_workers", None)
    return given if isinstance(given, int) else os.cpu_count() or 1


def _spec(
    verb: str,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    delete: bool,
    options: Options,
) -> str:
    told: dict[str, Any] = {}
    write: dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        (write if name in _WRITE else told)[name] = _plain(name, value)
    if delete:
        told["delete"] = True
    if write:
        told["write"] = write
    ends = {"from": _place(source), "to": _place(target)}
    return json.dumps({"verb": verb, **ends, "options": told})


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise TypeError(f"{name} is a datetime that knows its time zone, as datetime.now(UTC)")
        return value.astimezone(UTC).isoformat()
    if name == "rules":
        return [{kind: pattern} for kind, pattern in value]
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return value


def _place(place: str | os.PathLike[str]) -> str:
    text = os.fspath(place)
    return text if text.startswith("s3://") else os.path.abspath(text)


def _sentence(report: Report) -> str:
    parts = [
        (report.failed, "items failed"),
        (len(report.stopped), "shards ended early"),
        (len(report.withheld), "shards did not delete"),
        (len(report.lost), "shards were lost"),
    ]
    what = ", ".join(f"{number} {name}" for number, name in parts if number)
    first = [failure.message for failure in report.failures[:1]]
    for reasons in (report.stopped, report.withheld, report.lost):
        first += [f"shard {number}: {why}" for number, why in reasons.items()]
    return f"{what}; the first: {first[0]}" if first else what
