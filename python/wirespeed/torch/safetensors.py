"""safetensors files: each tensor's bytes straight from S3 into its memory, and back.

The first request brings the header, and all of a small file. Then one call into the engine brings
all tensors: a large one is asked for by itself, in parts; small neighbours are asked for together
and share one piece of memory, so that a model with thousands of small tensors isn't thousands of
requests. Nothing is copied on the way and no file is written.

The header is checked as the format demands before a byte is fetched: the tensors must fill the file
exactly, without overlaps and holes.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch

from wirespeed import Client, PutResult
from wirespeed.torch.errors import CorruptDataError
from wirespeed.torch.landing import Extent, Remote, land
from wirespeed.torch.memory import allocate, as_dtype, element_size, require_little_endian, view_of
from wirespeed.torch.objects import client_or_default
from wirespeed.torch.staging import CudaCopier, DeviceCopier, stage

# The format's own limit.
_LONGEST_HEADER = 100_000_000
# Tensors up to this size share memory with their neighbours, in runs of at most `_LONGEST_RUN`
# bytes.
_SMALL = 1 << 20
_LONGEST_RUN = 8 << 20
# What goes from a device to the writer at a time.
_WRITE = 32 << 20

# The format's names, and torch's; a torch that lacks a type lacks it here too.
_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}
_DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, other) for name, other in _NAMES.items() if hasattr(torch, other)
}
_DTYPE_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor in a file; `start` and `end` count from the file's beginning."""

    name: str
    dtype: torch.dtype
    shape: list[int]
    start: int
    end: int


def load_safetensors(
    uri: str,
    *,
    device: str | torch.device = "cpu",
    pin: bool = False,
    keys: Collection[str] | None = None,
    client: Client | None = None,
    copier: DeviceCopier | None = None,
) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file in S3, by name, in the file's order.

    `keys` are the names wanted; the others are not fetched. On the CPU the tensors are in pinned
    memory if `pin`. On a CUDA `device` they arrive through pinned staging memory, copied while
    more is received; `copier` does the copying in place of CUDA's streams.

    Tensors of up to 1 MiB that are neighbours in the file share one storage of at most 8 MiB.

    Raises `CorruptDataError` for a file that breaks the format's rules, `KeyError` for a name that
    is not in it, `wirespeed.errors.NotFoundError` and the like for what S3 refuses.
    """
    require_little_endian()
    target = torch.device(device)
    remote = Remote(client_or_default(client), uri)
    entries = read_header(remote)
    if keys is not None:
        known = {entry.name for entry in entries}
        for key in keys:
            if key not in known:
                raise KeyError(
                    f"{uri} has no tensor {key!r}; it has {len(known)}: {sorted(known)[:8]}"
                )
        wanted = set(keys)
        entries = [entry for entry in entries if entry.name in wanted]
    runs = list(_runs(entries))
    if copier is None and target.type == "cpu":
        memory = [allocate(run[-1].end - run[0].start, pin=pin) for run in runs]
    else:
        memory = [
            torch.empty(run[-1].end - run[0].start, dtype=torch.uint8, device=target)
            for run in runs
        ]
    extents = [
        Extent(run[0].start, run[-1].end, flat) for run, flat in zip(runs, memory, strict=True)
    ]
    if copier is not None or target.type == "cuda":
        stage(remote, extents, copier or CudaCopier(target))
    elif target.type == "cpu":
        land(remote, extents)
    else:
        raise ValueError(f"device {device!r}: expected the CPU or a CUDA device")
    return {
        entry.name: as_dtype(
            flat[entry.start - run[0].start : entry.end - run[0].start], entry.dtype, entry.shape
        )
        for run, flat in zip(runs, memory, strict=True)
        for entry in run
    }


def read_header(remote: Remote) -> list[Entry]:
    """The tensors that a file has, in the order of their bytes; raises `CorruptDataError`."""
    uri = remote.uri
    if remote.size < 8:
        raise CorruptDataError(uri, f"not a safetensors file: it has {remote.size} bytes")
    length = int.from_bytes(remote.read(0, 8), "little")
    if length > _LONGEST_HEADER:
        raise CorruptDataError(
            uri, f"not a safetensors file: its header would be {length:,} bytes, of at most 100 MB"
        )
    begin = 8 + length
    if begin > remote.size:
        raise CorruptDataError(
            uri, f"was cut short: its header is {length:,} bytes, the whole file {remote.size:,}"
        )
    try:
        header: Any = json.loads(remote.read(8, begin), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise CorruptDataError(uri, f"its header is not JSON: {error}", 8) from error
    if not isinstance(header, dict):
        raise CorruptDataError(uri, "its header is not a JSON object", 8)
    tensors = cast("dict[str, Any]", header)
    _check_metadata(uri, tensors.pop("__metadata__", None))
    entries = [_entry(uri, name, described, begin) for name, described in tensors.items()]
    entries.sort(key=lambda entry: (entry.start, entry.end))
    at = begin
    for entry in entries:
        if entry.start != at:
            problem = (
                "overlaps the one before it" if entry.start < at else "leaves a hole before it"
            )
            raise CorruptDataError(uri, f"tensor {entry.name!r} {problem}", entry.start)
        at = entry.end
    if at != remote.size:
        problem = "was cut short" if at > remote.size else "has bytes that belong to no tensor"
        raise CorruptDataError(
            uri, f"{problem}: tensors end at {at:,}, the file at {remote.size:,}"
        )
    return entries


def save_safetensors(
    tensors: Mapping[str, torch.Tensor],
    uri: str,
    *,
    metadata: Mapping[str, str] | None = None,
    client: Client | None = None,
) -> PutResult | None:
    """Writes tensors as a safetensors file, streamed: no temporary file, and no copy of all of it.

    Tensors may be on any device and of any strides; those that share memory are each written in
    full. The object appears when all is written; if anything fails there is none.
    """
    require_little_endian()
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    # Larger elements first, so that each tensor begins where its type may begin.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    at = 0
    for name, tensor in ordered:
        if name == "__metadata__":
            raise ValueError("no tensor may be named __metadata__")
        if tensor.dtype not in _DTYPE_NAMES or tensor.layout != torch.strided:
            raise ValueError(
                f"safetensors has no {tensor.dtype} of layout {tensor.layout}: {name!r}"
            )
        end = at + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _DTYPE_NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, end],
        }
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    expected = 8 + len(text) + at
    with client_or_default(client).writer(uri, expected_size=expected) as writer:
        writer.write(len(text).to_bytes(8, "little") + text)
        for _, tensor in ordered:
            for piece in _pieces(tensor):
                writer.write(piece)
    return writer.result


def _pieces(tensor: torch.Tensor) -> Iterator[memoryview]:
    """A tensor's bytes in order, some of them at a time on the CPU."""
    if tensor.numel() == 0:
        return
    flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
    for piece in flat.split(_WRITE):
        yield view_of(piece.cpu())


def _runs(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Tensors that are fetched together: a large one, or small neighbours."""
    run: list[Entry] = []
    for entry in entries:
        begins = not run or (
            entry.start != run[-1].end
            or entry.end - entry.start > _SMALL
            or run[0].end - run[0].start > _SMALL
            or entry.end - run[0].start > _LONGEST_RUN
            # Seen as its type, a tensor must begin at a multiple of its elements' size.
            or (entry.start - run[0].start) % element_size(entry.dtype)
        )
        if begins and run:
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def _entry(uri: str, name: str, described: Any, begin: int) -> Entry:
    if not isinstance(described, dict) or set(cast("dict[str, Any]", described)) != {
        "dtype",
        "shape",
        "data_offsets",
    }:
        raise CorruptDataError(
            uri, f"tensor {name!r} is not described by dtype, shape, data_offsets"
        )
    fields = cast("dict[str, Any]", described)
    dtype, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise CorruptDataError(uri, f"tensor {name!r} has a shape or offsets that are no sizes")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise CorruptDataError(
            uri,
            f"tensor {name!r} is of type {dtype!r}, which torch {torch.__version__} does not have",
        )
    kind = _DTYPES[dtype]
    nbytes = element_size(kind)
    for length in shape:
        nbytes *= length
    start, end = offsets
    if end - start != nbytes:
        raise CorruptDataError(
            uri,
            f"tensor {name!r} of {dtype} {shape} has {nbytes:,} bytes, not {end - start:,}",
        )
    return Entry(name, kind, shape, begin + start, begin + end)


def _are_sizes(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(type(one) is int and 0 <= one < 1 << 63 for one in cast("list[Any]", value))


def _check_metadata(uri: str, metadata: Any) -> None:
    if metadata is None:
        return
    if not isinstance(metadata, dict) or not all(
        isinstance(value, str) for value in cast("dict[str, Any]", metadata).values()
    ):
        raise CorruptDataError(uri, "its __metadata__ is not a map of strings to strings")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found
