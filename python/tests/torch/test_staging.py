"""Pinned staging: the order of receiving and copying, with a device that is made of threads; and a
GPU where there is one."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import torch

import wirespeed
from wirespeed.torch import load, load_safetensors, save, save_safetensors
from wirespeed.torch.landing import Extent, Remote
from wirespeed.torch.staging import pieces_of, stage

MIB = 1 << 20


class Device:
    """Copies in a thread of its own, in order and some time later, as a CUDA stream does."""

    def __init__(self) -> None:
        self.staged: list[torch.Tensor] = []
        self.copies = 0
        self.waits = 0
        self.finished = 0
        self.delay = 0.0
        self.fails = False
        self._orders: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        for order in iter(self._orders.get, None):
            time.sleep(random.random() * self.delay)
            order()

    def staging(self, nbytes: int) -> torch.Tensor:
        self.staged.append(torch.empty(nbytes, dtype=torch.uint8))
        return self.staged[-1]

    def copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        if self.fails:
            raise RuntimeError("the device is gone")
        self.copies += 1
        self._orders.put(lambda: target.copy_(source))

    def mark(self) -> Callable[[], None]:
        done = threading.Event()
        self._orders.put(done.set)

        def wait() -> None:
            self.waits += 1
            assert done.wait(20)

        return wait

    def finish(self) -> None:
        self.mark()()
        self.finished += 1

    def stop(self) -> None:
        self._orders.put(None)
        self._thread.join()


@pytest.fixture
def device() -> Iterator[Device]:
    made = Device()
    yield made
    made.stop()


def remote_of(data: bytes, bucket: str, client: wirespeed.Client) -> Remote:
    client.put(f"{bucket}/data", data)
    return Remote(client, f"{bucket}/data")


def test_pieces_fit_slots_and_take_small_neighbours_together() -> None:
    target = torch.empty(100, dtype=torch.uint8)
    extents = [
        Extent(0, 3, target[0:3]),
        Extent(3, 5, target[3:5]),
        Extent(5, 30, target[5:30]),
        Extent(40, 45, target[40:45]),
    ]
    found = [
        (one.start, one.end, [t.numel() for t in one.targets]) for one in pieces_of(extents, 10)
    ]
    assert found == [
        (0, 10, [3, 2, 5]),
        (10, 20, [10]),
        (20, 30, [10]),
        (40, 45, [5]),
    ]


@pytest.mark.parametrize(("slot", "slots"), [(MIB, 2), (MIB, 5), (300_001, 8), (64 * MIB, 16)])
def test_bytes_reach_the_device_though_it_copies_late(
    slot: int, slots: int, bucket: str, client: wirespeed.Client, device: Device
) -> None:
    data = random.Random(7).randbytes(9 * MIB)
    device.delay = 0.01
    cuts = [0, 5, 1000, 2 * MIB, 2 * MIB, 7 * MIB + 3, len(data)]
    target = torch.zeros(len(data), dtype=torch.uint8)
    extents = [Extent(a, b, target[a:b]) for a, b in pairwise(cuts)]
    random.Random(1).shuffle(extents)
    stage(remote_of(data, bucket, client), extents, device, slot=slot, slots=slots)
    assert bytes(target.numpy()) == data
    assert sum(one.numel() for one in device.staged) <= slots * slot
    assert device.finished == 1


def test_a_slot_is_received_into_only_when_it_was_copied_out(
    bucket: str, client: wirespeed.Client, device: Device
) -> None:
    data = random.Random(8).randbytes(6 * MIB)
    target = torch.zeros(len(data), dtype=torch.uint8)
    remote = remote_of(data, bucket, client)
    device.delay = 0.02
    stage(remote, [Extent(0, len(data), target)], device, slot=MIB // 2, slots=2)
    assert bytes(target.numpy()) == data
    # The first MiB was in hand; ten slots' worth came through two.
    assert device.copies == 10
    assert device.waits >= 8


def test_a_device_that_fails_stops_the_transfer_and_is_waited_for(
    bucket: str, client: wirespeed.Client, device: Device
) -> None:
    remote = remote_of(bytes(4 * MIB), bucket, client)
    target = torch.empty(4 * MIB, dtype=torch.uint8)
    device.fails = True
    with pytest.raises(RuntimeError, match="the device is gone"):
        stage(remote, [Extent(0, 4 * MIB, target)], device, slot=MIB, slots=2)
    assert device.finished == 1


def test_an_object_that_changed_meanwhile_is_an_error_and_not_a_mixture(
    bucket: str, client: wirespeed.Client, device: Device
) -> None:
    remote = remote_of(bytes(4 * MIB), bucket, client)
    client.put(f"{bucket}/data", b"1" * (4 * MIB))
    target = torch.empty(4 * MIB, dtype=torch.uint8)
    with pytest.raises(wirespeed.errors.PreconditionError):
        stage(remote, [Extent(0, 4 * MIB, target)], device, slot=MIB, slots=2)
    assert device.finished == 1


def test_safetensors_and_checkpoints_go_through_the_device_that_is_given(
    bucket: str, client: wirespeed.Client, device: Device
) -> None:
    tensors = {"large": torch.randn(3 * MIB), "b": torch.arange(1000), "c": torch.ones(7).half()}
    save_safetensors(tensors, f"{bucket}/s", client=client)
    loaded = load_safetensors(f"{bucket}/s", client=client, copier=device)
    assert all(torch.equal(loaded[name], one) for name, one in tensors.items())
    copied = device.copies
    assert copied > 0
    save(tensors, f"{bucket}/c", client=client)
    loaded = load(f"{bucket}/c", client=client, copier=device)
    assert all(torch.equal(loaded[name], one) for name, one in tensors.items())
    assert device.copies > copied


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use is here")
def test_weights_reach_a_gpu(bucket: str, client: wirespeed.Client) -> None:
    tensors = {f"t{index}": torch.randn(3 * MIB + index) for index in range(40)}
    tensors |= {f"s{index}": torch.randn(index) for index in range(100)}
    save_safetensors(tensors, f"{bucket}/s", client=client)
    save(tensors, f"{bucket}/c", client=client)
    for loaded in (
        load_safetensors(f"{bucket}/s", device="cuda", client=client),
        load(f"{bucket}/c", map_location="cuda", client=client),
    ):
        assert all(one.is_cuda for one in loaded.values())
        assert all(torch.equal(loaded[name].cpu(), one) for name, one in tensors.items())
    pinned = load_safetensors(f"{bucket}/s", pin=True, client=client)
    assert all(one.is_pinned() for one in pinned.values() if one.numel())
