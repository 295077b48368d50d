"""Who reads what, in which order: epochs, shares of ranks and workers, draws, saved positions.

All of it is arithmetic on (seed, epoch, number of the consumer): every process finds the same
answer with no word to the others, and a position is a few integers. Nothing here reads an object.

A *consumer* is one worker process of one rank (or the rank itself, without workers). Of N
consumers, consumer c has every N-th unit of the epoch's order, beginning with c: no unit is with
two of them, and none is left out. If the count does not divide, the first consumers have one unit
more; with ``drop_uneven`` the last few units of the order are left out instead, others each epoch
if shuffled.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed
from torch.utils.data import get_worker_info

_MASK = (1 << 64) - 1

State = dict[str, Any]
"""A saved position: integers, strings and lists only, so JSON and `torch.save` both take it."""


@dataclass(frozen=True)
class Share:
    """The number of a consumer, and how many there are; and its number among its rank's workers."""

    index: int
    count: int
    worker: int = 0


def distributed_rank() -> tuple[int, int] | None:
    """(rank, world size) as torch.distributed has it; ``None`` where it is not initialised."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return None


def check_rank(rank: int | None, world_size: int | None) -> tuple[int, int] | None:
    """(rank, world size) if given; both or neither must be."""
    if rank is None and world_size is None:
        return None
    if rank is None or world_size is None:
        raise ValueError("rank and world_size go together: give both, or neither")
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is not one of 0 to {world_size - 1}")
    return rank, world_size


def this_share(ranked: tuple[int, int] | None, first_worker: int = 0) -> Share:
    """The share of this process: its rank's, or the part of it that this DataLoader worker has.

    `first_worker` turns the workers' numbers round: a resumed loader begins with the worker whose
    turn it was.
    """
    rank, world_size = ranked or distributed_rank() or (0, 1)
    info = get_worker_info()
    if info is None:
        return Share(rank, world_size)
    worker = (info.id + first_worker) % info.num_workers
    workers = info.num_workers
    return Share(rank * workers + worker, world_size * workers, worker)


def mix(*numbers: int) -> int:
    """64 bits that depend on all of `numbers` (the finaliser of splitmix64, chained)."""
    value = 0
    for number in numbers:
        value = (value + number + 0x9E3779B97F4A7C15) & _MASK
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
        value ^= value >> 31
    return value


def epoch_order(count: int, *, shuffle: bool, seed: int, epoch: int) -> Sequence[int]:
    """The order of `count` units in an epoch: the same in every process."""
    if not shuffle:
        return range(count)
    generator = torch.Generator()
    generator.manual_seed(mix(seed, epoch) >> 1)
    return _Permutation(torch.randperm(count, generator=generator))


def share_of(order: Sequence[int], share: Share, *, drop_uneven: bool = False) -> Sequence[int]:
    """The units of one consumer, in its order."""
    if len(order) < share.count:
        warnings.warn(
            f"{len(order)} objects or shards for {share.count} consumers (ranks x workers):"
            " some have nothing to read",
            stacklevel=3,
        )
    kept = len(order) - len(order) % share.count if drop_uneven else len(order)
    return order[share.index : kept : share.count]


class _Permutation(Sequence[int]):
    """A tensor of indices as a sequence: 8 bytes an index."""

    def __init__(self, indices: torch.Tensor) -> None:
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return _Permutation(self._indices[at])
        return int(self._indices[at])


class Draws:
    """The random choices of a shuffle buffer, each a function of its number: so a count resumes."""

    def __init__(self, seed: int, epoch: int, share: Share, made: int = 0) -> None:
        self._base = mix(seed, epoch, share.index, share.count)
        self.made = made

    def below(self, limit: int) -> int:
        """The next choice, of 0 to `limit` - 1."""
        drawn = mix(self._base, self.made)
        self.made += 1
        return (drawn * limit) >> 64


class EpochNumber:
    """The epoch to be iterated next, seen by DataLoader workers while they live.

    It is a tensor in shared memory: torch hands the same memory to forked and to spawned workers,
    so that `set_epoch` in the parent also reaches persistent workers. Pickled otherwise it is a
    copy.
    """

    def __init__(self) -> None:
        self._number = torch.zeros(1, dtype=torch.int64).share_memory_()

    def get(self) -> int:
        return int(self._number[0])

    def set(self, epoch: int) -> None:
        self._number[0] = epoch


def check_state(state: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuses a position that belongs to another dataset or other settings."""
    for name, value in expected.items():
        if state.get(name) != value:
            raise ValueError(
                f"this position does not fit the dataset: its {name} is {state.get(name)!r},"
                f" the dataset's is {value!r}"
            )
