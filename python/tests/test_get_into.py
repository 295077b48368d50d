"""GET into the caller's memory, of every kind that Python knows."""

from __future__ import annotations

import array
import ctypes
import gc
import mmap
import random
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing import shared_memory
from typing import Any

import numpy
import pytest

import wirespeed

MIB = 1 << 20
SIZE = 9 * MIB + 8  # several parts, and whole rows of numbers


@pytest.fixture(scope="module")
def data() -> bytes:
    return random.Random(3).randbytes(SIZE)


@pytest.fixture
def where(s3: Any, bucket: str, data: bytes) -> str:
    s3.put_object(Bucket=bucket, Key="k", Body=data)
    return f"s3://{bucket}/k"


class OnlyDlpack:
    """Memory of a numpy array that only DLPack leads to, as that of a tensor."""

    def __init__(self, array: numpy.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def in_shared_memory(stack: ExitStack, size: int) -> memoryview:
    block = shared_memory.SharedMemory(create=True, size=size)
    stack.callback(block.unlink)
    stack.callback(block.close)
    view = block.buf[:size]
    stack.callback(view.release)
    return view


def in_a_mapped_file(stack: ExitStack, size: int) -> mmap.mmap:
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    file.truncate(size)
    return stack.enter_context(mmap.mmap(file.fileno(), size))


KINDS: dict[str, Callable[[ExitStack, int], Any]] = {
    "bytearray": lambda stack, size: bytearray(size),
    "memoryview": lambda stack, size: memoryview(bytearray(size)),
    "cast memoryview": lambda stack, size: memoryview(bytearray(size)).cast("i"),
    "array.array": lambda stack, size: array.array("I", bytes(size)),
    "ctypes": lambda stack, size: (ctypes.c_char * size)(),
    "numpy": lambda stack, size: numpy.zeros(size, "u1"),
    "numpy of floats": lambda stack, size: numpy.zeros(size // 4, "<f4"),
    "numpy of rows": lambda stack, size: numpy.zeros((2, size // 8), "<i4"),
    "a record array": lambda stack, size: numpy.zeros(size // 4, [("a", "<i2"), ("b", "<i2")]),
    "rows of numpy": lambda stack, size: numpy.zeros((3, size), "u1")[1],
    "numpy of times": lambda stack, size: numpy.zeros(size // 8, "M8[us]"),
    "records with an O in a name": lambda stack, size: numpy.zeros(
        size // 2, [("O", "u1"), ("P", "u1")]
    ),
    "mmap": in_a_mapped_file,
    "anonymous mmap": lambda stack, size: stack.enter_context(mmap.mmap(-1, size)),
    "shared memory": in_shared_memory,
    "DLPack": lambda stack, size: OnlyDlpack(numpy.zeros(size // 4, "<f4")),
    "DLPack of rows": lambda stack, size: OnlyDlpack(numpy.zeros((2, size // 8), "<i4")),
}


def content(destination: Any) -> bytes:
    if isinstance(destination, OnlyDlpack):
        return destination._array.tobytes()
    if isinstance(destination, numpy.ndarray):
        return destination.tobytes()
    return memoryview(destination).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_memory_is_filled(verbs: Any, where: str, data: bytes, kind: str) -> None:
    with ExitStack() as stack:
        destination = KINDS[kind](stack, SIZE)
        assert verbs.get_into(where, destination) == SIZE
        assert content(destination) == data


def test_what_lies_behind_the_bytes_is_left_alone(verbs: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    destination = bytearray(b"-" * 16)
    assert verbs.get_into("k", destination, bucket=bucket) == 10
    assert destination == b"0123456789------"


def test_a_view_into_the_middle_fills_the_middle(verbs: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    destination = bytearray(b"-" * 16)
    with memoryview(destination)[3:13] as view:
        assert verbs.get_into("k", view, bucket=bucket) == 10
    assert destination == b"---0123456789---"


def test_a_range_lands_at_the_front(verbs: Any, where: str, data: bytes) -> None:
    destination = numpy.zeros(5 * MIB, "u1")
    assert verbs.get_into(where, destination, range=(MIB + 1, 6 * MIB)) == 5 * MIB - 1
    assert destination[:-1].tobytes() == data[MIB + 1 : 6 * MIB]
    assert verbs.get_into(where, destination, range=(-7, None)) == 7
    assert destination[:7].tobytes() == data[-7:]


def test_an_empty_object_fits_into_nothing(verbs: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="empty", Body=b"")
    for nothing in (bytearray(), numpy.zeros(0), numpy.zeros((3, 0)), memoryview(bytearray())):
        assert verbs.get_into("empty", nothing, bucket=bucket) == 0


def test_too_small_a_destination_says_how_many_bytes_there_are(verbs: Any, where: str) -> None:
    for size in (0, 1, SIZE - 1):
        destination = bytearray(size)
        with pytest.raises(wirespeed.ConfigError) as raised:
            verbs.get_into(where, destination)
        assert str(SIZE) in str(raised.value)
        # It is its owner's again: a bytearray that is lent cannot change its length.
        destination.append(0)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "bytes": (lambda: bytes(SIZE), BufferError, "writable"),
    "read-only numpy": (lambda: read_only(numpy.zeros(SIZE, "u1")), BufferError, "writable"),
    "every other element": (lambda: numpy.zeros(2 * SIZE, "u1")[::2], BufferError, "contiguous"),
    "columns first": (lambda: numpy.zeros((2, SIZE), "u1", order="F"), BufferError, "contiguous"),
    "a transposed array": (lambda: numpy.zeros((SIZE, 2), "u1").T, BufferError, "contiguous"),
    "backwards": (lambda: numpy.zeros(SIZE, "u1")[::-1], BufferError, "contiguous"),
    "a strided memoryview": (
        lambda: memoryview(bytearray(2 * SIZE))[::2],
        BufferError,
        "one piece",
    ),
    "read-only memoryview": (lambda: memoryview(bytes(SIZE)), BufferError, "writable"),
    "a released memoryview": (lambda: released(), BufferError, "released"),
    "a closed mmap": (lambda: closed_mmap(), BufferError, "closed"),
    "a str": (lambda: "x" * SIZE, TypeError, "writable buffer"),
    "a list": (lambda: [0] * SIZE, TypeError, "writable buffer"),
    "None": (lambda: None, TypeError, "writable buffer"),
    "an int": (lambda: SIZE, TypeError, "writable buffer"),
    "an array of objects": (lambda: numpy.zeros(SIZE, "O"), TypeError, "references"),
    "records with objects": (
        lambda: numpy.zeros(SIZE, [("O", "u1"), ("x", "O")]),
        TypeError,
        "refer",
    ),
    "times and objects": (lambda: numpy.zeros(SIZE, "M8[s], O"), TypeError, "references"),
    "DLPack of another device": (lambda: OnAnotherDevice(), BufferError, "memory of the host"),
    "strided DLPack": (
        lambda: OnlyDlpack(numpy.zeros(2 * SIZE, "u1")[::2]),
        BufferError,
        "side by",
    ),
    "DLPack that is refused": (lambda: Withheld(), BufferError, "detach"),
}


def read_only(array: numpy.ndarray) -> numpy.ndarray:
    array.setflags(write=False)
    return array


def released() -> memoryview:
    view = memoryview(bytearray(SIZE))
    view.release()
    return view


def closed_mmap() -> mmap.mmap:
    mapped = mmap.mmap(-1, 4096)
    mapped.close()
    return mapped


class OnAnotherDevice:
    """A tensor on a GPU."""

    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("not asked for")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


class Withheld:
    """A tensor that has gradients."""

    def __dlpack__(self, **_: Any) -> Any:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("kind", REFUSED)
def test_memory_that_cannot_be_filled_is_refused(verbs: Any, where: str, kind: str) -> None:
    make, error, advice = REFUSED[kind]
    before = verbs.client.metrics()["requests"]
    with pytest.raises(error, match=advice):
        verbs.get_into(where, make())
    assert verbs.client.metrics()["requests"] == before


def test_the_destination_is_the_owners_again_after_every_end(
    verbs: Any, origin: Any, where: str, bucket: str
) -> None:
    destination = bytearray(SIZE)

    def is_free() -> None:
        destination.append(0)
        destination.pop()

    verbs.get_into(where, destination)
    is_free()
    with pytest.raises(wirespeed.NotFoundError):
        verbs.get_into("absent", destination, bucket=bucket)
    is_free()
    with pytest.raises(wirespeed.PreconditionError):
        verbs.get_into(where, destination, if_match='"other"')
    is_free()
    with pytest.raises(TypeError):
        verbs.get_into(where, destination, no_such_option=1)
    is_free()
    fault = {"action": "corrupt:1", "verb": "get", "bucket": bucket}
    with origin.misbehaving(fault), pytest.raises(wirespeed.IntegrityError):
        verbs.get_into(where, destination)
    is_free()

    def refuse(progress: wirespeed.Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        verbs.get_into(where, destination, progress=refuse)
    is_free()
    verbs.client.close()
    with pytest.raises(wirespeed.ConfigError, match="closed"):
        verbs.get_into(where, destination)
    is_free()


def test_dlpack_memory_is_released_with_the_tensor(verbs: Any, where: str) -> None:
    array = numpy.zeros(SIZE, "u1")
    before = sys.getrefcount(array)
    verbs.get_into(where, OnlyDlpack(array))
    gc.collect()
    assert sys.getrefcount(array) == before
    with pytest.raises(wirespeed.PreconditionError):
        verbs.get_into(where, OnlyDlpack(array), if_match='"other"')
    gc.collect()
    assert sys.getrefcount(array) == before


def test_nothing_of_the_engines_memory_is_used(verbs: Any, where: str) -> None:
    before = verbs.client.metrics()["memory_in_use"]
    most = []
    verbs.get_into(
        where,
        bytearray(SIZE),
        progress=lambda _: most.append(verbs.client.metrics()["memory_in_use"]),
    )
    assert max(most) - before < SIZE // 2


def test_many_calls_fill_parts_of_one_array(
    client: wirespeed.Client, where: str, data: bytes
) -> None:
    import asyncio

    array = numpy.zeros(SIZE, "u1")
    step = MIB + 11

    async def fill() -> None:
        await asyncio.gather(
            *(
                client.aio.get_into(where, array[at : at + step], range=(at, at + step))
                for at in range(0, SIZE, step)
            )
        )

    asyncio.run(fill())
    assert array.tobytes() == data
