"""Datasets: every sample once, in a known order, from prefixes, manifests and tar shards, and on
from any position."""

from __future__ import annotations

import io
import json
import pickle
import random
import tarfile
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

import wirespeed
from wirespeed.torch import (
    CorruptDataError,
    ObjectList,
    S3IterableDataset,
    S3MapDataset,
    S3Object,
    S3TarDataset,
    S3TarMapDataset,
    TarIndex,
)
from wirespeed.torch.fetching import Window

KIB = 1 << 10


def put_objects(bucket: str, client: wirespeed.Client, count: int) -> list[str]:
    """``data/000.bin`` and so on; each holds its number as text, and some more."""
    uris = [f"{bucket}/data/{index:03}.bin" for index in range(count)]
    for index, uri in enumerate(uris):
        client.put(uri, b"%d " % index + bytes(index))
    return uris


def number(sample: S3Object) -> int:
    return int(bytes(sample.data).split()[0])


def put_shards(
    bucket: str, client: wirespeed.Client, shards: int, samples: int, size: int = 300
) -> list[str]:
    """Shards with samples of two files: ``NNNN.cls`` has the number, ``NNNN.bin`` some bytes."""
    source = random.Random(1)
    uris: list[str] = []
    for shard in range(shards):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for index in range(samples):
                key = shard * samples + index
                data = bytes([key % 256]) * source.randrange(size)
                for name, content in (("cls", b"%d" % key), ("bin", data)):
                    info = tarfile.TarInfo(f"{key:04}.{name}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
        uris.append(f"{bucket}/shards/{shard:02}.tar")
        client.put(uris[-1], out.getvalue())
    return uris


def label(sample: dict[str, Any]) -> int:
    key = int(bytes(sample["cls"]))
    assert sample["__key__"] == f"{key:04}"
    assert set(bytes(sample["bin"])) <= {key % 256}
    return key


@pytest.mark.parametrize("dataset", [S3MapDataset, S3IterableDataset])
def test_objects_are_named_one_or_many_as_by_s3torchconnector(
    dataset: Any, bucket: str, client: wirespeed.Client
) -> None:
    uris = put_objects(bucket, client, 3)
    assert [number(sample) for sample in dataset.from_objects(uris)] == [0, 1, 2]
    assert [number(sample) for sample in dataset.from_objects(iter(uris))] == [0, 1, 2]
    one = dataset.from_objects(uris[1], transform=number, client=client)
    assert list(one) == [1]


class Pages:
    """A listing that holds these keys, for a bucket that no server here can have."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = keys

    def list(self, prefix: str) -> Pages:
        return self

    def pages(self) -> Any:
        return [self]

    def keys(self) -> list[str]:
        return self._keys

    def sizes(self) -> list[int]:
        return [1] * len(self._keys)


def test_a_prefix_may_be_of_an_access_point() -> None:
    point = "s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/mine"
    found: Any = ObjectList.from_prefix(f"{point}/data/", client=Pages(["data/a"]))  # pyright: ignore
    assert list(found) == [f"{point}/data/a"]


# --- prefixes and manifests ---


def test_a_prefix_has_all_its_objects_but_no_markers_of_folders(
    bucket: str, client: wirespeed.Client
) -> None:
    uris = put_objects(bucket, client, 12)
    client.put(f"{bucket}/data/", b"")
    client.put(f"{bucket}/data/readme.txt", b"hello")
    client.put(f"{bucket}/other", b"")
    found = ObjectList.from_prefix(f"{bucket}/data/", suffix=".bin", client=client)
    assert list(found) == uris
    assert [found.size(index) for index in range(3)] == [2, 3, 4]
    assert len(ObjectList.from_prefix(f"{bucket}/data/", client=client)) == 13
    assert len(ObjectList.from_prefix(bucket, client=client)) == 14


def test_a_manifest_is_a_file_with_a_uri_a_line_local_or_in_s3(
    bucket: str, client: wirespeed.Client, tmp_path: Path
) -> None:
    uris = [f"{bucket}/b with blank", f"{bucket}/ä"]
    text = f"# a comment\r\n{uris[0]}\r\n \n  {uris[1]}".encode()
    (tmp_path / "m.txt").write_bytes(text)
    client.put(f"{bucket}/m.txt", text)
    assert list(ObjectList.from_manifest(tmp_path / "m.txt")) == uris
    assert list(ObjectList.from_manifest(f"{bucket}/m.txt", client=client)) == uris


def test_a_key_in_a_manifest_keeps_the_blanks_at_its_end(tmp_path: Path) -> None:
    uris = ["s3://b/one ", "s3://b/two\t", "s3://b/th\rree", "s3://b/four\x0b", "s3://b/five "]
    for end in ("\n", "\r\n"):
        (tmp_path / "m.txt").write_bytes(end.join(uris).encode())
        assert list(ObjectList.from_manifest(tmp_path / "m.txt")) == uris


@pytest.mark.parametrize(
    ("text", "message"),
    [(b"s3://b/k\nb/k\n", "line 2 is not an object's URI"), (b"s3://b/\xff\n", "line 1 .* UTF-8")],
)
def test_a_broken_manifest_is_told_with_its_line(text: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_bytes(text)
    with pytest.raises(CorruptDataError, match=message):
        ObjectList.from_manifest(tmp_path / "m.txt")


# --- map-style ---


def test_a_map_dataset_has_objects_by_number(bucket: str, client: wirespeed.Client) -> None:
    uris = put_objects(bucket, client, 5)
    dataset = S3MapDataset.from_prefix(f"{bucket}/data/", client=client)
    assert len(dataset) == 5
    assert dataset[3].uri == uris[3]
    assert number(dataset[3]) == 3
    assert number(dataset[-1]) == 4
    assert [number(one) for one in dataset[[4, 0, 4]]] == [4, 0, 4]
    with pytest.raises(IndexError):
        dataset[5]
    assert list(S3MapDataset(uris, transform=number, client=client)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("context", [None, "fork", "spawn"])
def test_a_loader_over_a_map_dataset_gets_each_object_once(
    context: str | None, bucket: str, client: wirespeed.Client
) -> None:
    uris = put_objects(bucket, client, 23)
    # The parent's client has worked already when the children are made.
    dataset = S3MapDataset(uris, transform=number, client=client)
    assert dataset[1] == 1
    workers = {} if context is None else {"num_workers": 2, "multiprocessing_context": context}
    loader = DataLoader(dataset, batch_size=4, shuffle=True, **workers)
    assert sorted(int(one) for batch in loader for one in batch) == list(range(23))


def test_a_map_dataset_takes_whole_batches(bucket: str, client: wirespeed.Client) -> None:
    dataset = S3MapDataset(put_objects(bucket, client, 23), transform=number, client=client)
    batches = BatchSampler(SequentialSampler(dataset), 5, drop_last=False)
    loader = DataLoader(dataset, sampler=batches, batch_size=None, num_workers=2)
    assert [one for batch in loader for one in batch] == list(range(23))


def test_a_missing_object_is_an_error_that_names_it(bucket: str, client: wirespeed.Client) -> None:
    with pytest.raises(FileNotFoundError, match="nope"):
        S3MapDataset([f"{bucket}/nope"], client=client)[0]
    with pytest.raises(FileNotFoundError, match="nope"):
        list(S3IterableDataset([f"{bucket}/nope"], client=client))


# --- iterable-style ---


def test_an_iterable_dataset_yields_in_order_whatever_its_window(
    bucket: str, client: wirespeed.Client
) -> None:
    put_objects(bucket, client, 23)
    for window in (Window(1, 1), Window(5, 1 << 20), Window(100, 40), Window(64, 1 << 20)):
        dataset = S3IterableDataset.from_prefix(
            f"{bucket}/data/", transform=number, window=window, client=client
        )
        assert list(dataset) == list(range(23))
        assert list(dataset) == list(range(23))


def test_no_more_than_two_windows_are_fetched_ahead(bucket: str, client: wirespeed.Client) -> None:
    uris = [f"{bucket}/k{index}" for index in range(40)]
    for uri in uris:
        client.put(uri, bytes(100 * KIB))
    dataset = S3IterableDataset(uris, window=Window(4, 1 << 30), client=client)
    before = client.metrics()["bytes_received"]
    samples = iter(dataset)
    next(samples)
    for _ in range(20):
        # Enough turns for a runaway to show; what is allowed is in flight at once.
        client.exists(f"{bucket}/nothing")
    assert client.metrics()["bytes_received"] - before < 10 * 100 * KIB
    samples.close()


def test_shuffled_epochs_are_permutations_and_differ(bucket: str, client: wirespeed.Client) -> None:
    uris = put_objects(bucket, client, 30)
    dataset = S3IterableDataset(uris, shuffle=True, seed=5, transform=number, client=client)
    first = list(dataset)
    assert list(dataset) == first
    dataset.set_epoch(1)
    second = list(dataset)
    assert first != second
    assert sorted(first) == sorted(second) == list(range(30))


def test_ranks_share_the_samples(bucket: str, client: wirespeed.Client) -> None:
    uris = put_objects(bucket, client, 11)
    shares = [
        list(S3IterableDataset(uris, shuffle=True, rank=rank, world_size=3, transform=number))
        for rank in range(3)
    ]
    assert sorted(map(len, shares)) == [3, 4, 4]
    assert sorted(chain(*shares)) == list(range(11))
    even = [
        list(S3IterableDataset(uris, rank=rank, world_size=3, drop_uneven=True, transform=number))
        for rank in range(3)
    ]
    assert list(map(len, even)) == [3, 3, 3]


@pytest.mark.parametrize(
    ("context", "persistent"), [("fork", False), ("fork", True), ("spawn", True)]
)
def test_workers_share_the_samples_in_every_epoch(
    context: str, persistent: bool, bucket: str, client: wirespeed.Client
) -> None:
    uris = put_objects(bucket, client, 17)
    dataset = S3IterableDataset(uris, shuffle=True, transform=number, client=client)
    # So that a forked worker finds the parent's engine at work.
    next(iter(dataset))
    loader = DataLoader(
        dataset,
        batch_size=2,
        num_workers=2,
        multiprocessing_context=context,
        persistent_workers=persistent,
    )
    epochs = []
    for epoch in range(2):
        dataset.set_epoch(epoch)
        epochs.append([int(one) for batch in loader for one in batch])
    assert Counter(epochs[0]) == Counter(epochs[1]) == Counter(range(17))
    assert epochs[0] != epochs[1]


def test_the_rank_of_torch_distributed_counts(
    bucket: str, client: wirespeed.Client, tmp_path: Path
) -> None:
    if not torch.distributed.is_available():
        pytest.skip("this torch is built without torch.distributed")
    uris = put_objects(bucket, client, 6)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1
    )
    try:
        dataset = S3IterableDataset(uris, transform=number, client=client)
        assert list(dataset) == list(range(6))
        assert pickle.loads(pickle.dumps(dataset)).state_dict()["share"] == [0, 1]
    finally:
        torch.distributed.destroy_process_group()


def test_a_position_goes_on_with_the_next_sample(bucket: str, client: wirespeed.Client) -> None:
    uris = put_objects(bucket, client, 20)

    def dataset(**options: Any) -> S3IterableDataset:
        return S3IterableDataset(
            uris, shuffle=True, seed=2, transform=number, client=client, **options
        )

    first = dataset()
    first.set_epoch(3)
    samples = iter(first)
    seen = [next(samples) for _ in range(7)]
    state = json.loads(json.dumps(first.state_dict()))
    second = dataset()
    second.load_state_dict(state)
    before = client.metrics()["requests"]
    rest = list(second)
    assert client.metrics()["requests"] - before == 13, "what was seen is not fetched again"
    assert seen + rest == seen + list(samples)
    assert sorted(seen + rest) == list(range(20))
    # Only once: the epoch after it is whole.
    assert len(list(second)) == 20

    with pytest.raises(ValueError, match="its seed is 2, the dataset's is 9"):
        S3IterableDataset(uris, shuffle=True, seed=9).load_state_dict(state)
    with pytest.raises(ValueError, match="its objects is"):
        S3IterableDataset(uris[1:], shuffle=True, seed=2).load_state_dict(state)
    third = dataset(rank=0, world_size=2)
    third.load_state_dict(state)
    with pytest.raises(ValueError, match="share"):
        iter(third)


def test_datasets_pickle_without_the_secret(
    bucket: str, client: wirespeed.Client, endpoint: Any
) -> None:
    uris = put_objects(bucket, client, 3)
    shards = put_shards(bucket, client, 1, 2)
    for dataset in (
        S3MapDataset(uris, client=client),
        S3IterableDataset(uris, client=client),
        S3TarDataset(shards, client=client),
        S3TarMapDataset(TarIndex.build(shards, client=client), client=client),
    ):
        pickled = pickle.dumps(dataset)
        assert endpoint.secret_key.encode() not in pickled
        assert len([*pickle.loads(pickled)]) == (2 if "Tar" in type(dataset).__name__ else 3)


# --- tar shards ---


@pytest.mark.parametrize("window", [1, 4096, 64 << 20])
def test_a_tar_dataset_yields_the_samples_of_its_shards(
    window: int, bucket: str, client: wirespeed.Client
) -> None:
    put_shards(bucket, client, 3, 40)
    dataset = S3TarDataset.from_prefix(f"{bucket}/shards/", window=window, client=client)
    samples = list(dataset)
    assert [label(one) for one in samples] == list(range(120))
    assert samples[0]["__url__"] == f"{bucket}/shards/00.tar"
    assert all(
        type(one["bin"]) is bytes
        for one in S3TarDataset(dataset.objects, as_bytes=True, client=client)
    )


def test_members_are_slices_of_the_stream_and_not_copies(
    bucket: str, client: wirespeed.Client
) -> None:
    shards = put_shards(bucket, client, 1, 40)
    samples = list(S3TarDataset(shards, client=client))
    assert all(isinstance(one["bin"], wirespeed.Buffer) for one in samples if len(one["bin"]))


def test_a_large_member_that_crosses_parts_is_whole(bucket: str, client: wirespeed.Client) -> None:
    data = random.Random(4).randbytes(20 << 20)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("a.bin")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    client.put(f"{bucket}/large.tar", out.getvalue())
    (sample,) = S3TarDataset([f"{bucket}/large.tar"], client=client)
    assert sample["bin"] == data


def test_a_shuffle_buffer_shuffles_and_loses_nothing(bucket: str, client: wirespeed.Client) -> None:
    shards = put_shards(bucket, client, 4, 25)
    dataset = S3TarDataset(
        shards, shuffle=True, shuffle_buffer=30, seed=1, transform=label, client=client
    )
    first = list(dataset)
    assert sorted(first) == list(range(100))
    assert list(dataset) == first
    dataset.set_epoch(1)
    assert sorted(dataset) == list(range(100))
    shards_in_order = [one // 25 for one in first]
    assert len({*shards_in_order[:25]}) > 1, "the buffer mixes samples of several shards"


@pytest.mark.parametrize("buffer", [0, 1, 13, 500])
@pytest.mark.parametrize("taken", [0, 1, 10, 26, 59, 60])
def test_a_tar_position_goes_on_with_the_next_sample(
    buffer: int, taken: int, bucket: str, client: wirespeed.Client
) -> None:
    shards = put_shards(bucket, client, 3, 20)

    def dataset() -> S3TarDataset:
        return S3TarDataset(
            shards, shuffle=True, shuffle_buffer=buffer, transform=label, client=client
        )

    whole = list(dataset())
    first = dataset()
    samples = iter(first)
    assert [next(samples) for _ in range(taken)] == whole[:taken]
    state = json.loads(json.dumps(first.state_dict()))
    second = dataset()
    second.load_state_dict(state)
    assert list(second) == whole[taken:]
    # And from a position that was itself reached after a resumption.
    if taken == 10:
        second.load_state_dict(state)
        resumed = iter(second)
        again = [next(resumed) for _ in range(7)]
        third = dataset()
        third.load_state_dict(second.state_dict())
        assert again + list(third) == whole[10:]


def test_a_resumed_tar_dataset_fetches_no_shard_that_is_done(
    bucket: str, client: wirespeed.Client
) -> None:
    shards = put_shards(bucket, client, 4, 20, size=60_000)
    size = client.head(shards[0]).size
    first = S3TarDataset(shards, transform=label, client=client)
    samples = iter(first)
    for _ in range(65):
        next(samples)
    samples.close()
    second = S3TarDataset(shards, transform=label, client=client)
    second.load_state_dict(first.state_dict())
    before = client.metrics()["bytes_received"]
    assert list(second) == list(range(65, 80))
    assert client.metrics()["bytes_received"] - before < size


def test_ranks_and_workers_share_the_shards(bucket: str, client: wirespeed.Client) -> None:
    shards = put_shards(bucket, client, 6, 5)
    found: list[int] = []
    for rank in range(2):
        dataset = S3TarDataset(
            shards, shuffle=True, rank=rank, world_size=2, transform=label, client=client
        )
        loader = DataLoader(dataset, batch_size=None, num_workers=3)
        found += [int(one) for one in loader]
    assert sorted(found) == list(range(30))


def test_a_cut_shard_is_an_error_that_names_it(bucket: str, client: wirespeed.Client) -> None:
    (shard,) = put_shards(bucket, client, 1, 10)
    whole = client.get(shard, as_bytes=True)
    client.put(shard, whole[: len(whole) // 3])
    with pytest.raises(CorruptDataError, match=r"00\.tar.*ends"):
        list(S3TarDataset([shard], client=client))


def test_an_index_gives_the_samples_of_shards_by_number(
    bucket: str, client: wirespeed.Client, tmp_path: Path
) -> None:
    shards = put_shards(bucket, client, 3, 10)
    index = TarIndex.build(shards, client=client)
    index.save(tmp_path / "index.json")
    index.save(f"{bucket}/index.json", client=client)
    for where in (tmp_path / "index.json", f"{bucket}/index.json"):
        dataset = S3TarMapDataset(
            TarIndex.load(where, client=client), transform=label, client=client
        )
        assert len(dataset) == 30
        assert dataset[17] == 17
        assert dataset[[29, 0, 5]] == [29, 0, 5]
        loader = DataLoader(dataset, batch_size=4, shuffle=True, num_workers=2)
        assert sorted(int(one) for batch in loader for one in batch) == list(range(30))


@pytest.mark.parametrize("replaced_by", ["one as long", "a shorter one", "a longer one"])
def test_a_shard_that_was_replaced_since_it_was_indexed_is_an_error(
    replaced_by: str, bucket: str, client: wirespeed.Client
) -> None:
    shards = put_shards(bucket, client, 2, 10)
    dataset = S3TarMapDataset(TarIndex.build(shards, client=client), transform=label, client=client)
    assert dataset[[0, 19]] == [0, 19]
    data = client.get(shards[1], as_bytes=True)
    # Each is an archive that has the samples where they were, if it has them at all.
    client.put(
        shards[1],
        {
            "one as long": data.replace(b"0019.cls", b"0019.CLS"),
            "a shorter one": data[:512],
            "a longer one": data + bytes(512),
        }[replaced_by],
    )
    for wanted in ([19], [0, 19]):
        with pytest.raises(CorruptDataError, match=r"shards/01.tar.*was replaced since its index"):
            dataset[wanted]
    assert dataset[0] == 0


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"version": 2, "shards": [], "samples": []}',
        b'{"version": 1, "shards": [["s3://b/k", 512, "e"]], "samples": [[1, 0, 512]]}',
        b'{"version": 1, "shards": [["s3://b/k", 512, "e"]], "samples": [[0, 512, 0]]}',
        b'{"version": 1, "shards": [["s3://b/k", 512, "e"]], "samples": [[0, 512]]}',
        b'{"version": 1, "shards": [["s3://b/k", 512, "e"]], "samples": [[0, 0, 513]]}',
        b'{"version": 1, "shards": [["s3://b/k", "512", "e"]], "samples": []}',
        b'{"version": 1, "shards": ["s3://b/k"], "samples": []}',
    ],
)
def test_a_broken_index_is_refused(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "index.json").write_bytes(text)
    with pytest.raises(CorruptDataError, match="not an index"):
        TarIndex.load(tmp_path / "index.json")
