"""What a person writes against the package, for the type checker alone: `make check` reads it.

Each verb in each of its forms, blocking and awaited, with the type that its result must have.
Nothing here is ever run.
"""

from __future__ import annotations

import array
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, assert_type

import wirespeed
from wirespeed import (
    AsyncClient,
    Buffer,
    Client,
    ObjectInfo,
    Progress,
    PutResult,
    RawAnswer,
    WirespeedError,
)

if TYPE_CHECKING:
    from wirespeed._wirespeed import (
        AsyncCompletions,
        AsyncListing,
        AsyncStream,
        AsyncWriter,
        BucketInfo,
        Completions,
        CopyResult,
        DeleteFailure,
        DeleteResult,
        ListedObject,
        Listing,
        Page,
        ReadOptions,
        Stream,
        Transferred,
        Writer,
    )

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def on_part(offset: int, part: memoryview) -> None:
    """Takes a part as it lands."""


def on_progress(progress: Progress) -> None:
    """Takes how far a call has come."""
    assert_type(progress.bytes, int)
    assert_type(progress.expected, int)


def blocking(client: Client) -> None:
    """Each verb of the blocking view."""
    assert_type(client.get("s3://b/k"), Buffer)
    assert_type(client.get("k", bucket="b", range=(0, 10), as_bytes=True), bytes)
    assert_type(client.get("s3://b/k", range=slice(-10, None), as_bytes=False), Buffer)
    assert_type(client.get("s3://b/k", on_part=on_part, progress=on_progress), ObjectInfo)
    assert_type(
        client.get("s3://b/k", version_id="v", if_match="e", if_modified_since=WHEN), Buffer
    )
    assert_type(client.get_into("s3://b/k", bytearray(4), range=(None, 4), verify=False), int)
    assert_type(client.get_into("s3://b/k", array.array("d", [0.0])), int)
    assert_type(
        client.get_many(["s3://b/1", ("s3://b/2", (0, 4)), ("s3://b/3", None)]), list[Buffer]
    )
    assert_type(client.get_many((f"{n}" for n in range(4)), bucket="b", as_bytes=True), list[bytes])
    assert_type(client.get_many(["s3://b/1"], into=[bytearray(4)]), list[int])
    assert_type(client.get_many(["s3://b/1"], errors="return"), list[Buffer | WirespeedError])
    assert_type(
        client.get_many(["s3://b/1"], as_bytes=True, errors="return"), list[bytes | WirespeedError]
    )
    assert_type(
        client.get_many(["s3://b/1"], into=[bytearray(4)], errors="return"),
        list[int | WirespeedError],
    )
    assert_type(client.get_many(["s3://b/1"], as_completed=True), Completions[Buffer])
    assert_type(
        client.get_many(["s3://b/1"], as_completed=True, errors="return"),
        Completions[Buffer | WirespeedError],
    )
    assert_type(client.get_many(["s3://b/1"], as_completed=True, as_bytes=True), Completions[bytes])
    assert_type(client.get_ranges("s3://b/k", [(0, 4), slice(8, 12)], max_gap=4096), list[Buffer])
    assert_type(client.get_ranges("s3://b/k", [(0, 4)], as_bytes=True), list[bytes])
    assert_type(client.stream("s3://b/k", window=1 << 20), Stream)
    assert_type(
        client.put("s3://b/k", b"data", content_type="text/plain", metadata={"a": "b"}), PutResult
    )
    assert_type(client.put("s3://b/k", io.BytesIO(b"data"), if_none_match="*"), PutResult)
    assert_type(
        client.put("s3://b/k", (bytes(n) for n in range(3)), tags={"a": "b"}, expires=WHEN),
        PutResult,
    )
    assert_type(
        client.put_file("s3://b/k", Path("file"), sse="aws:kms", sse_kms_key_id="id"), PutResult
    )
    assert_type(client.put_many([("s3://b/k", b"data")]), list[PutResult])
    assert_type(
        client.put_many([("s3://b/k", b"data")], errors="return"), list[PutResult | WirespeedError]
    )
    assert_type(
        client.writer("s3://b/k", expected_size=1 << 30, storage_class="STANDARD_IA"), Writer
    )
    assert_type(client.download("s3://b/prefix/", "folder", progress=on_progress), Transferred)
    assert_type(client.download([("s3://b/k", Path("file"))]), Transferred)
    assert_type(client.upload("folder", "s3://b/prefix/"), Transferred)
    assert_type(client.upload([(Path("file"), "s3://b/k")], checksum="SHA256"), Transferred)
    assert_type(client.head("s3://b/k", if_none_match="e"), ObjectInfo)
    assert_type(client.exists("k", bucket="b"), bool)
    assert_type(client.list("s3://b/prefix/", delimiter="/", versions=True), Listing)
    assert_type(client.delete("s3://b/k", version_id="v"), DeleteResult)
    assert_type(client.delete_many(["s3://b/k", ("s3://b/k", "v")]), list[DeleteFailure])
    assert_type(client.copy("s3://b/k", "s3://b/l", source_if_match="e", acl="private"), CopyResult)
    client.copy("s3://b/k", "s3://b/l", metadata_directive="COPY", source_if_none_match="e")
    client.put("s3://b/k", b"", object_lock_mode="GOVERNANCE", object_lock_legal_hold=True)
    assert_type(client.presign("s3://b/k", method="PUT", expires_in=60.0), str)
    assert_type(client.list_buckets(prefix="p"), list[BucketInfo])
    assert_type(client.raw("GET", "b", "k", query={"tagging": ""}), RawAnswer)
    client.create_bucket("b")
    client.delete_bucket("b")


async def awaited(client: AsyncClient) -> None:
    """Each verb of the awaitable view."""
    assert_type(await client.get("s3://b/k"), Buffer)
    assert_type(await client.get("k", bucket="b", range=(0, 10), as_bytes=True), bytes)
    assert_type(await client.get("s3://b/k", range=slice(-10, None), as_bytes=False), Buffer)
    assert_type(await client.get("s3://b/k", on_part=on_part, progress=on_progress), ObjectInfo)
    assert_type(
        await client.get("s3://b/k", version_id="v", if_match="e", if_modified_since=WHEN), Buffer
    )
    assert_type(await client.get_into("s3://b/k", bytearray(4), range=(None, 4), verify=False), int)
    assert_type(await client.get_into("s3://b/k", array.array("d", [0.0])), int)
    assert_type(
        await client.get_many(["s3://b/1", ("s3://b/2", (0, 4)), ("s3://b/3", None)]), list[Buffer]
    )
    assert_type(
        await client.get_many((f"{n}" for n in range(4)), bucket="b", as_bytes=True), list[bytes]
    )
    assert_type(await client.get_many(["s3://b/1"], into=[bytearray(4)]), list[int])
    assert_type(await client.get_many(["s3://b/1"], errors="return"), list[Buffer | WirespeedError])
    assert_type(
        await client.get_many(["s3://b/1"], as_bytes=True, errors="return"),
        list[bytes | WirespeedError],
    )
    assert_type(
        await client.get_many(["s3://b/1"], into=[bytearray(4)], errors="return"),
        list[int | WirespeedError],
    )
    assert_type(client.get_many(["s3://b/1"], as_completed=True), AsyncCompletions[Buffer])
    assert_type(
        client.get_many(["s3://b/1"], as_completed=True, errors="return"),
        AsyncCompletions[Buffer | WirespeedError],
    )
    assert_type(
        client.get_many(["s3://b/1"], as_completed=True, as_bytes=True), AsyncCompletions[bytes]
    )
    assert_type(
        await client.get_ranges("s3://b/k", [(0, 4), slice(8, 12)], max_gap=4096), list[Buffer]
    )
    assert_type(await client.get_ranges("s3://b/k", [(0, 4)], as_bytes=True), list[bytes])
    assert_type(await client.stream("s3://b/k", window=1 << 20), AsyncStream)
    assert_type(
        await client.put("s3://b/k", b"data", content_type="text/plain", metadata={"a": "b"}),
        PutResult,
    )
    assert_type(await client.put("s3://b/k", io.BytesIO(b"data"), if_none_match="*"), PutResult)
    assert_type(
        await client.put("s3://b/k", (bytes(n) for n in range(3)), tags={"a": "b"}, expires=WHEN),
        PutResult,
    )
    assert_type(
        await client.put_file("s3://b/k", Path("file"), sse="aws:kms", sse_kms_key_id="id"),
        PutResult,
    )
    assert_type(await client.put_many([("s3://b/k", b"data")]), list[PutResult])
    assert_type(
        await client.put_many([("s3://b/k", b"data")], errors="return"),
        list[PutResult | WirespeedError],
    )
    assert_type(
        client.writer("s3://b/k", expected_size=1 << 30, storage_class="STANDARD_IA"), AsyncWriter
    )
    assert_type(
        await client.download("s3://b/prefix/", "folder", progress=on_progress), Transferred
    )
    assert_type(await client.download([("s3://b/k", Path("file"))]), Transferred)
    assert_type(await client.upload("folder", "s3://b/prefix/"), Transferred)
    assert_type(await client.upload([(Path("file"), "s3://b/k")], checksum="SHA256"), Transferred)
    assert_type(await client.head("s3://b/k", if_none_match="e"), ObjectInfo)
    assert_type(await client.exists("k", bucket="b"), bool)
    assert_type(client.list("s3://b/prefix/", delimiter="/", versions=True), AsyncListing)
    assert_type(await client.delete("s3://b/k", version_id="v"), DeleteResult)
    assert_type(await client.delete_many(["s3://b/k", ("s3://b/k", "v")]), list[DeleteFailure])
    assert_type(
        await client.copy("s3://b/k", "s3://b/l", source_if_match="e", acl="private"), CopyResult
    )
    assert_type(await client.presign("s3://b/k", method="PUT", expires_in=60.0), str)
    assert_type(await client.list_buckets(prefix="p"), list[BucketInfo])
    assert_type((await client.raw("PUT", "b", headers={"x-amz-acl": "private"})).body, bytes)
    await client.create_bucket("b")
    await client.delete_bucket("b")


def clients() -> None:
    """Settings, and the two views of one client."""
    client = Client(
        endpoint_url="http://127.0.0.1:9000", part_size="8MiB", concurrency=16, anonymous=True
    )
    assert_type(client.aio, AsyncClient)
    assert_type(client.settings, dict[str, str])
    assert_type(client.metrics(), dict[str, int])
    with client as entered:
        assert_type(entered, Client)
    client.close()
    wirespeed.set_default_client(client)
    assert_type(wirespeed.default_client(), Client)


def a_wrapper(where: str, **options: Unpack[ReadOptions]) -> int:
    """Options go through a function of one's own."""
    return len(wirespeed.get(where, **options))


async def on_the_default_client() -> None:
    """The module's verbs have the types of the client's."""
    assert_type(wirespeed.get("s3://b/k"), Buffer)
    assert_type(await wirespeed.aio.get("s3://b/k", as_bytes=True), bytes)
    assert_type(wirespeed.put("s3://b/k", b""), PutResult)
    for page in wirespeed.list("s3://b/").pages():
        assert_type(page, Page)


def buffers(data: Buffer) -> None:
    """A buffer is where bytes are wanted."""
    assert_type(data[0], int)
    assert_type(data[1:3], Buffer)
    assert_type(bytes(data), bytes)
    assert_type(len(data), int)
    assert_type(data.info, ObjectInfo | None)
    assert_type(data == b"x", bool)
    with memoryview(data) as view:
        assert_type(view.nbytes, int)


def pieces(
    stream: Stream, listing: Listing, writer: Writer, finished: Completions[Buffer | WirespeedError]
) -> None:
    """What is gone through piece by piece."""
    with stream:
        for part in stream:
            assert_type(part, Buffer)
        assert_type(stream.read(10), bytes)
        assert_type(stream.readinto(bytearray(10)), int)
    for one in listing:
        assert_type(one, ListedObject)
    assert_type(listing.keys(), list[str])
    assert_type(listing.table(), Page)
    assert_type(listing.first_page(), Page)
    with writer:
        assert_type(writer.write(b"data"), int)
    assert_type(writer.result, PutResult | None)
    with finished:
        for index, outcome in finished:
            assert_type(index, int)
            assert_type(outcome, Buffer | WirespeedError)


async def awaited_pieces(
    stream: AsyncStream,
    listing: AsyncListing,
    writer: AsyncWriter,
    finished: AsyncCompletions[Buffer],
) -> None:
    """The same, awaited."""
    async with stream:
        async for part in stream:
            assert_type(part, Buffer)
        assert_type(await stream.read(10), bytes)
    async for one in listing:
        assert_type(one, ListedObject)
    async for page in listing.pages():
        assert_type(page, Page)
    assert_type(await listing.table(), Page)
    assert_type(await listing.first_page(), Page)
    async with writer:
        assert_type(await writer.write(b"data"), int)
    async with finished:
        async for _index, outcome in finished:
            assert_type(outcome, Buffer)


def errors() -> Iterator[object]:
    """An error is caught by its own name and by the builtin's."""
    try:
        wirespeed.head("s3://b/k")
    except wirespeed.NotFoundError as error:
        assert_type(error.key, str | None)
        as_builtin: FileNotFoundError = error
        yield as_builtin
    except WirespeedError as error:
        assert_type(error.attempts, int)
        assert_type(error.elapsed, float)
        yield error


def must_be_refused(client: Client) -> Any:
    """What a type checker must not let pass."""
    client.get(b"s3://b/k")  # pyright: ignore[reportArgumentType]
    client.get("s3://b/k", if_mach="e")  # pyright: ignore[reportCallIssue]
    client.get_into("s3://b/k", "text")  # pyright: ignore[reportArgumentType]
    client.put("s3://b/k", "text")  # pyright: ignore[reportArgumentType]
    client.get_many(  # pyright: ignore[reportCallIssue]
        ["s3://b/k"],
        as_bytes=True,
        into=[bytearray(1)],  # pyright: ignore[reportArgumentType]
    )
    Client(endpoint="http://127.0.0.1")  # pyright: ignore[reportCallIssue]
