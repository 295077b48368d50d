"""The ends of writing: stored, refused, discarded, too late, in a transaction."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import io
from typing import Any

import pytest
import servers

from wirespeed.errors import DeniedError, PreconditionError, ServerError
from wirespeed.fsspec import (
    FileExpired,
    WirespeedFileSystem,
)

KIB, MIB = 1 << 10, 1 << 20


def write(fs: WirespeedFileSystem, path: str, data: bytes, mode: str = "wb", **how: Any) -> Any:
    with fs.open(path, mode, **how) as file:
        file.write(data)
    return file


@pytest.mark.parametrize("size", [0, 5, 20 * MIB])
@pytest.mark.parametrize("closed", [False, True])
def test_what_was_discarded_is_not_committed(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str, size: int, closed: bool
) -> None:
    file = fs.open(f"{bucket}/k", "wb", autocommit=False)
    file.write(bytes(size))
    if closed:
        file.close()
    file.discard()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="discarded"):
            file.commit()
    file.discard()
    file.close()
    assert not fs.exists(f"{bucket}/k")
    assert not server.boto3().list_multipart_uploads(Bucket=bucket).get("Uploads")


def test_what_was_committed_stays(fs: WirespeedFileSystem, bucket: str) -> None:
    file = fs.open(f"{bucket}/k", "wb", autocommit=False)
    file.write(b"data")
    for _ in range(2):
        file.commit()
    assert file.closed
    file.discard()
    file.close()
    assert fs.cat_file(f"{bucket}/k") == b"data"


@pytest.mark.parametrize("size", [5, 20 * MIB])
def test_a_close_that_failed_fails_again(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str, size: int
) -> None:
    file = fs.open(f"{bucket}/k", "wb")
    later = fs.open(f"{bucket}/later", "wb", autocommit=False)
    for one in (file, later):
        one.write(bytes(size))
    later.close()
    fault = {"action": "error:403:AccessDenied", "bucket": bucket}
    with server.misbehaving(fault | {"verb": "put"}, fault | {"verb": "complete-multipart"}):
        with pytest.raises(DeniedError):
            file.close()
        with pytest.raises(DeniedError):
            later.commit()
    for again in (file.close, file.commit, later.close, later.commit):
        with pytest.raises(DeniedError):
            again()
    file.discard()
    assert (file.version_id, file.result) == (None, None)
    assert fs.find(bucket) == []

    async def awaited() -> None:
        file = await fs.open_async(f"{bucket}/k", "wb")
        await file.write(bytes(5))
        with server.misbehaving(fault | {"verb": "put"}), pytest.raises(DeniedError):
            await file.close()
        with pytest.raises(DeniedError):
            await file.close()

    asyncio.run(awaited())


def test_a_write_that_failed_is_not_stored_by_its_close(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str
) -> None:
    file = fs.open(f"{bucket}/k", "wb")
    fault = {"action": "error:403:AccessDenied", "bucket": bucket, "verb": "upload-part"}
    with server.misbehaving(fault), pytest.raises(DeniedError):
        for _ in range(100):
            file.write(bytes(8 * MIB))
    for _ in range(2):
        with pytest.raises(DeniedError):
            file.close()
    assert fs.find(bucket) == []


def test_a_forced_flush_makes_the_object(aware: WirespeedFileSystem, versioned: str) -> None:
    path = f"{versioned}/k"
    file = aware.open(path, "wb")
    file.write(b"data")
    file.flush()
    assert not aware.exists(path)
    file.flush(force=True)
    assert aware.cat_file(path) == b"data"
    assert file.version_id == aware.info(path, refresh=True)["VersionId"]
    with pytest.raises(ValueError, match="force-flushed"):
        file.write(b"more")
    with pytest.raises(ValueError, match="once"):
        file.flush(force=True)
    try:
        raise RuntimeError("which comes too late")
    except RuntimeError:
        file.close()
    file.close()
    assert len(aware.object_version_info(path)) == 1
    with pytest.raises(ValueError, match="closed"):
        file.flush()
    later = aware.open(f"{versioned}/later", "wb", autocommit=False)
    later.write(b"later")
    later.flush(force=True)
    later.close()
    assert not aware.exists(f"{versioned}/later")
    later.commit()
    assert aware.cat_file(f"{versioned}/later") == b"later"


def test_a_file_does_only_what_its_mode_says(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, b"data")
    with fs.open(path) as file:
        for call in (lambda: file.write(b""), lambda: file.writelines([b""])):
            with pytest.raises((ValueError, OSError)):
                call()
        file.flush()
        file.commit()
        file.discard()
        assert (file.readable(), file.writable(), file.seekable()) == (True, False, True)
        assert file.seek(100) == 100
        assert (file.read(), file.tell()) == (b"", 100)
        with pytest.raises(io.UnsupportedOperation):
            file.fileno()
    assert (file.readable(), file.closed) == (False, True)
    with fs.open(path, "wb") as file:
        with pytest.raises(ValueError, match="read mode"):
            file.read()
        with pytest.raises(OSError, match="read mode") as raised:
            file.seek(0)
        assert raised.value.errno == errno.ESPIPE
        with pytest.raises(TypeError):
            file.write("text")
        file.writelines([b"a", b"b"])
        assert (file.readable(), file.writable(), file.seekable()) == (False, True, False)
    assert fs.cat_file(path) == b"ab"
    for mode in ("r+b", "rwb", "bogusb"):
        with pytest.raises(NotImplementedError, match="mode is"):
            fs.open(path, mode)
    assert fs.open(path, fill_cache=False, requester_pays=False).read() == b"ab"
    for mode, words in (("wt", "é"), ("at", "é"), ("xt", "é")):
        with fs.open(f"{bucket}/{mode[0]}", mode, encoding="latin-1", newline="\r\n") as file:
            file.write(f"{words}\n")
        with fs.open(f"{bucket}/{mode[0]}", "rt", encoding="latin-1") as file:
            assert file.read() == f"{words}\n"
        assert fs.cat_file(f"{bucket}/{mode[0]}") == b"\xe9\r\n"


@pytest.mark.parametrize("size", [0, 3, 6 * MIB])
def test_an_append_that_comes_too_late_is_an_error(
    fs: WirespeedFileSystem, bucket: str, size: int
) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, bytes(size), ContentType="text/csv")
    file = write(fs, path, b"end", "ab", ContentType="text/plain")
    assert file.tell() == size + 3
    assert fs.cat_file(path) == bytes(size) + b"end"
    assert fs.info(path, refresh=True)["ContentType"] == "text/plain"
    before, during = fs.open(path, "ab"), fs.open(path, "ab")
    during.write(b"mine")
    fs.pipe_file(path, b"another's")
    for _ in range(2):
        with pytest.raises(FileExpired, match="nothing is appended"):
            during.close()
    for _ in range(2):
        with pytest.raises(FileExpired, match="nothing is appended"):
            before.write(b"mine")
    with pytest.raises(PreconditionError):
        before.close()
    assert fs.cat_file(path) == b"another's"


def test_an_append_whose_old_bytes_can_not_be_read_stores_nothing(
    fs: WirespeedFileSystem,
    server: servers.Server,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, b"data")
    file = fs.open(path, "ab")
    fault = {"action": "error:403:AccessDenied", "bucket": bucket, "verb": "get"}
    with server.misbehaving(fault), pytest.raises(DeniedError):
        file.write(b"end")
    for again in (lambda: file.write(b"end"), file.close, file.close, file.commit):
        with pytest.raises(DeniedError):
            again()
    file = fs.open(path, "ab")

    def interrupt(writer: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(file, "_prepend", interrupt)
    with pytest.raises(KeyboardInterrupt):
        file.write(b"end")
    with pytest.raises(RuntimeError, match="write it anew"):
        file.close()
    assert fs.cat_file(path) == b"data"


def test_an_append_keeps_how_the_object_is_stored(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str
) -> None:
    key, expires = b"k" * 32, "Fri, 01 Jan 2100 00:00:00 GMT"
    server.boto3().put_object(
        Bucket=bucket,
        Key="k",
        Body=b"data",
        StorageClass="STANDARD_IA",
        ServerSideEncryption="aws:kms",
        SSEKMSKeyId="mine",
        Expires=expires,
        CacheControl="no-cache",
    )
    before = fs.info(f"{bucket}/k", refresh=True)
    assert (before["StorageClass"], before["SSEKMSKeyId"]) == ("STANDARD_IA", "mine")
    write(fs, f"{bucket}/k", b"end", "ab")
    after = fs.info(f"{bucket}/k", refresh=True)
    changed = {"ETag", "LastModified", "Size", "size"}
    assert {name for name in before if before[name] != after[name]} <= changed
    assert after["Expires"] == expires
    write(fs, f"{bucket}/k", b"", "ab")
    write(fs, f"{bucket}/k", b"!", "ab", ServerSideEncryption="AES256")
    assert fs.info(f"{bucket}/k", refresh=True)["ServerSideEncryption"] == "AES256"
    write(fs, f"{bucket}/secret", b"data", SSECustomerKey=key)
    write(fs, f"{bucket}/secret", b"end", "ab", SSECustomerKey=key)
    assert fs.cat_file(f"{bucket}/secret", SSECustomerKey=key) == b"dataend"
    with fs.open(f"{bucket}/secret", SSECustomerKey=key, size=7) as file:
        assert file.read() == b"dataend"


def test_an_exclusive_file_says_what_is_there(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str
) -> None:
    path = f"{bucket}/k"
    late = fs.open(path, "xb")
    late.write(b"late")
    fs.pipe_file(path, b"first")
    for call in (lambda: fs.open(path, "xb"), late.close, late.close, late.commit):
        with pytest.raises(FileExistsError) as raised:
            call()
        assert (raised.value.errno, raised.value.filename) == (errno.EEXIST, f"s3://{path}")
    with pytest.raises(FileExistsError) as raised:
        fs.pipe({f"{bucket}/new": b"", path: b""}, mode="create")
    assert (raised.value.errno, raised.value.filename) == (errno.EEXIST, f"s3://{path}")
    # Who may write and not look leaves it to the condition.
    denied = {"action": "error:403:AccessDenied", "bucket": bucket}
    with server.misbehaving(denied | {"verb": "head"}, denied | {"verb": "list"}):
        write(fs, f"{bucket}/blind", b"data", "xb")
        with pytest.raises(FileExistsError):
            write(fs, path, b"data", "xb")
    assert fs.cat_file(f"{bucket}/blind") == b"data"
    assert fs.cat_file(path) == b"first"


def test_a_transaction_stores_what_was_left_open(fs: WirespeedFileSystem, bucket: str) -> None:
    with fs.transaction:
        left: list[Any] = [
            fs.open(f"{bucket}/raw", "wb"),
            fs.open(f"{bucket}/text", "w"),
            fs.open(f"{bucket}/gz", "wb", compression="gzip"),
            fs.open(f"{bucket}/text.gz", "w", compression="infer"),
        ]
        for file in left:
            file.write("data" if isinstance(file, io.TextIOBase) else b"data")
        fs.pipe_file(f"{bucket}/piped", b"data")
        assert fs.find(bucket) == [f"{bucket}/piped"]
    for name in ("raw", "text", "piped"):
        assert fs.cat_file(f"{bucket}/{name}") == b"data"
    for name in ("gz", "text.gz"):
        with fs.open(f"{bucket}/{name}", compression="gzip") as file:
            assert file.read() == b"data"
    assert all(file.closed for file in left)


def test_a_transaction_does_not_store_half_of_a_text(fs: WirespeedFileSystem, bucket: str) -> None:
    def run() -> None:
        with fs.transaction:
            fs.open(f"{bucket}/k", "w").write("data")
            gc.collect()

    with pytest.raises(RuntimeError, match="discarded"):
        run()
    assert fs.find(bucket) == []


def test_a_transaction_that_fails_discards_the_rest(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str
) -> None:
    def run() -> None:
        with fs.transaction:
            for name in "abc":
                write(fs, f"{bucket}/{name}", bytes(20 * MIB))

    fault = {"action": "error:403:AccessDenied", "verb": "complete-multipart", "key": "b"}
    with server.misbehaving(fault | {"bucket": bucket}), pytest.raises(DeniedError):
        run()
    assert fs.find(bucket) == [f"{bucket}/a"]
    assert not server.boto3().list_multipart_uploads(Bucket=bucket).get("Uploads")
    write(fs, f"{bucket}/after", b"data")  # outside of it
    assert fs.exists(f"{bucket}/after")

    async def awaited() -> None:
        with fs.transaction, pytest.raises(ValueError, match="open"):
            await fs.open_async(f"{bucket}/awaited", "wb")

    asyncio.run(awaited())


def test_a_failing_compression_stores_nothing(fs: WirespeedFileSystem, bucket: str) -> None:
    class Broken:
        def close(self) -> None:
            raise ServerError("broken")

    def broken(path: str) -> Any:
        file = fs.open(path, "wb", compression="gzip")
        file.write(b"data")
        file._codec, codec = Broken(), file._codec
        with pytest.raises(ServerError, match="broken"):
            file.close()
        with contextlib.suppress(ValueError):
            codec.close()
        return file

    file = broken(f"{bucket}/k.gz")
    assert file.closed
    with pytest.raises(RuntimeError, match="discarded"), fs.transaction:
        broken(f"{bucket}/later.gz")
    assert fs.find(bucket) == []


@pytest.mark.parametrize("key", ["k", "k.gz"])
def test_text_that_can_not_be_written_stores_nothing(
    fs: WirespeedFileSystem, bucket: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(data: object) -> int:
        raise KeyboardInterrupt

    file = fs.open(f"{bucket}/{key}", "w", compression="infer")
    file.write("data")
    with monkeypatch.context() as patch:
        patch.setattr(file.buffer, "write", fail)
        with pytest.raises(KeyboardInterrupt):
            file.close()
    file.close()
    assert file.closed
    assert fs.find(bucket) == []
