"""Files open for reading: what is read, what is asked for, and which version it is of."""

from __future__ import annotations

import array
import errno
import io
import os
import pickle
import random
from typing import Any

import pytest

from wirespeed.errors import PreconditionError
from wirespeed.fsspec import FileExpired, WirespeedFileSystem

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(scope="module")
def data() -> bytes:
    """24 MiB and a bit in which no two places look alike."""
    return random.Random(4).randbytes(24 * MIB + 12345)


@pytest.fixture
def path(fs: WirespeedFileSystem, bucket: str, data: bytes) -> str:
    """The object with them."""
    fs.pipe_file(f"{bucket}/k", data)
    return f"{bucket}/k"


@pytest.mark.parametrize("cache_type", ["wirespeed", "none", "readahead", "bytes", "blockcache"])
def test_whatever_is_read_in_whatever_order_is_what_is_there(
    fs: WirespeedFileSystem, path: str, data: bytes, cache_type: str
) -> None:
    choose = random.Random(11)
    with fs.open(path, cache_type=cache_type) as file:
        model = io.BytesIO(data)
        for _ in range(150):
            match choose.randrange(7):
                case 0:
                    place = choose.randrange(len(data) + 10)
                    assert file.seek(place) == model.seek(place)
                case 1:
                    back = choose.randrange(100 * KIB)
                    assert file.seek(-back, 2) == model.seek(-back, 2)
                case 2:
                    ahead = choose.randrange(400 * KIB)
                    assert file.seek(ahead, 1) == model.seek(ahead, 1)
                case 3:
                    assert file.readline() == model.readline()
                case 4:
                    size = choose.choice([3, 5 * KIB, 300 * KIB, 2 * MIB])
                    mine, theirs = bytearray(size), bytearray(size)
                    assert file.readinto(mine) == model.readinto(theirs)
                    assert mine == theirs
                case _:
                    size = choose.choice([0, 1, 100, 8 * KIB, 70 * KIB, MIB, 9 * MIB])
                    assert file.read(size) == model.read(size)
            assert file.tell() == model.tell()
        file.seek(0)
        assert file.read() == data


def test_reading_in_sequence_is_right_in_pieces_of_any_size(
    fs: WirespeedFileSystem, path: str, data: bytes
) -> None:
    for size in (10_007, 64 * KIB, MIB, 5 * MIB, 16 * MIB):
        with fs.open(path) as file:
            pieces = []
            while piece := file.read(size):
                pieces.append(piece)
            assert b"".join(pieces) == data
        taken = bytearray(len(data))
        with fs.open(path) as file:
            at = 0
            while got := file.readinto(memoryview(taken)[at : at + size]):
                at += got
        assert taken == data


def test_reading_in_sequence_asks_for_little_more_than_a_stream_does(
    fs: WirespeedFileSystem, path: str, data: bytes, requests: Any
) -> None:
    with requests, fs.open(path) as file:
        while file.read(64 * KIB):
            pass
    assert requests.received == len(data)
    # To open, a few windows that double, and the parts of the stream.
    assert requests.sent <= 12


def test_scattered_reads_do_not_pay_for_what_nobody_reads(
    fs: WirespeedFileSystem, path: str, requests: Any
) -> None:
    with requests, fs.open(path) as file:
        for n in range(10):
            file.seek((n * 7 % 10) * 2 * MIB + 5)
            file.read(100)
    assert requests.sent == 11
    assert requests.received <= 10 * 64 * KIB
    with requests, fs.open(path) as file:
        file.seek(MIB)
        file.read(300 * KIB)
    assert requests.received == 300 * KIB
    with requests, fs.open(path, cache_type="none") as file:
        file.seek(MIB)
        file.read(100)
        file.read(100)
    assert (requests.sent, requests.received) == (3, 200)


def test_small_reads_near_each_other_are_one_request(
    fs: WirespeedFileSystem, path: str, data: bytes, requests: Any
) -> None:
    with requests, fs.open(path) as file:
        for offset in (100, 5000, 200, 60 * KIB, 0):
            file.seek(offset)
            assert file.read(50) == data[offset : offset + 50]
    assert requests.sent <= 3
    # The footer of a file is read from its end backwards.
    with requests, fs.open(path) as file:
        file.seek(-8, 2)
        file.read(8)
        file.seek(-30_000, 2)
        assert file.read(20_000) == data[-30_000:-10_000]
    assert requests.sent == 2
    assert requests.received == 64 * KIB


def test_a_large_read_is_one_call_and_lands_where_it_is_wanted(
    fs: WirespeedFileSystem, path: str, data: bytes, requests: Any
) -> None:
    words = array.array("Q", bytes(16 * MIB))
    with fs.open(path) as file:
        file.seek(MIB)
        with requests:
            assert file.readinto(words) == 16 * MIB
        assert requests.received == 16 * MIB
        assert words.tobytes() == data[MIB : 17 * MIB]
        assert file.tell() == 17 * MIB
        with pytest.raises(TypeError, match="written"):
            file.readinto(b"fixed")


def test_a_file_is_as_files_are(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/text"
    lines = [f"line {n} ü\n" for n in range(5000)] + ["the last has no end"]
    fs.pipe_file(path, "".join(lines).encode())
    with fs.open(path) as file:
        assert file.readable()
        assert file.seekable()
        assert not file.writable()
        assert list(file) == [line.encode() for line in lines]
        file.seek(0)
        assert file.readlines() == [line.encode() for line in lines]
        assert file.size == fs.size(path)
        assert file.info()["name"] == path
        assert str(bucket) in repr(file)
        with pytest.raises(ValueError, match="before start"):
            file.seek(-1)
    assert file.closed
    with pytest.raises(ValueError, match="closed"):
        file.read()
    with fs.open(path, "r", encoding="utf-8") as file:
        assert list(file) == lines
    with io.BufferedReader(fs.open(path)) as file:
        assert list(file) == [line.encode() for line in lines]
    with io.TextIOWrapper(io.BufferedReader(fs.open(path)), encoding="utf-8") as file:
        assert file.read() == "".join(lines)
    assert fs.read_text(path, encoding="utf-8") == "".join(lines)


def test_reading_by_lines_is_a_few_requests(
    fs: WirespeedFileSystem, bucket: str, requests: Any
) -> None:
    path = f"{bucket}/lines"
    fs.pipe_file(path, b"".join(b"%d\n" % n for n in range(200_000)))
    with requests, fs.open(path) as file:
        assert sum(1 for _ in file) == 200_000
    assert requests.sent <= 10
    assert requests.received == fs.size(path)


def test_opening_what_is_not_there_says_so_at_once(fs: WirespeedFileSystem, bucket: str) -> None:
    with pytest.raises(FileNotFoundError):
        fs.open(f"{bucket}/nothing")
    with pytest.raises(IsADirectoryError):
        fs.open(bucket)
    fs.touch(f"{bucket}/k")
    with pytest.raises(NotImplementedError, match="mode"):
        fs.open(f"{bucket}/k", "r+b")
    with pytest.raises(ValueError, match="cache_type"):
        fs.open(f"{bucket}/k", cache_type="magic")
    with pytest.raises(TypeError, match="colour"):
        fs.open(f"{bucket}/k", colour="red")


def test_an_object_that_changes_while_it_is_read_is_an_error(
    fs: WirespeedFileSystem, path: str, data: bytes
) -> None:
    for size in (100, 100 * KIB, 9 * MIB):
        fs.pipe_file(path, data)
        with fs.open(path) as file:
            assert file.read(100) == data[:100]
            fs.pipe_file(path, bytes(len(data)))
            file.seek(10 * MIB)
            with pytest.raises(FileExpired, match="open it again") as raised:
                file.read(size)
            error = raised.value
            assert isinstance(error, OSError)
            assert isinstance(error, PreconditionError)
            assert (error.errno, error.filename) == (errno.EBUSY, f"s3://{path}")
            again = pickle.loads(pickle.dumps(error))
            assert (str(again), again.errno, again.status) == (str(error), error.errno, 412)
        with fs.open(path) as file:
            assert file.read(100) == bytes(100)


def test_a_read_that_is_interrupted_is_read_again(
    fs: WirespeedFileSystem, path: str, data: bytes
) -> None:
    class Interrupted:
        """A stream whose bytes are taken and then lost."""

        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def read(self, size: int) -> bytes:
            self.stream.read(size)
            raise KeyboardInterrupt

        def readinto(self, into: Any) -> int:
            self.stream.readinto(into)
            raise KeyboardInterrupt

        def close(self) -> None:
            self.stream.close()

    takes: tuple[Any, ...] = (
        lambda file: file.read(500 * KIB),
        lambda file: file.readinto(bytearray(500 * KIB)),
        lambda file: [file.seek(10 * KIB, 1), file.read(500 * KIB)],
    )
    for take in takes:
        with fs.open(path) as file:
            while file._stream is None:
                file.read(300 * KIB)
            place = file.tell()
            file._stream = Interrupted(file._stream)
            with pytest.raises(KeyboardInterrupt):
                take(file)
            file.seek(place)
            assert file.read(MIB) == data[place : place + MIB]


def test_a_listing_that_is_older_than_the_object_does_no_harm(
    fs: WirespeedFileSystem, options: dict[str, Any], bucket: str, requests: Any
) -> None:
    elsewhere = WirespeedFileSystem(**options, skip_instance_cache=True)
    path = f"{bucket}/d/k"
    fs.pipe_file(path, b"first")
    fs.ls(f"{bucket}/d")
    with requests, fs.open(path) as file:
        assert file.read() == b"first"
    assert requests.sent == 2
    stale = fs.ls(f"{bucket}/d")
    for now in (b"other", b"longer than it was", b"", b"no longer empty"):
        elsewhere.pipe_file(path, now)
        for how in ("wirespeed", "none", "readahead", "all"):
            fs.dircache[f"{bucket}/d"] = [dict(one) for one in stale]
            with fs.open(path, cache_type=how) as file:
                assert file.seek(-len(now) // 2, 2) == len(now) + -len(now) // 2
                assert file.read() == now[-len(now) // 2 :]
                file.seek(0)
                assert file.read(3) == now[:3]
                assert file.read() == now[3:]
                assert file.size == len(now)
        stale = fs.ls(f"{bucket}/d", refresh=True)


def test_a_file_is_opened_on_the_conditions_given(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, b"first")
    first = fs.info(path, refresh=True)["ETag"]
    with fs.open(path, IfMatch=first) as file:
        assert file.read() == b"first"
    fs.pipe_file(path, b"other")
    fs.ls(bucket)
    for name in ("IfMatch", "if_match"):
        with pytest.raises(PreconditionError):
            fs.open(path, **{name: first})


def test_a_file_can_be_pickled_where_it_stands(
    server: Any, path: str, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    fs = WirespeedFileSystem(endpoint_url=server.endpoint)
    with fs.open(path) as file:
        file.seek(1000)
        again = pickle.loads(pickle.dumps(file))
        assert again.tell() == 1000
        assert again.read(10) == data[1000:1010]
        fs.pipe_file(path, b"now it is another")
        with pytest.raises(PreconditionError):
            pickle.loads(pickle.dumps(file)).read(10)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_file_goes_on_in_a_child_of_a_fork(
    fs: WirespeedFileSystem, path: str, data: bytes
) -> None:
    with fs.open(path) as file:
        for _ in range(40):  # until it streams
            file.read(64 * KIB)
        place = file.tell()
        child = os.fork()
        if child == 0:
            ok = False
            try:
                ok = file.read(100) == data[place : place + 100]
            finally:
                os._exit(0 if ok else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert file.read(2 * MIB) == data[place : place + 2 * MIB]
