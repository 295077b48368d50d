"""A loader that goes on with the very next batch, with and without workers."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import pytest
import torch

import wirespeed
from wirespeed.torch import ResumableDataLoader, S3IterableDataset, S3MapDataset, S3Object


def number(sample: S3Object) -> int:
    return int(bytes(sample.data))


@pytest.fixture
def uris(bucket: str, client: wirespeed.Client) -> list[str]:
    made = [f"{bucket}/{index:03}" for index in range(50)]
    for index, uri in enumerate(made):
        client.put(uri, b"%d" % index)
    return made


def loader_over(uris: list[str], client: wirespeed.Client, **options: Any) -> ResumableDataLoader:
    dataset = S3IterableDataset(uris, shuffle=True, seed=4, transform=number, client=client)
    return ResumableDataLoader(dataset, batch_size=3, **options)


def lists(batches: Any) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": 0},
        {"num_workers": 1},
        {"num_workers": 3},
        {"num_workers": 2, "persistent_workers": True},
    ],
    ids=["no workers", "one worker", "three workers", "persistent"],
)
@pytest.mark.parametrize("taken", [0, 1, 7])
def test_a_loader_goes_on_with_the_very_next_batch(
    options: dict[str, Any], taken: int, uris: list[str], client: wirespeed.Client
) -> None:
    whole = lists(loader_over(uris, client, **options))
    assert Counter(itertools.chain(*whole)) == Counter(range(50))
    first = loader_over(uris, client, **options)
    assert lists(itertools.islice(first, taken)) == whole[:taken]
    state = json.loads(json.dumps(first.state_dict()))
    second = loader_over(uris, client, **options)
    second.load_state_dict(state)
    assert lists(second) == whole[taken:]
    # The epoch after that one is whole, and the same loader can be set back.
    assert Counter(itertools.chain(*lists(second))) == Counter(range(50))
    second.load_state_dict(state)
    assert lists(second) == whole[taken:]


def test_a_position_reaches_spawned_workers(uris: list[str], client: wirespeed.Client) -> None:
    whole = lists(loader_over(uris, client, num_workers=2))
    first = loader_over(uris, client, num_workers=2)
    lists(itertools.islice(first, 3))
    second = loader_over(uris, client, num_workers=2, multiprocessing_context="spawn")
    second.load_state_dict(first.state_dict())
    assert lists(second) == whole[3:]


def test_a_position_taken_in_a_resumed_epoch_goes_on_too(
    uris: list[str], client: wirespeed.Client
) -> None:
    whole = lists(loader_over(uris, client, num_workers=3))
    state: dict[str, Any] | None = None
    found: list[list[int]] = []
    for _ in range(4):
        loader = loader_over(uris, client, num_workers=3)
        if state is not None:
            loader.load_state_dict(state)
        found += lists(itertools.islice(loader, 2))
        state = loader.state_dict()
    assert found == whole[:8]


def test_the_epoch_of_the_position_is_that_of_all_workers(
    uris: list[str], client: wirespeed.Client
) -> None:
    first = loader_over(uris, client, num_workers=3)
    first.dataset.set_epoch(6)
    whole = lists(first)
    lists(itertools.islice(first, 1))
    second = loader_over(uris, client, num_workers=3)
    second.load_state_dict(first.state_dict())
    assert lists(second) == whole[1:]


def test_a_position_of_another_number_of_workers_is_refused(
    uris: list[str], client: wirespeed.Client
) -> None:
    state = loader_over(uris, client, num_workers=2).state_dict()
    with pytest.raises(ValueError, match="num_workers=2, this one has 0"):
        loader_over(uris, client).load_state_dict(state)


def test_a_dataset_position_does_not_silently_go_to_workers(
    uris: list[str], client: wirespeed.Client
) -> None:
    dataset = S3IterableDataset(uris, transform=number, client=client)
    dataset.load_state_dict(dataset.state_dict() | {"samples": 9})
    with pytest.raises(ValueError, match="share"):
        list(torch.utils.data.DataLoader(dataset, num_workers=2))


def test_only_datasets_with_a_position_are_taken(uris: list[str]) -> None:
    with pytest.raises(TypeError, match="its sampler's"):
        ResumableDataLoader(S3MapDataset(uris))


def test_torchdatas_loader_goes_on_too(uris: list[str], client: wirespeed.Client) -> None:
    stateful = pytest.importorskip(
        "torchdata.stateful_dataloader", reason="torchdata is for torch 2"
    )

    def loader() -> Any:
        dataset = S3IterableDataset(uris, shuffle=True, transform=number, client=client)
        return stateful.StatefulDataLoader(dataset, batch_size=3, num_workers=2)

    whole = lists(loader())
    first = loader()
    assert lists(itertools.islice(first, 5)) == whole[:5]
    second = loader()
    second.load_state_dict(first.state_dict())
    assert lists(second) == whole[5:]
