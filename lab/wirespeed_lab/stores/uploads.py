"""Puts objects into a store and reads back what clients put there, with boto3 in threads: slow,
and never inside a clock."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from ..driving.digests import BODY
from ..plans import Item, Plan, Series
from .formula import FormulaReader, expected_pieces
from .store import StoreFailed

if TYPE_CHECKING:
    from .store import Store

#: Requests at once, and bytes of a part: a few threads are all that one core of Python feeds.
THREADS = 8
PART = 16 << 20


def client(store: Store) -> Any:
    """A boto3 client of the store that reads no configuration but what it is given."""
    # A server that is started anew has another certificate, in the same file.
    ca = (str(store.ca_file), store.ca_file.stat().st_mtime_ns) if store.ca_file else None
    return _client(store.endpoint, store.region, tuple(store.credentials.items()), ca)


@functools.lru_cache(maxsize=4)
def _client(
    endpoint: str,
    region: str,
    credentials: tuple[tuple[str, str], ...],
    ca: tuple[str, int] | None,
) -> Any:
    keys = dict(credentials)
    session = boto3.session.Session(
        aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=keys.get("AWS_SESSION_TOKEN"),
        region_name=region,
    )
    return session.client(
        "s3",
        endpoint_url=endpoint,
        verify=ca[0] if ca else None,
        config=Config(
            s3={"addressing_style": "path"},
            max_pool_connections=THREADS * 2,
            retries={"mode": "standard", "max_attempts": 5},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def upload(store: Store, series: Iterable[Series]) -> None:
    """Puts every object of the series, by the formula. Raises StoreFailed."""
    s3 = client(store)
    config = TransferConfig(
        multipart_threshold=2 * PART, multipart_chunksize=PART, max_concurrency=2
    )

    def put(found: tuple[str, int]) -> None:
        key, size = found
        reader = FormulaReader(key, size)
        if size < 2 * PART:
            s3.put_object(Bucket=store.bucket, Key=key, Body=reader.read())
        else:
            s3.upload_fileobj(reader, store.bucket, key, Config=config)

    with _failures(store, "cannot be filled"):
        # A series is no dict.
        _each(put, ((key, one.size) for one in series for key in one.keys()))  # noqa: SIM118


def forget(store: Store, plan: Plan) -> None:
    """Deletes the plan's keys. Raises StoreFailed."""
    remove(store, [item.key for item in plan.work])


def remove(store: Store, keys: Iterable[str]) -> None:
    """Deletes the keys, whether they are there or not. Raises StoreFailed."""
    s3, keys = client(store), list(keys)

    def delete(some: list[str]) -> None:
        named = [{"Key": key} for key in some]
        said = s3.delete_objects(Bucket=store.bucket, Delete={"Objects": named, "Quiet": True})
        for error in said.get("Errors", ()):
            raise StoreFailed(f"{store.kind}: {error['Key']!r} cannot be deleted: {error['Code']}")

    with _failures(store, "cannot be cleared"):
        _each(delete, (keys[at : at + 1000] for at in range(0, len(keys), 1000)))


def wrong(store: Store, plan: Plan, most: int) -> list[str]:
    """Complaints about what the plan's puts left, compared byte for byte."""
    s3 = client(store)

    def complaint(item: Item) -> str | None:
        try:
            body = s3.get_object(Bucket=store.bucket, Key=item.key)["Body"]
        except ClientError as error:
            return f"{item.key!r}: {error.response['Error']['Code']}"
        at = 0
        with contextlib.closing(body):
            for piece in expected_pieces(BODY, item.size):
                found = body.read(len(piece))
                if found != piece:
                    return f"{item.key!r} is wrong between bytes {at} and {at + len(piece)}"
                at += len(piece)
            if body.read(1):
                return f"{item.key!r} is longer than {item.size} bytes"
        return None

    with _failures(store, "cannot be read back"):
        return _first(complaint, plan.work, most)


def wrong_heads(store: Store, plan: Plan, most: int) -> list[str]:
    """Complaints about puts whose bytes were not kept: their sizes, and their ETags where the
    object was written in one piece, beside those of bytes that are known to be right."""
    s3 = client(store)
    references: dict[int, str] = {}

    def complaint(item: Item) -> str | None:
        try:
            said = s3.head_object(Bucket=store.bucket, Key=item.key)
        except ClientError as error:
            return f"{item.key!r}: {error.response['Error']['Code']}"
        if said["ContentLength"] != item.size:
            return f"{item.key!r} has {said['ContentLength']} bytes instead of {item.size}"
        whole = references.get(item.size, "")
        # That of an object written in parts has their number behind one more dash.
        if whole and said["ETag"].count("-") == whole.count("-") and said["ETag"] != whole:
            return f"{item.key!r} has other bytes than it should"
        return None

    with _failures(store, "cannot be read back"):
        for size in sorted({item.size for item in plan.work}):
            if size < 2 * PART:
                body = FormulaReader(BODY, size).read()
                put = s3.put_object(Bucket=store.bucket, Key=f"lab-reference/{size}", Body=body)
                references[size] = put["ETag"]
        return _first(complaint, plan.work, most)


@contextlib.contextmanager
def _failures(store: Store, what: str) -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError, OSError) as error:
        raise StoreFailed(f"{store.kind}: {store.bucket} {what}: {error}") from None


def _each(work: Callable[[Any], None], items: Iterable[Any]) -> None:
    """Works on each in threads; the first error ends it."""
    with ThreadPoolExecutor(THREADS) as threads:
        try:
            for _ in threads.map(work, items):
                pass
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _first(complaint: Callable[[Item], str | None], items: Iterable[Item], most: int) -> list[str]:
    with ThreadPoolExecutor(THREADS) as threads:
        found = (said for said in threads.map(complaint, items) if said)
        return [said for said, _ in zip(found, range(most), strict=False)]
