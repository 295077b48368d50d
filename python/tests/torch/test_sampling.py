"""The arithmetic of epochs, shares, draws and positions."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest

from wirespeed.torch import ObjectList
from wirespeed.torch.sampling import (
    Draws,
    Share,
    check_rank,
    epoch_order,
    share_of,
)


@pytest.mark.parametrize("count", [0, 1, 7, 64, 101])
@pytest.mark.parametrize("consumers", [1, 3, 8])
@pytest.mark.filterwarnings("ignore:.*some have nothing to read")
def test_consumers_share_all_units_and_none_twice(count: int, consumers: int) -> None:
    order = epoch_order(count, shuffle=True, seed=3, epoch=1)
    shares = [list(share_of(order, Share(one, consumers))) for one in range(consumers)]
    assert Counter(unit for share in shares for unit in share) == Counter(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_without_the_uneven_rest_all_consumers_have_as_many() -> None:
    order = epoch_order(10, shuffle=False, seed=0, epoch=0)
    shares = [list(share_of(order, Share(one, 4), drop_uneven=True)) for one in range(4)]
    assert shares == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_each_epoch_and_seed_has_an_order_of_its_own_that_every_process_finds() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return list(epoch_order(50, shuffle=True, seed=seed, epoch=epoch))

    assert order(1, 2) == order(1, 2)
    orders = [order(seed, epoch) for seed in range(3) for epoch in range(3)]
    assert len({tuple(one) for one in orders}) == 9
    assert all(sorted(one) == list(range(50)) for one in orders)


def test_more_consumers_than_units_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="2 objects or shards for 3 consumers"):
        share_of(range(2), Share(0, 3))


def test_draws_go_on_from_their_count_and_are_even() -> None:
    draws = Draws(seed=1, epoch=0, share=Share(0, 1))
    first = [draws.below(10) for _ in range(5000)]
    assert draws.made == 5000
    again = Draws(seed=1, epoch=0, share=Share(0, 1), made=4990)
    assert [again.below(10) for _ in range(10)] == first[4990:]
    counts = Counter(first)
    assert set(counts) == set(range(10))
    assert min(counts.values()) > 400
    other = Draws(seed=1, epoch=0, share=Share(1, 2))
    assert [other.below(10) for _ in range(20)] != first[:20]


@pytest.mark.parametrize(("rank", "world"), [(0, None), (None, 2), (2, 2), (-1, 2)])
def test_a_rank_that_can_not_be_is_refused(rank: int | None, world: int | None) -> None:
    with pytest.raises(ValueError, match="rank"):
        check_rank(rank, world)


def test_a_list_of_objects_is_a_sequence_of_uris() -> None:
    uris = [f"s3://bucket/k{n}/ä" for n in range(1000)]
    found = ObjectList(uris, range(1000))
    assert list(found) == uris
    assert found[-1] == uris[-1]
    assert found[10:13] == uris[10:13]
    assert found.size(7) == 7
    again = pickle.loads(pickle.dumps(found))
    assert list(again) == uris
    assert again.fingerprint == found.fingerprint
    assert ObjectList(uris[::-1]).fingerprint != found.fingerprint
    with pytest.raises(IndexError):
        found[1000]


def test_what_is_no_uri_is_refused() -> None:
    with pytest.raises(ValueError, match="expected s3://bucket/key"):
        ObjectList(["bucket/key"])
    with pytest.raises(ValueError, match="2 sizes"):
        ObjectList(["s3://b/k"], [1, 2])
