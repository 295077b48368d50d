"""torch's checkpoints: what `torch.load` makes of one, `wirespeed.torch.load` makes of it too."""

from __future__ import annotations

import collections
import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

import wirespeed
from wirespeed.torch import CorruptDataError, load, save
from wirespeed.torch.archive import data_offset, read_directory

MIB = 1 << 20


def network() -> torch.nn.Module:
    torch.manual_seed(3)
    made = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.BatchNorm2d(8),
        torch.nn.Flatten(),
        torch.nn.Linear(32, 900),
    )
    return made


def contents() -> dict[str, Any]:
    base = torch.arange(600_000.0)
    parameter = torch.nn.Parameter(torch.randn(4, 4))
    return {
        "model": network().state_dict(),
        "shared": [base, base[10:20], base.view(1000, 600).t(), base[::7]],
        "half": torch.randn(70_000).half(),
        "bfloat16": torch.randn(9, 9).to(torch.bfloat16),
        "bool": torch.tensor([True, False]),
        "complex": torch.randn(5, dtype=torch.complex64),
        "empty": torch.zeros(0, 5),
        "scalar": torch.tensor(3),
        "parameter": parameter,
        "again": parameter,
        "conjugate": torch.randn(3, dtype=torch.complex64).conj(),
        "nested": {"lr": 0.1, "betas": (0.9, 0.999), "step": 10**30, "on": True, "none": None},
        "names": ["ä", b"bytes", {1, 2}, collections.OrderedDict(a=1)],
        "dtype": torch.float16,
        "size": torch.Size([1, 2]),
        "device": torch.device("cpu"),
    }


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return (
            type(one) is type(other)
            and one.dtype == other.dtype
            and one.shape == other.shape
            and one.stride() == other.stride()
            and one.storage_offset() == other.storage_offset()
            and one.storage().nbytes() == other.storage().nbytes()
            and one.requires_grad == other.requires_grad
            and one.is_conj() == other.is_conj()
            and torch.equal(one, other)
        )
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def both(uri: str, client: wirespeed.Client) -> tuple[Any, Any]:
    theirs = torch.load(io.BytesIO(client.get(uri, as_bytes=True)), weights_only=False)
    return load(uri, client=client), theirs


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("verify", [True, False, None])
def test_what_is_saved_is_loaded_as_torch_loads_it(
    weights_only: bool, verify: bool | None, bucket: str, client: wirespeed.Client
) -> None:
    save(contents(), f"{bucket}/c.pt", client=client)
    ours = load(f"{bucket}/c.pt", weights_only=weights_only, verify=verify, client=client)
    theirs = torch.load(io.BytesIO(client.get(f"{bucket}/c.pt", as_bytes=True)), weights_only=False)
    assert same(ours, theirs)
    assert ours["parameter"] is ours["again"]
    assert len({one.storage().data_ptr() for one in ours["shared"]}) == 1
    ours["shared"][0][10] = -1
    assert ours["shared"][1][0] == -1


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_checkpoints_of_torch_and_of_ours_read_alike_whoever_reads_them(
    protocol: int, bucket: str, client: wirespeed.Client
) -> None:
    saved, out = contents(), io.BytesIO()
    torch.save(saved, out, pickle_protocol=protocol)
    client.put(f"{bucket}/theirs.pt", out.getvalue())
    save(saved, f"{bucket}/ours.pt", client=client, pickle_protocol=protocol)
    read = [one for name in ("ours.pt", "theirs.pt") for one in both(f"{bucket}/{name}", client)]
    assert all(same(one, read[0]) for one in read[1:])


def test_records_are_aligned_where_torch_aligns_them(bucket: str, client: wirespeed.Client) -> None:
    save(contents(), f"{bucket}/c.pt", client=client)
    data = client.get(f"{bucket}/c.pt", as_bytes=True)
    reader = torch._C.PyTorchFileReader(io.BytesIO(data))
    names = [name for name in reader.get_all_records() if name.startswith("data/")]
    assert len(names) > 10
    records = read_directory("", len(data), lambda start, end: data[start:end])
    offsets = [data_offset(records[f"archive/{name}"]) for name in names]
    assert all(offset is not None and offset % 64 == 0 for offset in offsets)


def test_one_storage_of_two_types_is_refused(bucket: str, client: wirespeed.Client) -> None:
    base = torch.zeros(8)
    with pytest.raises(ValueError, match="clone"):
        save([base, base.view(torch.int32)], f"{bucket}/c.pt", client=client)
    assert not client.exists(f"{bucket}/c.pt")


def test_an_optimizer_and_its_model_come_back(bucket: str, client: wirespeed.Client) -> None:
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model(torch.randn(2, 3, 4, 4)).sum().backward()
    optimizer.step()
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    save(saved, f"{bucket}/c.pt", client=client)
    loaded = load(f"{bucket}/c.pt", client=client)
    assert same(loaded["model"], saved["model"])
    fresh = torch.optim.Adam(network().parameters())
    fresh.load_state_dict(loaded["optimizer"])
    assert fresh.param_groups[0]["lr"] == 0.01


def test_sparse_and_quantized_tensors_are_read(bucket: str, client: wirespeed.Client) -> None:
    saved = {
        "sparse": torch.randn(30, 30).relu().to_sparse(),
        "csr": torch.eye(5).to_sparse_csr(),
        "quantized": torch.quantize_per_tensor(torch.randn(20), 0.1, 3, torch.qint8),
    }
    save(saved, f"{bucket}/c.pt", client=client)
    loaded = load(f"{bucket}/c.pt", client=client)
    assert torch.equal(loaded["sparse"].to_dense(), saved["sparse"].to_dense())
    assert torch.equal(loaded["csr"].to_dense(), saved["csr"].to_dense())
    assert torch.equal(loaded["quantized"].int_repr(), saved["quantized"].int_repr())
    assert loaded["quantized"].q_scale() == 0.1


def test_a_tensor_with_attributes_is_read_as_torch_reads_it(
    bucket: str, client: wirespeed.Client
) -> None:
    noted = torch.ones(3)
    noted.note = {"step": 7, "gain": 1 + 2j}
    save({"noted": noted}, f"{bucket}/c.pt", client=client)
    ours, theirs = both(f"{bucket}/c.pt", client)
    assert torch.equal(ours["noted"], noted)
    # torch 1.13 leaves the attributes of a plain tensor out, torch 2 keeps them.
    assert vars(ours["noted"]) == vars(theirs["noted"])


class Mine:
    """A class that only a trusting load may build."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Looks at the values: they must be there by now.
        self.tensor = state["tensor"]
        self.total = float(self.tensor.sum())


def test_classes_are_built_only_if_trusted_and_see_their_tensors_filled(
    bucket: str, client: wirespeed.Client
) -> None:
    save({"mine": Mine(torch.ones(MIB))}, f"{bucket}/c.pt", client=client)
    with pytest.raises(pickle.UnpicklingError, match=r"Mine.*weights_only=False"):
        load(f"{bucket}/c.pt", client=client)
    assert load(f"{bucket}/c.pt", client=client, weights_only=False)["mine"].total == MIB


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


def test_a_checkpoint_that_would_run_code_runs_none(
    bucket: str, client: wirespeed.Client, tmp_path: Path
) -> None:
    torch.save({"w": torch.ones(3), "evil": Evil(str(tmp_path / "was"))}, tmp_path / "c.pt")
    client.put(f"{bucket}/c.pt", (tmp_path / "c.pt").read_bytes())
    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        load(f"{bucket}/c.pt", client=client)
    assert not (tmp_path / "was").exists()
    load(f"{bucket}/c.pt", client=client, weights_only=False)
    assert (tmp_path / "was").exists()


HOSTILE = {
    "calls what it was not given": b"ctorch\nSize\n(I1\ntR(I1\ntR.",
    "sets the state of a function": b"ctorch._utils\n_rebuild_tensor_v2\n}X\1\0\0\0ai1sb.",
    "sets the state of a class": b"ctorch\nTensor\n}X\1\0\0\0aK\1sb.",
    "makes an instance the old way": b"(ctorch\nSize\no.",
    "names by instance": b"(itorch\nSize\n.",
    "asks for an extension": b"\x82\x01.",
    "reaches through a name": b"\x80\x04\x8c\x05torch\x8c\x0bos.mkdir.xx\x93.",
    "has a persistent id of text": b"Pstorage\n.",
    "has a persistent id of another kind": b"X\1\0\0\0a\x85Q.",
    "calls a built-in": b"cbuiltins\neval\nX\3\0\0\0 1 \x85R.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_pickle_that(name: str, bucket: str, client: wirespeed.Client) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", HOSTILE[name])
        archive.writestr("archive/version", "3")
    client.put(f"{bucket}/c.pt", out.getvalue())
    with pytest.raises((pickle.UnpicklingError, CorruptDataError)):
        load(f"{bucket}/c.pt", client=client)


def test_a_checkpoint_that_was_packed_again_is_read_by_its_headers(
    bucket: str, client: wirespeed.Client
) -> None:
    saved, out = io.BytesIO(), io.BytesIO()
    torch.save(contents(), saved)
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    client.put(f"{bucket}/c.pt", out.getvalue())
    saved.seek(0)
    assert same(load(f"{bucket}/c.pt", client=client), torch.load(saved, weights_only=False))


def test_a_compressed_archive_is_refused(bucket: str, client: wirespeed.Client) -> None:
    saved, out = io.BytesIO(), io.BytesIO()
    torch.save(contents(), saved)
    with (
        zipfile.ZipFile(saved) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            target.writestr(name, source.read(name))
    client.put(f"{bucket}/c.pt", out.getvalue())
    with pytest.raises(CorruptDataError, match="compressed"):
        load(f"{bucket}/c.pt", client=client)


def test_a_checkpoint_of_the_old_format_is_read(bucket: str, client: wirespeed.Client) -> None:
    out = io.BytesIO()
    torch.save({"a": torch.arange(5)}, out, _use_new_zipfile_serialization=False)
    client.put(f"{bucket}/c.pt", out.getvalue())
    assert torch.equal(load(f"{bucket}/c.pt", client=client)["a"], torch.arange(5))


def test_a_torchscript_archive_is_refused_with_the_way_to_load_it(
    bucket: str, client: wirespeed.Client
) -> None:
    out = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), out)
    client.put(f"{bucket}/c.pt", out.getvalue())
    with pytest.raises(ValueError, match=r"torch\.jit\.load"):
        load(f"{bucket}/c.pt", client=client)


def test_damage_is_noticed(bucket: str, client: wirespeed.Client) -> None:
    saved = io.BytesIO()
    torch.save({"a": torch.arange(MIB), "b": torch.ones(5)}, saved)
    whole = bytearray(saved.getvalue())

    flipped = whole[:]
    flipped[len(whole) // 2] ^= 4
    client.put(f"{bucket}/flipped", bytes(flipped))
    with pytest.raises(CorruptDataError, match="CRC-32"):
        load(f"{bucket}/flipped", client=client)
    load(f"{bucket}/flipped", client=client, verify=False)

    directory = whole[:]
    directory[directory.rindex(b"PK\1\2") + 1] ^= 1
    client.put(f"{bucket}/directory", bytes(directory))
    with pytest.raises(CorruptDataError, match="directory"):
        load(f"{bucket}/directory", client=client)

    client.put(f"{bucket}/cut", bytes(whole[len(whole) // 2 :]))
    with pytest.raises(CorruptDataError, match=r"directory|record"):
        load(f"{bucket}/cut", client=client)


def test_every_storage_must_have_its_record(bucket: str, client: wirespeed.Client) -> None:
    saved, out = io.BytesIO(), io.BytesIO()
    torch.save({"a": torch.arange(50), "b": torch.ones(5)}, saved)
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            if not name.endswith("data/1"):
                target.writestr(name, source.read(name))
    client.put(f"{bucket}/c.pt", out.getvalue())
    with pytest.raises(CorruptDataError, match="no record 'data/1'"):
        load(f"{bucket}/c.pt", client=client)


def test_map_location_is_torchs(bucket: str, client: wirespeed.Client) -> None:
    save({"a": torch.arange(9)}, f"{bucket}/c.pt", client=client)
    for where in ("cpu", torch.device("cpu"), {"cpu": "cpu"}, {"cuda:0": "cpu"}, None):
        loaded = load(f"{bucket}/c.pt", map_location=where, client=client)
        assert torch.equal(loaded["a"], torch.arange(9))
    seen: list[str] = []

    def note(storage: Any, location: str) -> Any:
        seen.append(location)
        return storage

    loaded = load(f"{bucket}/c.pt", map_location=note, client=client)
    assert torch.equal(loaded["a"], torch.arange(9))
    assert seen == ["cpu"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_told_in_torchs_words(
    bucket: str, client: wirespeed.Client
) -> None:
    save({"a": torch.arange(9)}, f"{bucket}/c.pt", client=client)
    with pytest.raises(RuntimeError, match="CUDA"):
        load(f"{bucket}/c.pt", map_location="cuda:0", client=client)


def test_a_checkpoint_is_loaded_in_few_requests_and_fetched_about_once(
    bucket: str, client: wirespeed.Client
) -> None:
    saved = {f"w{index}": torch.full((1000,), index) for index in range(1500)}
    saved["large"] = torch.arange(5 * MIB)
    save(saved, f"{bucket}/c.pt", client=client)
    size = client.head(f"{bucket}/c.pt").size
    before = client.metrics()
    loaded = load(f"{bucket}/c.pt", client=client)
    after = client.metrics()
    assert same(loaded, saved)
    assert after["requests"] - before["requests"] < 30
    assert after["bytes_received"] - before["bytes_received"] < size + 3 * MIB


def test_a_save_that_fails_leaves_no_object(bucket: str, client: wirespeed.Client) -> None:
    with pytest.raises((AttributeError, pickle.PicklingError)):
        save({"w": torch.ones(5 * MIB), "f": lambda: None}, f"{bucket}/c.pt", client=client)
    assert not client.exists(f"{bucket}/c.pt")


def test_a_save_that_the_server_refuses_raises_what_it_said(client: wirespeed.Client) -> None:
    with pytest.raises(wirespeed.errors.NotFoundError):
        save({"w": torch.ones(9 * MIB)}, "s3://no-such-bucket-of-ours/c.pt", client=client)


def test_a_checkpoint_that_is_not_there_is_a_missing_file(
    bucket: str, client: wirespeed.Client
) -> None:
    with pytest.raises(FileNotFoundError):
        load(f"{bucket}/nope", client=client)
