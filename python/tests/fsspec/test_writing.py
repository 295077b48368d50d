"""Files open for writing: when the object appears, and when it never does."""

from __future__ import annotations

import contextlib
import gc
import io
import pickle
import random
import time
import uuid
from typing import Any

import fsspec
import pytest
import servers

from wirespeed.fsspec import WirespeedFileSystem

MIB = 1 << 20


def unfinished(server: servers.Server, bucket: str) -> int:
    """Uploads that were begun and neither completed nor aborted."""
    return len(server.boto3().list_multipart_uploads(Bucket=bucket).get("Uploads", []))


def test_an_object_appears_when_the_file_is_closed(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str
) -> None:
    path = f"{bucket}/d/k"
    data = random.Random(5).randbytes(40 * MIB + 77)
    with fs.open(path, "wb") as file:
        assert file.writable()
        assert not file.readable()
        at = 0
        for size in (1, 100, MIB, 7 * MIB, 20 * MIB, len(data)):
            at += file.write(memoryview(data)[at : at + size])
            assert file.tell() == at
            file.flush()
        assert not fs.exists(path)
    assert file.closed
    assert fs.cat_file(path) == data
    assert unfinished(server, bucket) == 0
    with pytest.raises(ValueError, match="closed"):
        file.write(b"more")
    file.close()


def test_small_and_empty_files_are_written(fs: WirespeedFileSystem, bucket: str) -> None:
    with fs.open(f"{bucket}/empty", "wb"):
        pass
    with fs.open(f"{bucket}/text", "w", encoding="utf-8") as file:
        file.write("ü\n")
    fs.write_text(f"{bucket}/more", "text")
    with fs.open(f"{bucket}/typed", "wb", ContentType="text/csv", Metadata={"a": "b"}) as file:
        file.write(b"1,2")
    assert fs.cat(f"{bucket}/*") == {
        f"{bucket}/empty": b"",
        f"{bucket}/more": b"text",
        f"{bucket}/text": "ü\n".encode(),
        f"{bucket}/typed": b"1,2",
    }
    assert fs.info(f"{bucket}/typed", refresh=True)["ContentType"] == "text/csv"
    assert fs.metadata(f"{bucket}/typed") == {"a": "b"}


@pytest.mark.parametrize("size", [100, 20 * MIB])
def test_what_is_not_finished_leaves_nothing_behind(
    fs: WirespeedFileSystem,
    server: servers.Server,
    bucket: str,
    size: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = bytes(size)
    with pytest.raises(RuntimeError, match="halfway"), fs.open(f"{bucket}/k", "wb") as file:
        file.write(data)
        raise RuntimeError("halfway")
    with pytest.raises(RuntimeError, match="halfway"), fs.open(f"{bucket}/k", "w") as file:
        file.write("text" * 1000)
        raise RuntimeError("halfway")
    for how in ({"mode": "wb"}, {"mode": "w"}):
        with (
            pytest.raises(RuntimeError, match="halfway"),
            fs.open(f"{bucket}/k.gz", compression="gzip", **how) as file,
        ):
            file.write(data if how["mode"] == "wb" else "text" * 1000)
            raise RuntimeError("halfway")
    file = fs.open(f"{bucket}/k", "wb")
    file.write(data)
    file.discard()
    file = fs.open(f"{bucket}/k", "wb")
    file.write(data)
    del file
    gc.collect()
    assert "dropped before it was closed" in caplog.text
    assert fs.find(bucket) == []
    # What was dropped is removed beside whatever goes on.
    deadline = time.monotonic() + 30
    while unfinished(server, bucket) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert unfinished(server, bucket) == 0


def test_an_exclusive_file_does_not_overwrite(
    fs: WirespeedFileSystem, options: dict[str, Any], bucket: str
) -> None:
    path = f"{bucket}/k"
    with fs.open(path, "xb") as file:
        file.write(b"mine")
    with pytest.raises(FileExistsError):
        fs.open(path, "xb")
    elsewhere = WirespeedFileSystem(**options, skip_instance_cache=True)
    late = fs.open(f"{bucket}/race", "xb")
    late.write(b"too late")
    elsewhere.pipe_file(f"{bucket}/race", b"first")
    with pytest.raises(FileExistsError):
        late.close()
    assert fs.cat_file(f"{bucket}/race") == b"first"
    assert fs.cat_file(path) == b"mine"


def test_bytes_are_appended(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    with fs.open(path, "ab") as file:
        assert file.tell() == 0
        file.write(b"one")
    fs.pipe_file(path, b"one", ContentType="text/csv", Metadata={"a": "b"})
    with fs.open(path, "ab") as file:
        assert file.tell() == 3
        file.write(b", two")
    assert fs.cat_file(path) == b"one, two"
    info = fs.info(path, refresh=True)
    assert (info["ContentType"], info["Metadata"]) == ("text/csv", {"a": "b"})
    with fs.open(path, "ab"):
        pass
    assert fs.cat_file(path) == b"one, two"
    large = random.Random(6).randbytes(12 * MIB)
    fs.pipe_file(path, large)
    with fs.open(path, "ab") as file:
        file.write(b"end")
    assert fs.cat_file(path) == large + b"end"


def test_an_append_does_not_lose_what_another_wrote_meanwhile(
    origin: servers.Server, tmp_path: Any
) -> None:
    from wirespeed.errors import PreconditionError

    fs = WirespeedFileSystem(
        key=origin.access_key, secret=origin.secret_key, endpoint_url=origin.endpoint
    )
    bucket = f"b-{uuid.uuid4().hex[:16]}"
    fs.mkdir(bucket)
    fs.pipe_file(f"{bucket}/k", b"one")
    file = fs.open(f"{bucket}/k", "ab")
    file.write(b", two")
    fs.pipe_file(f"{bucket}/k", b"another")
    with pytest.raises(PreconditionError):
        file.close()
    assert fs.cat_file(f"{bucket}/k") == b"another"
    file = fs.open(f"{bucket}/new", "ab")  # which is not there yet
    file.write(b"mine")
    fs.pipe_file(f"{bucket}/new", b"another")
    with pytest.raises(PreconditionError):
        file.close()
    assert fs.cat_file(f"{bucket}/new") == b"another"
    fs.rm(bucket, recursive=True)


def test_a_transaction_is_all_or_nothing(
    fs: WirespeedFileSystem, server: servers.Server, bucket: str
) -> None:
    with fs.transaction:
        for name in "ab":
            with fs.open(f"{bucket}/{name}", "wb") as file:
                file.write(name.encode() * 6 * MIB)
        assert fs.find(bucket) == []
    assert fs.find(bucket) == [f"{bucket}/a", f"{bucket}/b"]
    assert fs.cat_file(f"{bucket}/b", 0, 3) == b"bbb"

    with pytest.raises(RuntimeError, match="no"), fs.transaction:
        with fs.open(f"{bucket}/c", "wb") as file:
            file.write(b"c" * 20 * MIB)
        raise RuntimeError("no")
    assert not fs.exists(f"{bucket}/c")
    assert unfinished(server, bucket) == 0

    file = fs.open(f"{bucket}/d", "wb", autocommit=False)
    file.write(b"d")
    file.close()
    assert not fs.exists(f"{bucket}/d")
    file.commit()
    assert fs.cat_file(f"{bucket}/d") == b"d"


def test_a_file_being_written_is_not_pickled(fs: WirespeedFileSystem, bucket: str) -> None:
    with fs.open(f"{bucket}/k", "wb") as file, pytest.raises(TypeError, match="writing"):
        pickle.dumps(file)


def test_compressed_files_are_written_and_read(fs: WirespeedFileSystem, bucket: str) -> None:
    with fs.open(f"{bucket}/k.gz", "wb", compression="infer") as file:
        file.write(b"squeeze " * 1000)
    assert fs.size(f"{bucket}/k.gz") < 1000
    with fs.open(f"{bucket}/k.gz", compression="infer") as file:
        assert file.read() == b"squeeze " * 1000


def halfway(file: Any, text: bool = False) -> None:
    """Writes something, and fails."""
    file.write("half" if text else b"half")
    raise RuntimeError("halfway")


@pytest.mark.parametrize("key", ["k", "k.gz"])
def test_a_file_closed_while_an_exception_passes_replaces_nothing(
    fs: WirespeedFileSystem, options: dict[str, Any], bucket: str, key: str
) -> None:
    path = f"{bucket}/{key}"
    fs.pipe_file(path, b"good")
    url = f"wirespeed://{path}"
    for mode in ("wb", "w"):
        with (
            pytest.raises(RuntimeError, match="halfway"),
            fsspec.open(url, mode, compression="infer", **options) as file,
        ):
            halfway(file, text=mode == "w")
    for opened in (
        lambda: fs.open(path, "wb"),
        lambda: io.TextIOWrapper(fs.open(path, "wb")),
        lambda: io.BufferedWriter(fs.open(path, "wb")),
        lambda: fs.open(path, "w"),
    ):
        file = opened()
        with pytest.raises(RuntimeError, match="halfway"), contextlib.closing(file):
            halfway(file, text=isinstance(file, io.TextIOBase))
    assert fs.cat_file(path) == b"good"
    with fsspec.open(url, "wb", **options) as file:
        file.write(b"whole")
    assert fs.cat_file(path) == b"whole"


def test_a_table_that_fails_halfway_replaces_nothing(
    fs: WirespeedFileSystem, options: dict[str, Any], bucket: str
) -> None:
    pandas = pytest.importorskip("pandas")

    class Fails:
        def __str__(self) -> str:
            raise RuntimeError("halfway")

    path = f"{bucket}/t.csv"
    fs.pipe_file(path, b"good")
    table = pandas.DataFrame({"a": [*range(1000), Fails()]}, dtype=object)
    with pytest.raises(RuntimeError, match="halfway"):
        table.to_csv(f"wirespeed://{path}", storage_options=options, chunksize=10)
    assert fs.cat_file(path) == b"good"


def test_a_file_closed_while_an_earlier_exception_is_handled_is_stored(
    fs: WirespeedFileSystem, bucket: str
) -> None:
    def fail(why: str) -> None:
        raise RuntimeError(why)

    try:
        try:
            fail("first")
        except RuntimeError:
            fail("second")
    except RuntimeError:
        with fs.open(f"{bucket}/with", "wb") as file:
            file.write(b"whole")
        file = fs.open(f"{bucket}/close", "wb")
        file.write(b"whole")
        with contextlib.suppress(RuntimeError):
            fail("third, and over")
        file.close()
    file = fs.open(f"{bucket}/over", "wb")
    with contextlib.suppress(RuntimeError):
        fail("over")
    file.write(b"whole")
    file.close()
    file = fs.open(f"{bucket}/iterated", "wb")
    parts = iter([b"wh", b"ole"])
    while not file.closed:
        try:
            file.write(next(parts))
        except StopIteration:
            file.close()
    assert set(fs.cat(bucket, recursive=True).values()) == {b"whole"}
    assert len(fs.find(bucket)) == 4


def test_text_that_is_dropped_unclosed_is_not_stored(fs: WirespeedFileSystem, bucket: str) -> None:
    file = fs.open(f"{bucket}/k", "w")
    file.write("half")
    del file
    gc.collect()
    assert fs.find(bucket) == []
