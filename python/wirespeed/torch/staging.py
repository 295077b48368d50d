"""On to a device through pinned memory, each copy while the next bytes arrive.

A device can't be written to from the network, and a copy out of ordinary memory makes the driver
copy once more. So bytes land in a few slots of pinned memory, and the device copies each slot on a
stream of its own. The slots are in two groups. While one group is being received the other is
copied, so neither the network nor the device waits for the other, and memory is bounded by the
slots.

What the device does is behind `DeviceCopier`, so that the order of things is tested without a
device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import torch

from wirespeed.torch.landing import Extent, Remote, missing_of
from wirespeed.torch.memory import view_of

if TYPE_CHECKING:
    from wirespeed._wirespeed import Completions

SLOT = 16 << 20
SLOTS = 16


class DeviceCopier(Protocol):
    """What copies from the CPU's memory to a device's."""

    def staging(self, nbytes: int) -> torch.Tensor:
        """Bytes on the CPU that `copy` can read while the CPU goes on: pinned memory."""
        ...

    def copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Begins to copy staged bytes to bytes on the device."""
        ...

    def mark(self) -> Callable[[], None]:
        """What waits until all copies begun so far are done."""
        ...

    def finish(self) -> None:
        """All copies are done, and whoever uses the device next sees them."""
        ...


class CudaCopier:
    """Copies on a CUDA stream of its own."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)
        # Targets may have been made by work that the current stream has still to do.
        self._stream.wait_stream(torch.cuda.current_stream(device))

    def staging(self, nbytes: int) -> torch.Tensor:
        return torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)

    def copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        with torch.cuda.stream(self._stream):
            target.copy_(source, non_blocking=True)
        target.record_stream(self._stream)

    def mark(self) -> Callable[[], None]:
        event = torch.cuda.Event()
        event.record(self._stream)
        return event.synchronize

    def finish(self) -> None:
        torch.cuda.current_stream(self._device).wait_stream(self._stream)
        self._stream.synchronize()


class _Piece:
    """Bytes that follow each other in the object and fit into one slot; they go to some targets."""

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.targets: list[torch.Tensor] = []

    def add(self, target: torch.Tensor) -> None:
        self.targets.append(target)
        self.end += target.numel()


def pieces_of(extents: Sequence[Extent], slot: int) -> Iterator[_Piece]:
    """Cuts extents to slots, and puts small neighbours into one."""
    piece: _Piece | None = None
    for extent in extents:
        at = extent.start
        while at < extent.end:
            if piece is None or piece.end != at or piece.end - piece.start == slot:
                if piece is not None:
                    yield piece
                piece = _Piece(at)
            count = min(extent.end - at, piece.start + slot - piece.end)
            piece.add(extent.target[at - extent.start : at - extent.start + count])
            at += count
    if piece is not None:
        yield piece


class _Group:
    """Half of the slots: received into, then copied out of."""

    def __init__(self, remote: Remote, copier: DeviceCopier, slots: Sequence[torch.Tensor]) -> None:
        self._remote = remote
        self._copier = copier
        self._slots = slots
        self._pieces: list[_Piece] = []
        self._arriving: Completions[Any] | None = None
        self._copied: Callable[[], None] | None = None

    def receive(self, pieces: Iterator[_Piece]) -> None:
        """Begins to receive the next pieces, once the slots have been copied out of."""
        if self._copied is not None:
            self._copied()
        self._pieces = list(islice(pieces, len(self._slots)))
        if self._pieces:
            self._arriving = self._remote.client.get_many(
                [(self._remote.uri, (piece.start, piece.end)) for piece in self._pieces],
                into=[
                    view_of(slot[: piece.end - piece.start])
                    for piece, slot in zip(self._pieces, self._slots, strict=False)
                ],
                as_completed=True,
                errors="raise",
                **self._remote.version,
            )

    def hand_on(self) -> bool:
        """Begins the copy of each piece as it arrives; false if there was nothing to receive."""
        if self._arriving is None:
            return False
        for index, _ in self._arriving:
            at = 0
            for target in self._pieces[index].targets:
                self._copier.copy(self._slots[index][at : at + target.numel()], target)
                at += target.numel()
        self._copied = self._copier.mark()
        self._arriving = None
        return True

    def close(self) -> None:
        if self._arriving is not None:
            self._arriving.close()


def stage(
    remote: Remote,
    extents: Sequence[Extent],
    copier: DeviceCopier,
    *,
    slot: int = SLOT,
    slots: int = SLOTS,
) -> None:
    """Fills targets on a device; `slots` x `slot` bytes of pinned memory at most.

    When it returns the bytes are on the device. If a request fails, or the person presses Ctrl-C,
    what is in flight is stopped and the error is raised; the targets are then undefined.
    """
    wanted = missing_of(remote, sorted(extents, key=lambda one: one.start))
    total = sum(one.end - one.start for one in wanted)
    pieces = pieces_of(wanted, slot)
    # Two groups, however few bytes there are; no slot at all where there are none.
    needed = min(max(slots // 2 * 2, 2), 2 * -(-total // slot))
    memory = [copier.staging(min(slot, total)) for _ in range(needed)]
    with ExitStack() as running:
        running.callback(copier.finish)
        groups = [
            _Group(remote, copier, memory[: needed // 2]),
            _Group(remote, copier, memory[needed // 2 :]),
        ]
        for group in groups:
            running.callback(group.close)
            group.receive(pieces)
        turn = 0
        while groups[turn].hand_on():
            groups[turn].receive(pieces)
            turn = 1 - turn
