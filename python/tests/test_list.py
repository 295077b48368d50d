"""Listings: one object at a time, pages as columns, all at once."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import chain

import endpoints
import polars
import pyarrow
import pytest

import wirespeed

KEYS = ["a b", "a+b", "a/1", "a/2", "b%2Fc", "b/3", "ä/ö", "日本/語"]


@pytest.fixture
def filled(bucket, s3):
    for number, key in enumerate(KEYS):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x" * number)
    return bucket


@pytest.fixture
def refusing(new_client, stats):
    """A client, and how many LISTs of it have reached the server so far."""
    before = stats()["requests"].get("list", 0)
    return new_client(), lambda: stats()["requests"].get("list", 0) - before


@pytest.mark.every_store
def test_objects_come_in_order_with_what_the_server_says_of_them(verbs, filled, s3):
    objects = verbs.each(verbs.list(f"s3://{filled}"))
    theirs = s3.list_objects_v2(Bucket=filled)["Contents"]
    assert [found.key for found in objects] == [one["Key"] for one in theirs] == KEYS
    for found, one in zip(objects, theirs, strict=True):
        assert (found.size, found.etag) == (one["Size"], one["ETag"])
        assert abs(found.last_modified - one["LastModified"]) < timedelta(seconds=1)
        assert found.last_modified.utcoffset() == timedelta(0)
        assert found.storage_class == one.get("StorageClass")
        assert (found.version_id, found.is_latest, found.is_delete_marker) == (None, True, False)


@pytest.mark.every_store
def test_many_pages_are_one_listing(verbs, filled):
    listing = verbs.list(bucket=filled, page_size=3)
    assert [found.key for found in verbs.each(listing)] == KEYS
    pages = verbs.each(listing.pages())
    assert [len(page) for page in pages] == [3, 3, 2]
    assert list(chain.from_iterable(page.keys() for page in pages)) == KEYS
    assert verbs.result(listing.keys) == KEYS
    table = verbs.result(listing.table)
    assert (len(table), table.keys(), table.sizes()) == (8, KEYS, list(range(8)))


def test_a_prefix_is_taken_literally_in_either_notation(verbs, filled):
    assert verbs.result(verbs.list(f"s3://{filled}/b%2F").keys) == ["b%2Fc"]
    assert verbs.result(verbs.list("a/", bucket=filled).keys) == ["a/1", "a/2"]
    assert verbs.result(verbs.list("s3", bucket=filled).keys) == []


@pytest.mark.every_store
def test_a_delimiter_rolls_keys_up_into_prefixes(verbs, filled):
    listing = verbs.list(bucket=filled, delimiter="/")
    table = verbs.result(listing.table)
    assert table.keys() == ["a b", "a+b", "b%2Fc"]
    assert table.prefixes == ["a/", "b/", "ä/", "日本/"]
    assert [found.key for found in verbs.each(listing)] == table.keys()
    small = verbs.each(verbs.list(bucket=filled, delimiter="/", page_size=1).pages())
    assert [prefix for page in small for prefix in page.prefixes] == table.prefixes
    assert list(chain.from_iterable(page.keys() for page in small)) == table.keys()
    only_prefixes = verbs.list("a", bucket=filled, delimiter="a", page_size=1)
    assert verbs.result(only_prefixes.keys) == ["a b", "a+b", "a/1", "a/2"]


@pytest.mark.every_store
def test_a_listing_starts_after_a_key(verbs, filled):
    assert verbs.result(verbs.list(bucket=filled, start_after="b%2Fc").keys) == KEYS[5:]
    assert verbs.result(verbs.list("a", bucket=filled, start_after="a/1").keys) == ["a/2"]


def test_versions_and_delete_markers_are_listed_newest_first(verbs, versioned_bucket, s3):
    put = {"Bucket": versioned_bucket, "Key": "k"}
    first = s3.put_object(**put, Body=b"1")["VersionId"]
    second = s3.put_object(**put, Body=b"22")["VersionId"]
    marker = s3.delete_object(**put)["VersionId"]
    listing = verbs.list(f"s3://{versioned_bucket}/", versions=True, page_size=2)
    found = verbs.each(listing)
    assert [(one.version_id, one.size, one.is_latest, one.is_delete_marker) for one in found] == [
        (marker, 0, True, True),
        (second, 2, False, False),
        (first, 1, False, False),
    ]
    assert verbs.result(listing.keys) == ["k", "k", "k"]
    table = pyarrow.record_batch(verbs.result(listing.table))
    assert table.column("version_id").to_pylist() == [marker, second, first]
    assert table.column("is_latest").to_pylist() == [True, False, False]
    assert table.column("is_delete_marker").to_pylist() == [True, False, False]
    assert verbs.result(verbs.list(bucket=versioned_bucket).keys) == []


@pytest.mark.every_store
def test_an_empty_listing_is_empty_in_every_form(verbs, bucket):
    listing = verbs.list(bucket=bucket)
    assert verbs.each(listing) == verbs.each(listing.pages()) == verbs.result(listing.keys) == []
    table = verbs.result(listing.table)
    assert (len(table), table.keys(), list(table), table.prefixes) == (0, [], [], [])
    assert pyarrow.record_batch(table).schema.names[:2] == ["key", "size"]


def test_the_first_page_alone_is_one_request(verbs, filled, stats):
    before = stats()["requests"].get("list", 0)
    page = verbs.result(verbs.list(bucket=filled, page_size=2).first_page)
    assert page.keys() == KEYS[:2]
    assert verbs.result(verbs.list("nothing", bucket=filled).first_page).keys() == []
    assert stats()["requests"]["list"] - before == 2
    with pytest.raises(wirespeed.NotFoundError):
        verbs.result(verbs.list(bucket="no-such-bucket-here").first_page)
    with pytest.raises(wirespeed.ConfigError, match="pages"):
        verbs.result(verbs.list(bucket=filled, versions=True).first_page)


def test_each_reading_begins_at_the_beginning(client, filled):
    listing = client.list(bucket=filled)
    one, other = iter(listing), iter(listing)
    assert [next(one).key, next(one).key, next(other).key] == ["a b", "a+b", "a b"]
    client.put(f"s3://{filled}/a", b"")
    assert listing.keys() == ["a", *KEYS]


def test_nothing_is_sent_before_it_is_read_and_then_one_page_ahead(refusing, filled):
    client, lists = refusing
    listing = client.list(bucket=filled, page_size=1)
    pages = listing.pages()
    time.sleep(0.1)
    assert lists() == 0
    next(pages)
    time.sleep(0.2)
    assert lists() == 2
    next(pages)
    time.sleep(0.2)
    assert lists() == 3
    del pages
    assert len(listing.keys()) == 8
    assert lists() == 3 + 8


def test_a_missing_bucket_is_an_error_and_no_empty_listing(verbs):
    listing = verbs.list("s3://there-is-none-of-this-name/")
    for read in (
        lambda: verbs.each(listing),
        lambda: verbs.each(listing.pages()),
        lambda: verbs.result(listing.keys),
        lambda: verbs.result(listing.table),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            read()
        assert isinstance(caught.value, wirespeed.NotFoundError)
        assert caught.value.bucket == "there-is-none-of-this-name"


def test_a_page_is_a_sequence_of_its_objects(client, filled):
    (page,) = client.list(bucket=filled).pages()
    assert len(page) == 8
    assert [found.key for found in page] == KEYS
    assert (page[0].key, page[-1].key) == (KEYS[0], KEYS[-1])
    assert [found.key for found in page[1:6:2]] == KEYS[1:6:2]
    assert [found.key for found in page[::-1]] == KEYS[::-1]
    assert page[8:] == []
    for wrong in (8, -9):
        with pytest.raises(IndexError, match="of a Page of 8 objects"):
            page[wrong]
    with pytest.raises(TypeError, match="integer or a slice"):
        page["a"]
    assert repr(page) == "<wirespeed.Page of 8 objects>"
    assert repr(page[2]) == "<wirespeed.ListedObject key='a/1' size=2>"


@pytest.mark.every_store
def test_columns_go_into_pyarrow_and_polars(client, filled, s3):
    theirs = s3.list_objects_v2(Bucket=filled)["Contents"]
    page = client.list(bucket=filled, page_size=3).table()
    batch = pyarrow.record_batch(page)
    batch.validate(full=True)
    assert [(field.name, str(field.type), field.nullable) for field in batch.schema] == [
        ("key", "string", False),
        ("size", "int64", False),
        ("last_modified", "timestamp[us, tz=UTC]", True),
        ("etag", "string", True),
        ("storage_class", "string", True),
    ]
    assert batch.column("key").to_pylist() == KEYS
    assert batch.column("size").to_pylist() == [one["Size"] for one in theirs]
    assert batch.column("etag").to_pylist() == [one["ETag"] for one in theirs]
    assert batch.column("storage_class").to_pylist() == [one.get("StorageClass") for one in theirs]
    newest = max(batch.column("last_modified").to_pylist())
    assert abs(datetime.now(UTC) - newest) < timedelta(minutes=5)
    assert pyarrow.table(page).to_pylist() == batch.to_pylist()
    assert pyarrow.schema(page) == batch.schema
    frame = polars.DataFrame(page)
    assert frame.get_column("key").to_list() == KEYS
    assert frame.get_column("size").sum() == sum(range(8))


def test_columns_live_as_long_as_whoever_took_them(client, filled):
    batch = pyarrow.record_batch(client.list(bucket=filled).table())
    gc.collect()
    assert batch.column("key").to_pylist() == KEYS


def resident() -> int:
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_capsules_that_nobody_takes_from_leak_nothing(client, bucket):
    for number in range(20):
        client.put(f"s3://{bucket}/{'k' * 900}{number}", b"")
    page = client.list(bucket=bucket).table()

    def drop(times):
        for _ in range(times):
            page.__arrow_c_schema__()
            page.__arrow_c_array__()
            page.__arrow_c_stream__()
            pyarrow.record_batch(page)

    drop(500)
    before = resident()
    drop(5000)
    assert resident() - before < 2 << 20


def test_columns_outlive_their_page_in_a_dropped_listing_without_leaking(client, bucket):
    for number in range(20):
        client.put(f"s3://{bucket}/{'k' * 900}{number}", b"")

    def read(times):
        for _ in range(times):
            capsules = client.list(bucket=bucket).table().__arrow_c_array__()
            del capsules

    read(50)
    before = resident()
    read(200)
    assert resident() - before < 4 << 20


def test_an_iteration_may_be_shared_by_threads(client, bucket):
    keys = [f"{number:03}" for number in range(60)]
    client_keys = ThreadPoolExecutor(8)
    list(client_keys.map(lambda key: client.put(key, b"", bucket=bucket), keys))
    shared = iter(client.list(bucket=bucket, page_size=7))
    found = list(client_keys.map(lambda _: [one.key for one in shared], range(4)))
    client_keys.shutdown()
    assert sorted(key for part in found for key in part) == keys


def interrupt_soon(after=0.3):
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_ctrl_c_ends_a_wait_for_a_page():
    with endpoints.silent() as url:
        client = wirespeed.Client(endpoint_url=url, region="us-east-1", anonymous=True)
        listing = client.list("s3://bucket")
        for read in (listing.keys, lambda: next(iter(listing))):
            interrupt_soon()
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                read()
            assert time.monotonic() - began < 2


def test_an_interrupted_reading_goes_on_where_it_was(store, filled):
    with endpoints.slow(store.port, 2000) as url:
        client = wirespeed.Client(
            endpoint_url=url,
            region="us-east-1",
            access_key_id=store.access_key,
            secret_access_key=store.secret_key,
        )
        objects = iter(client.list(bucket=filled))
        for _ in range(2):
            interrupt_soon(0.1)
            with pytest.raises(KeyboardInterrupt):
                next(objects)
        assert [found.key for found in objects] == KEYS


def test_a_cancelled_wait_loses_no_page(client, filled):
    async def main():
        objects = aiter(client.aio.list(bucket=filled, page_size=1))
        found, cancelled = [], 0
        while True:
            waiting = asyncio.ensure_future(anext(objects, None))
            await asyncio.sleep(0)
            if cancelled < 20:
                # At whatever moment it is hit.
                await asyncio.sleep(0.0005 * (cancelled % 10))
                cancelled += waiting.cancel()
            try:
                one = await waiting
            except asyncio.CancelledError:
                continue
            if one is None:
                return found, cancelled
            found.append(one.key)

    found, cancelled = asyncio.run(main())
    assert found == KEYS
    assert cancelled > 0


def test_what_has_arrived_is_there_without_the_loop(client, filled):
    async def main():
        objects = aiter(client.aio.list(bucket=filled))
        await anext(objects)
        turns = []
        asyncio.get_running_loop().call_soon(turns.append, "the loop turned")
        keys = [(await anext(objects)).key for _ in KEYS[1:]]
        assert turns == []
        await asyncio.sleep(0)
        return keys, turns

    assert asyncio.run(main()) == (KEYS[1:], ["the loop turned"])


def test_pages_may_be_read_side_by_side(client, filled):
    async def main():
        async def keys(prefix):
            return [found.key async for found in client.aio.list(prefix, bucket=filled)]

        return await asyncio.gather(keys("a"), keys("b"), keys(""))

    assert asyncio.run(main()) == [KEYS[:4], KEYS[4:6], KEYS]


def test_a_child_begins_its_own_reading(client, filled):
    listing = client.list(bucket=filled, page_size=1)
    begun, pages = iter(listing), listing.pages()
    next(begun), next(pages)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        try:
            refusals = []
            for reading in (begun, pages):
                try:
                    next(reading)
                except RuntimeError as error:
                    refusals.append("before the fork" in str(error))
            said = f"{refusals} {listing.keys() == KEYS}"
        finally:
            os.write(write, said.encode())
            os._exit(0)
    os.close(write)
    with open(read) as answer:
        assert answer.read() == "[True, True] True"
    os.waitpid(child, 0)
    assert [found.key for found in begun] == KEYS[1:]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"where": b"s3://b"}, TypeError, "decode it"),
        ({"where": 3}, TypeError, "not int"),
        ({}, ValueError, "no location"),
        ({"where": "b/prefix"}, ValueError, "s3://bucket/key"),
        ({"where": "s3://"}, ValueError, "names no bucket"),
        ({"where": "s3://b/\0"}, ValueError, "NUL"),
        ({"where": "s3://b", "page_size": 0}, ValueError, "1 to 1000"),
        ({"where": "s3://b", "page_size": 1001}, ValueError, "1 to 1000"),
        ({"where": "s3://b", "page_size": -(2**40)}, ValueError, "1 to 1000"),
        ({"where": "s3://b", "page_size": "many"}, TypeError, "page_size"),
        ({"where": "s3://b", "delimiter": b"/"}, TypeError, "delimiter"),
        ({"where": "s3://b", "prefix": "p"}, TypeError, "prefix"),
    ],
)
def test_what_cannot_be_listed_is_refused_at_once(client, arguments, error, says):
    for view in (client, client.aio):
        with pytest.raises(error, match=says):
            view.list(**arguments)


def test_a_closed_client_lists_nothing(new_client, filled):
    client = new_client()
    listing = client.list(bucket=filled, page_size=1)
    begun = iter(listing)
    next(begun)
    client.close()
    with pytest.raises(wirespeed.ConfigError, match="closed"):
        client.list(bucket=filled)
    with pytest.raises(wirespeed.ConfigError, match="closed"):
        listing.keys()
    with pytest.raises(wirespeed.CancelledError):
        list(begun)


def test_an_awaitable_listing_wants_a_running_loop(client, filled):
    listing = client.aio.list(bucket=filled)
    with pytest.raises(RuntimeError, match="no running event loop"):
        listing.keys()
    with pytest.raises(TypeError, match="not iterable"):
        iter(listing)


def test_ctrl_c_ends_many_short_waits_that_no_line_of_python_sees(client, origin, bucket):
    client.put_many({f"k{number}": b"x" for number in range(60)}.items(), bucket=bucket)
    found = []
    with origin.misbehaving({"action": "delay:20", "verb": "list", "bucket": bucket}):
        interrupt_soon(0.3)
        with pytest.raises(KeyboardInterrupt):
            found.extend(client.list(bucket=bucket, page_size=1))
    assert len(found) < 60


def test_what_went_wrong_is_told_to_all_who_ask(verbs, origin, filled):
    fault = {"action": "status:403", "verb": "list", "bucket": filled, "nth": 2}
    with origin.misbehaving(fault):
        listing = verbs.list(bucket=filled, page_size=4)
        is_awaited = hasattr(listing, "__aiter__")
        reading = aiter(listing) if is_awaited else iter(listing)
        following = anext if is_awaited else next
        for _ in range(4):
            verbs.result(following, reading)
        for _ in range(3):
            with pytest.raises(wirespeed.DeniedError):
                verbs.result(following, reading)


def test_a_cancelled_wait_brings_no_warning(client, origin, filled):
    async def main():
        objects = aiter(client.aio.list(bucket=filled))
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await anext(objects)

    with (
        origin.misbehaving({"action": "delay:2000", "verb": "list", "bucket": filled}),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        asyncio.run(main())
