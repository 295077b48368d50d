"""safetensors files: equal tensors, few requests, a clear error for each rule that is broken."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
import torch

import wirespeed
from wirespeed.torch import CorruptDataError, load_safetensors, save_safetensors
from wirespeed.torch.safetensors import _DTYPES

MIB = 1 << 20


def file_of(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor_of(start: int, end: int, dtype: str = "U8", shape: list[int] | None = None) -> Any:
    return {"dtype": dtype, "shape": shape or [end - start], "data_offsets": [start, end]}


def model() -> dict[str, torch.Tensor]:
    """All types, shapes of all ranks, and sizes on both sides of every limit of the loader."""
    generator = torch.Generator().manual_seed(1)

    def random(*shape: int) -> torch.Tensor:
        return torch.randint(0, 255, shape, dtype=torch.uint8, generator=generator)

    found = {
        "large": random(3 * MIB).view(torch.float32),
        "medium": random(MIB).view(torch.int16).reshape(4, -1),
        "huge": random(20 * MIB).view(torch.int64),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
    }
    for dtype in _DTYPES.values():
        raw = random(48) % 2 if dtype == torch.bool else random(48)
        found[f"small.{dtype}"] = raw.view(dtype).reshape(3, -1)
    for index in range(40):
        found[f"layer.{index}.bias"] = random(301)
        found[f"layer.{index}.weight"] = random(64 * 1024).view(torch.bfloat16).reshape(64, -1)
    return found


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (
        one.dtype == other.dtype
        and one.shape == other.shape
        and one.is_contiguous()
        and bytes(one.reshape(-1).view(torch.uint8).numpy())
        == bytes(other.contiguous().reshape(-1).view(torch.uint8).numpy())
    )


def test_what_is_saved_is_loaded(bucket: str, client: wirespeed.Client) -> None:
    tensors = model()
    save_safetensors(tensors, f"{bucket}/m", metadata={"step": "7"}, client=client)
    loaded = load_safetensors(f"{bucket}/m", client=client)
    assert loaded.keys() == tensors.keys()
    assert all(same(loaded[name], tensors[name]) for name in tensors)


def test_the_safetensors_library_reads_what_is_saved_and_writes_what_is_loaded(
    bucket: str, client: wirespeed.Client
) -> None:
    library = pytest.importorskip("safetensors.torch")
    tensors = {"a.weight": torch.randn(50, 3), "ä": torch.arange(7).to(torch.bfloat16)}
    save_safetensors(tensors, f"{bucket}/ours", metadata={"k": "v"}, client=client)
    theirs = library.load(client.get(f"{bucket}/ours", as_bytes=True))
    assert {name: bool(torch.equal(theirs[name], one)) for name, one in tensors.items()} == {
        "a.weight": True,
        "ä": True,
    }
    client.put(f"{bucket}/theirs", library.save(tensors, metadata={"k": "v"}))
    ours = load_safetensors(f"{bucket}/theirs", client=client)
    assert all(torch.equal(ours[name], one) for name, one in tensors.items())


def test_a_small_file_is_one_request_and_thousands_of_small_tensors_are_few(
    bucket: str, client: wirespeed.Client
) -> None:
    save_safetensors({"a": torch.arange(1000)}, f"{bucket}/small", client=client)
    before = client.metrics()["requests"]
    load_safetensors(f"{bucket}/small", client=client)
    assert client.metrics()["requests"] - before == 1

    many = {f"t{index}": torch.full((2048,), index) for index in range(2000)}
    save_safetensors(many, f"{bucket}/many", client=client)
    before = client.metrics()["requests"]
    loaded = load_safetensors(f"{bucket}/many", client=client)
    assert client.metrics()["requests"] - before < 20
    assert all(torch.equal(loaded[name], one) for name, one in many.items())


def test_only_the_keys_asked_for_are_fetched(bucket: str, client: wirespeed.Client) -> None:
    tensors = {f"t{index}": torch.full((4 * MIB,), index, dtype=torch.uint8) for index in range(6)}
    save_safetensors(tensors, f"{bucket}/m", client=client)
    before = client.metrics()["bytes_received"]
    loaded = load_safetensors(f"{bucket}/m", keys=["t4", "t1"], client=client)
    assert client.metrics()["bytes_received"] - before < 10 * MIB
    assert loaded.keys() == {"t1", "t4"}
    assert torch.equal(loaded["t4"], tensors["t4"])
    with pytest.raises(KeyError, match="no tensor 'nope'"):
        load_safetensors(f"{bucket}/m", keys=["nope"], client=client)


def test_loaded_tensors_can_be_written_to_and_large_ones_own_their_memory(
    bucket: str, client: wirespeed.Client
) -> None:
    tensors = {"a": torch.ones(MIB), "b": torch.ones(MIB), "c": torch.ones(3), "d": torch.ones(3)}
    save_safetensors(tensors, f"{bucket}/m", client=client)
    loaded = load_safetensors(f"{bucket}/m", client=client)
    for one in loaded.values():
        one.mul_(2)
    assert all(bool((one == 2).all()) for one in loaded.values())
    assert loaded["a"].storage().nbytes() == 4 * MIB


def test_non_contiguous_and_shared_tensors_are_saved_as_what_they_show(
    bucket: str, client: wirespeed.Client
) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    tensors = {"t": base.t(), "every": base[:, ::2], "base": base}
    save_safetensors(tensors, f"{bucket}/m", client=client)
    loaded = load_safetensors(f"{bucket}/m", client=client)
    assert all(torch.equal(loaded[name], one) for name, one in tensors.items())


BROKEN: dict[str, tuple[bytes, str]] = {
    "nothing at all": (b"", "is empty"),
    "seven bytes": (b"1234567", "it has 7 bytes"),
    "a header of exabytes": (b"\xff" * 8 + b"{}", "at most 100 MB"),
    "a header past the end": (struct.pack("<Q", 90) + b"{}", "was cut short"),
    "no JSON": (file_of(b"{nonsense"), "not JSON"),
    "no UTF-8": (file_of(b'{"\xff\xfe": 1}'), "not JSON"),
    "a bomb of brackets": (file_of(b"[" * 100_000), "not JSON"),
    "a list": (file_of([1]), "not a JSON object"),
    "a name twice": (
        file_of(b'{"a":%s,"a":%s}' % ((json.dumps(tensor_of(0, 1)).encode(),) * 2), b"1"),
        "twice",
    ),
    "metadata of numbers": (file_of({"__metadata__": {"a": 1}}), "__metadata__"),
    "a tensor that is a list": (file_of({"a": [1]}), "not described"),
    "a tensor without offsets": (file_of({"a": {"dtype": "U8", "shape": [1]}}), "not described"),
    "an unknown type": (file_of({"a": tensor_of(0, 1, "Q7")}, b"1"), "'Q7'"),
    "a type that is a list": (file_of({"a": tensor_of(0, 1) | {"dtype": []}}, b"1"), "type \\[\\]"),
    "a negative length": (file_of({"a": tensor_of(0, 1, shape=[-1])}, b"1"), "no sizes"),
    "a length that is true": (
        file_of({"a": {"dtype": "U8", "shape": [True], "data_offsets": [0, 1]}}, b"1"),
        "no sizes",
    ),
    "three offsets": (
        file_of({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 2]}}, b"1"),
        "no sizes",
    ),
    "a shape larger than its bytes": (file_of({"a": tensor_of(0, 4, "F32", [2])}, b"1234"), "8 by"),
    "a shape that overflows": (
        file_of({"a": tensor_of(0, 4, "F32", [1 << 40, 1 << 40])}, b"1234"),
        "bytes, not 4",
    ),
    "an overlap": (file_of({"a": tensor_of(0, 4), "b": tensor_of(2, 6)}, b"123456"), "overlaps"),
    "a hole": (file_of({"a": tensor_of(0, 2), "b": tensor_of(4, 6)}, b"123456"), "hole"),
    "a hole at the beginning": (file_of({"a": tensor_of(2, 4)}, b"1234"), "hole"),
    "bytes behind the last": (file_of({"a": tensor_of(0, 2)}, b"1234"), "belong to no tensor"),
    "too few bytes": (file_of({"a": tensor_of(0, 4)}, b"12"), "was cut short"),
    "ends before it begins": (file_of({"a": tensor_of(4, 0, shape=[4])}, b"1234"), "not -4"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_with(name: str, bucket: str, client: wirespeed.Client) -> None:
    data, message = BROKEN[name]
    client.put(f"{bucket}/broken", data)
    with pytest.raises(CorruptDataError, match=message) as refused:
        load_safetensors(f"{bucket}/broken", client=client)
    assert refused.value.uri == f"{bucket}/broken"


def test_a_file_without_tensors_is_an_empty_dictionary(
    bucket: str, client: wirespeed.Client
) -> None:
    client.put(f"{bucket}/none", file_of({"__metadata__": {"a": "b"}}))
    assert load_safetensors(f"{bucket}/none", client=client) == {}


def test_what_is_not_there_is_told_as_a_missing_file(bucket: str, client: wirespeed.Client) -> None:
    with pytest.raises(FileNotFoundError):
        load_safetensors(f"{bucket}/nope", client=client)
    with pytest.raises(ValueError, match="expected s3://bucket/key"):
        load_safetensors("nope", client=client)


def test_a_failed_save_leaves_no_object(bucket: str, client: wirespeed.Client) -> None:
    class Broken(torch.Tensor):
        def contiguous(self, *_: object, **__: object) -> torch.Tensor:
            raise RuntimeError("the device is gone")

    tensors = {"a": torch.ones(4 * MIB), "b": torch.ones(3).as_subclass(Broken)}
    with pytest.raises(RuntimeError, match="the device is gone"):
        save_safetensors(tensors, f"{bucket}/m", client=client)
    assert not client.exists(f"{bucket}/m")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_pinned_memory_without_a_gpu_is_refused_with_the_reason(
    bucket: str, client: wirespeed.Client
) -> None:
    save_safetensors({"a": torch.ones(3)}, f"{bucket}/m", client=client)
    with pytest.raises(ValueError, match="needs a GPU"):
        load_safetensors(f"{bucket}/m", pin=True, client=client)
