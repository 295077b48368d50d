"""Buffer: bytes in the engine's memory, as every library that takes memory sees them."""

from __future__ import annotations

import array
import copy
import gc
import hashlib
import io
import json
import pickle
import struct
import weakref
import zlib
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import wirespeed

DATA = bytes(range(256)) * 40


@pytest.fixture
def buffer(client: wirespeed.Client, bucket: str) -> wirespeed.Buffer:
    client.put("k", DATA, bucket=bucket)
    return client.get("k", bucket=bucket)


def in_use(client: wirespeed.Client) -> int:
    gc.collect()
    return client.metrics()["memory_in_use"]


def test_it_is_a_sequence_of_numbers(buffer: wirespeed.Buffer) -> None:
    assert len(buffer) == buffer.nbytes == len(DATA)
    assert buffer[0] == 0
    assert buffer[-1] == DATA[-1]
    assert list(buffer) == list(DATA)
    assert 17 in buffer
    assert DATA[100:300] in buffer
    assert b"\x05\x05" not in buffer
    assert bytearray(b"\x05\x06") in buffer
    for index in (len(DATA), -len(DATA) - 1, 1 << 40, 1 << 70, -(1 << 70)):
        with pytest.raises(IndexError, match="of a Buffer of 10240 bytes"):
            buffer[index]
    for index in ("0", 1.5, None, (0, 1)):
        with pytest.raises(TypeError, match="an integer or a slice"):
            buffer[index]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "part",
    [
        slice(None),
        slice(10),
        slice(10, 20),
        slice(-10, None),
        slice(20, 10),
        slice(5, 1 << 40),
        slice(-(1 << 40), 5),
        slice(3, 3),
        slice(0, 10, 1),
    ],
)
def test_a_slice_is_a_buffer_with_the_same_memory(
    client: wirespeed.Client, buffer: wirespeed.Buffer, part: slice
) -> None:
    before = in_use(client)
    cut = buffer[part]
    assert type(cut) is wirespeed.Buffer
    assert bytes(cut) == DATA[part]
    assert cut.info.size == len(DATA)
    assert in_use(client) == before


def test_slices_of_slices_count_from_their_own_start(buffer: wirespeed.Buffer) -> None:
    assert bytes(buffer[100:][10:20][-3:]) == DATA[117:120]


def test_a_slice_with_a_step_says_how_to_have_it(buffer: wirespeed.Buffer) -> None:
    with pytest.raises(BufferError, match="memoryview"):
        buffer[::2]
    assert memoryview(buffer)[::-1].tobytes() == DATA[::-1]


def test_it_compares_with_everything_that_has_bytes(buffer: wirespeed.Buffer) -> None:
    assert buffer == DATA
    assert buffer == DATA
    assert buffer == bytearray(DATA)
    assert buffer == memoryview(DATA)
    assert buffer == buffer[:]
    assert buffer != DATA[1:]
    assert buffer != "text"
    assert buffer != None  # noqa: E711
    with pytest.raises(TypeError):
        buffer < DATA  # type: ignore[operator]  # noqa: B015


def test_what_it_was_compared_with_is_not_kept(buffer: wirespeed.Buffer) -> None:
    other = bytearray(DATA)
    assert buffer == other
    assert bytearray(DATA[:5]) in buffer
    other.append(0)
    assert buffer != other


def test_equal_ones_are_one_in_a_set(buffer: wirespeed.Buffer) -> None:
    assert hash(buffer) == hash(DATA)
    assert {buffer, buffer[:], DATA} == {DATA}
    assert {DATA: 1}[buffer] == 1  # type: ignore[index]


def test_it_cannot_be_written_to(buffer: wirespeed.Buffer) -> None:
    with pytest.raises(TypeError):
        buffer[0] = 1  # type: ignore[index]
    view = memoryview(buffer)
    assert view.readonly
    with pytest.raises(TypeError):
        view[0] = 1
    with pytest.raises(TypeError, match=r"read-write|writable"):
        io.BytesIO(b"x").readinto(buffer)  # type: ignore[arg-type]
    array = numpy.frombuffer(buffer, "u1")
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError, match="of this array"):
        array.setflags(write=True)
    with pytest.raises(AttributeError):
        buffer.info = None  # type: ignore[misc]
    with pytest.raises(TypeError):
        wirespeed.Buffer()


HOLDERS: dict[str, Callable[[wirespeed.Buffer], Any]] = {
    "slice": lambda buffer: buffer[5:],
    "memoryview": lambda buffer: memoryview(buffer)[5:],
    "numpy": lambda buffer: numpy.frombuffer(buffer, "u1")[5:],
    "dlpack": lambda buffer: numpy.from_dlpack(buffer)[5:],
    "legacy dlpack": lambda buffer: numpy.from_dlpack(Legacy(buffer))[5:],
    "capsule": lambda buffer: buffer.__dlpack__(),
}


@pytest.mark.parametrize("kind", HOLDERS)
def test_memory_goes_back_with_the_last_who_holds_it(
    client: wirespeed.Client, bucket: str, kind: str
) -> None:
    client.put("k", DATA, bucket=bucket)
    buffer = client.get("k", bucket=bucket)
    holder: Any = HOLDERS[kind](buffer)
    del buffer
    assert in_use(client) >= len(DATA)
    if kind != "capsule":
        assert bytes(holder) == DATA[5:]
    del holder
    assert in_use(client) == 0


class Legacy:
    """What a library before DLPack 1.0 sees."""

    def __init__(self, buffer: wirespeed.Buffer) -> None:
        self._buffer = buffer

    def __dlpack__(self, **_: Any) -> Any:
        return self._buffer.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._buffer.__dlpack_device__()


def test_numpy_reads_it_without_a_copy(client: wirespeed.Client, buffer: wirespeed.Buffer) -> None:
    before = in_use(client)
    floats = numpy.frombuffer(buffer, "<f4")
    assert floats.tobytes() == DATA
    bytes_ = numpy.from_dlpack(buffer)
    assert (bytes_.dtype, bytes_.shape) == (numpy.dtype("u1"), (len(DATA),))
    assert bytes_.tobytes() == DATA
    assert numpy.shares_memory(floats, bytes_)
    assert in_use(client) == before


def test_dlpack_1_says_that_it_is_read_only(buffer: wirespeed.Buffer) -> None:
    with pytest.raises(ValueError, match="read-only"):
        numpy.from_dlpack(buffer)[0] = 1
    assert "dltensor_versioned" in repr(buffer.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(buffer.__dlpack__())
    assert '"dltensor"' in repr(buffer.__dlpack__(max_version=(0, 8)))
    assert numpy.from_dlpack(Legacy(buffer)).tobytes() == DATA


def test_dlpack_refuses_what_it_cannot_do(buffer: wirespeed.Buffer) -> None:
    assert buffer.__dlpack_device__() == (1, 0)
    buffer.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="copy the array after"):
        buffer.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="memory of the host"):
        buffer.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="stream must be None"):
        buffer.__dlpack__(stream=1)


def test_an_empty_one_is_falsy_and_whole(client: wirespeed.Client, bucket: str) -> None:
    client.put("empty", b"", bucket=bucket)
    empty = client.get("empty", bucket=bucket)
    assert not empty
    assert bytes(empty) == b""
    assert empty == b""
    assert list(empty) == []
    assert memoryview(empty).nbytes == 0
    assert numpy.from_dlpack(empty).size == 0
    assert pickle.loads(pickle.dumps(empty)) == b""


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_bytes(buffer: wirespeed.Buffer, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(buffer[5:50], protocol))
    assert again == DATA[5:50]
    assert type(again) is bytes


def test_copies_are_bytes_or_itself(buffer: wirespeed.Buffer) -> None:
    assert copy.copy(buffer) == DATA
    assert copy.deepcopy(buffer) == DATA


def test_it_can_be_referred_to_weakly(buffer: wirespeed.Buffer) -> None:
    cut = buffer[1:]
    reference = weakref.ref(cut)
    assert reference() is cut
    del cut
    gc.collect()
    assert reference() is None


def test_the_standard_library_takes_it(buffer: wirespeed.Buffer, tmp_path: Any) -> None:
    assert hashlib.sha256(buffer).digest() == hashlib.sha256(DATA).digest()
    assert zlib.crc32(buffer) == zlib.crc32(DATA)
    assert zlib.decompress(zlib.compress(buffer)) == DATA
    assert struct.unpack_from("<I", buffer, 4) == struct.unpack_from("<I", DATA, 4)
    assert bytes(io.BytesIO(buffer).getvalue()) == DATA
    assert array.array("B", bytes(buffer)).tobytes() == DATA
    assert b"".join([buffer, buffer[:1]]) == DATA + DATA[:1]
    assert bytearray(buffer) == DATA
    assert int.from_bytes(buffer[1:3], "big") == 0x0102
    path = tmp_path / "file"
    path.write_bytes(buffer)
    assert path.read_bytes() == DATA


def test_json_is_read_from_it(client: wirespeed.Client, bucket: str) -> None:
    client.put("k.json", json.dumps({"a": [1, 2]}).encode(), bucket=bucket)
    assert json.loads(bytes(client.get("k.json", bucket=bucket))) == {"a": [1, 2]}


def test_it_is_sent_again_from_where_it_lies(
    verbs: Any, bucket: str, buffer: wirespeed.Buffer
) -> None:
    verbs.put("again", buffer, bucket=bucket)
    verbs.put("part", buffer[100:200], bucket=bucket)
    verbs.put("view", memoryview(buffer)[5:10], bucket=bucket)
    got = verbs.get_many(["again", "part", "view"], bucket=bucket)
    assert [bytes(one) for one in got] == [DATA, DATA[100:200], DATA[5:10]]


def test_it_is_no_destination(verbs: Any, bucket: str, buffer: wirespeed.Buffer) -> None:
    with pytest.raises(BufferError, match="writable"):
        verbs.get_into("k", buffer, bucket=bucket)
    assert buffer == DATA


def test_its_repr_shows_no_bytes(buffer: wirespeed.Buffer) -> None:
    assert repr(buffer) == "<wirespeed.Buffer of 10240 bytes>"


def test_it_outlives_its_client(client: wirespeed.Client, buffer: wirespeed.Buffer) -> None:
    client.close()
    assert buffer == DATA
    assert numpy.frombuffer(buffer, "u1").tobytes() == DATA
