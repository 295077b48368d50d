"""The memory of tensors and storages, as the engine fills it.

The engine writes into anything with a writable buffer. A tensor has none of its own, so its memory
is shown as one by address; the view keeps the tensor alive.
"""

import ctypes
import sys
from typing import Any

import torch


def allocate(nbytes: int, *, pin: bool = False) -> torch.Tensor:
    """Fresh, uninitialised bytes, in pinned memory if asked for."""
    if pin and not torch.cuda.is_available():
        raise ValueError(
            "pin=True needs a GPU that torch can use: torch.cuda.is_available() is False here"
        )
    return torch.empty(nbytes, dtype=torch.uint8, pin_memory=pin)


def view_of(tensor: torch.Tensor) -> memoryview:
    """The writable bytes of a contiguous tensor on the CPU."""
    nbytes = tensor.numel() * tensor.element_size()
    if tensor.device.type != "cpu" or not tensor.is_contiguous():
        raise ValueError("only a contiguous tensor on the CPU has memory to fill")
    if nbytes == 0:
        return memoryview(bytearray())
    memory: Any = (ctypes.c_ubyte * nbytes).from_address(tensor.data_ptr())
    # The array doesn't own the memory; the view owns the array, and so the tensor.
    memory.owner = tensor
    return memoryview(memory).cast("B")


def untyped(tensor: torch.Tensor) -> torch.UntypedStorage:
    """The storage under a tensor."""
    if hasattr(tensor, "untyped_storage"):
        return tensor.untyped_storage()
    return tensor.storage().untyped()  # torch 1.13


def untyped_of(storage: torch.TypedStorage) -> torch.UntypedStorage:
    """The storage without its type."""
    # torch 2 warns of `untyped()`, 1.13 has nothing else.
    found = getattr(storage, "_untyped_storage", None)
    return storage.untyped() if found is None else found


def bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    """A storage as flat bytes, not copied."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def address_of(storage: torch.UntypedStorage) -> int:
    """What two views of one storage have in common, even of an empty one."""
    return getattr(storage, "_cdata")  # noqa: B009


def element_size(dtype: torch.dtype) -> int:
    """Bytes of one element."""
    return torch.empty(0, dtype=dtype).element_size()


def typed(storage: torch.UntypedStorage, dtype: torch.dtype) -> torch.TypedStorage:
    """A storage with the element type under which a checkpoint mentions it."""
    # torch 2 warns of typed storages unless told that it is asked from within.
    private = {"_internal": True} if hasattr(torch.Tensor, "untyped_storage") else {}
    return torch.TypedStorage(wrap_storage=storage, dtype=dtype, **private)


def as_dtype(
    flat: torch.Tensor, dtype: torch.dtype, shape: tuple[int, ...] | list[int]
) -> torch.Tensor:
    """Bytes seen as a tensor of another type, not copied; they begin where the type may begin."""
    if flat.numel() == 0:
        return torch.empty(shape, dtype=dtype, device=flat.device)
    return flat.view(dtype).view(shape)


def require_little_endian() -> None:
    """All formats here are little-endian, and tensors are filled as they come."""
    if sys.byteorder != "little":
        raise RuntimeError(
            "wirespeed.torch fills tensors byte by byte: it needs a little-endian CPU"
        )
