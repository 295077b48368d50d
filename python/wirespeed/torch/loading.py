"""Reading a checkpoint: each storage straight from S3 into its memory.

Loading reads the zip archive's directory and its pickle, allocates the storages that the pickle
names, and has one call into the engine bring each record to its storage; then the pickle is read
around them. So a checkpoint is never held twice and never in a file. Storages that are shared stay
shared, views stay views.
"""

from __future__ import annotations

import io
import pickle
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from wirespeed import Client
from wirespeed.torch.archive import (
    LOCAL_HEADER,
    Record,
    data_offset,
    data_offset_by_header,
    read_directory,
)
from wirespeed.torch.errors import CorruptDataError
from wirespeed.torch.landing import Extent, Remote, fill, land
from wirespeed.torch.memory import allocate, require_little_endian, typed, untyped, view_of
from wirespeed.torch.objects import client_or_default
from wirespeed.torch.staging import CudaCopier, DeviceCopier, stage
from wirespeed.torch.unpickling import (
    FullUnpickler,
    SafeUnpickler,
    StorageId,
    checked_sparse_tensors,
    storages_of,
)

MapLocation = (
    str
    | torch.device
    | Mapping[str, str]
    | Callable[[torch.UntypedStorage, str], torch.UntypedStorage | None]
    | None
)

# The zip archive's directory: about 100 bytes a record, so enough for some thousands of tensors.
_TAIL = 512 << 10
# Records up to this size are fetched together with their neighbours, and copied to their storages.
_SMALL = 128 << 10


def load(
    uri: str,
    *,
    map_location: MapLocation = None,
    weights_only: bool = True,
    pin: bool = False,
    verify: bool | None = None,
    client: Client | None = None,
    copier: DeviceCopier | None = None,
) -> Any:
    """``torch.load(uri)``: each storage's bytes straight from S3 into its memory.

    `map_location` is `torch.load`'s. With `weights_only` only tensors, containers and plain values
    are built; a checkpoint with anything else raises `pickle.UnpicklingError`. Without it the
    checkpoint can run any code: only for those you trust. With `pin`, storages on the CPU are in
    pinned memory.

    The records' CRC-32 sums are compared, as `torch.load` does, for what is on the CPU (about 0.15
    core-seconds per GiB); with ``verify=True`` also for storages on a device, which are copied back
    for it, with ``verify=False`` for none.

    Storages for a CUDA device arrive through pinned staging memory, copied while more is received;
    `copier` does the copying in place of CUDA's streams.

    Checkpoints of the old formats, before torch 1.6, are read whole and handed to `torch.load`;
    with `weights_only` only to torch 2.6 or newer, since older ones can run code of theirs even so.

    Raises `CorruptDataError` for a damaged archive, `wirespeed.errors.NotFoundError` and the like
    for what S3 refuses.
    """
    require_little_endian()
    remote = Remote(client_or_default(client), uri, tail=_TAIL)
    records = read_directory(uri, remote.size, remote.read)
    if not records:
        if weights_only and not _reads_old_formats_safely(torch.__version__):
            raise pickle.UnpicklingError(
                f"{uri} is no zip archive. If it is a checkpoint of the old formats (before torch"
                f" 1.6): torch {torch.__version__} can't read those safely, even with"
                " weights_only=True (CVE-2025-32434). Use torch 2.6 or newer; or, if you trust"
                " where it comes from, load it with weights_only=False, and save it again"
            )
        whole = io.BytesIO(remote.read(0, remote.size))
        return torch.load(whole, map_location=map_location, weights_only=weights_only)
    archive = _Archive(remote, records)
    text = archive.read("data.pkl")
    try:
        wanted = storages_of(text)
    except Exception as error:
        raise CorruptDataError(uri, f"its pickle is damaged: {error}") from error
    storages = _Storages(archive, map_location, pin, copier)
    storages.fetch(wanted.values(), verify=verify)
    reader = SafeUnpickler if weights_only else FullUnpickler
    with checked_sparse_tensors():
        try:
            return reader(text, storages.get).load()
        except Exception as error:
            # A trusted class raises what it likes; from a pickle that may name none, all is damage.
            if not weights_only and not isinstance(error, pickle.UnpicklingError):
                raise
            raise pickle.UnpicklingError(f"{uri} can't be loaded: {error}") from error


def _reads_old_formats_safely(version: str) -> bool:
    """Whether a torch's `weights_only` holds for the formats before torch 1.6 as well."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) >= (2, 6)


class _Archive:
    """The records of a checkpoint, by their names without the archive's own."""

    def __init__(self, remote: Remote, records: Mapping[str, Record]) -> None:
        self.remote = remote
        root = next(iter(records)).partition("/")[0] + "/"
        self._records: dict[str, Record] = {}
        for name, record in records.items():
            # Two readers could otherwise take different records for the same one.
            if not name.startswith(root):
                raise CorruptDataError(
                    remote.uri,
                    f"record {name!r} lies outside of {root!r}, where the others are",
                    record.header,
                )
            self._records[name.removeprefix(root)] = record
        if "constants.pkl" in self._records:
            raise ValueError(
                f"{remote.uri} is a TorchScript archive, not a checkpoint: load it by"
                " torch.jit.load(io.BytesIO(client.get(uri, as_bytes=True)))"
            )
        if "byteorder" in self._records and self.read("byteorder") != b"little":
            raise ValueError(
                f"{remote.uri} was written on a big-endian machine, which is not read here"
            )

    def record(self, name: str) -> Record:
        record = self._records.get(name)
        if record is None:
            raise CorruptDataError(self.remote.uri, f"the checkpoint has no record {name!r}")
        if not record.stored:
            raise CorruptDataError(
                self.remote.uri,
                f"record {name!r} is compressed or encrypted, which torch.save never does",
                record.header,
            )
        return record

    def read(self, name: str) -> bytes:
        """The bytes of a record, its header read as well."""
        record = self.record(name)
        return self._cut(record, self.remote.read(record.header, record.limit))

    def read_together(self, records: Iterable[Record]) -> list[bytes]:
        """The bytes of small records: neighbours by one request."""
        wanted = list(records)
        got = self.remote.read_many([(record.header, record.limit) for record in wanted])
        return [self._cut(record, one) for record, one in zip(wanted, got, strict=True)]

    def offsets(self, records: Iterable[Record]) -> list[int]:
        """Where the data of records begin; reads the headers of those that lie unlike torch's."""
        wanted = list(records)
        found = [data_offset(record) for record in wanted]
        unknown = [record for record, at in zip(wanted, found, strict=True) if at is None]
        spans = [(record.header, record.header + LOCAL_HEADER) for record in unknown]
        headers = iter(self.remote.read_many(spans))
        return [
            data_offset_by_header(self.remote.uri, record, next(headers)) if at is None else at
            for record, at in zip(wanted, found, strict=True)
        ]

    def _cut(self, record: Record, span: bytes) -> bytes:
        at = data_offset_by_header(self.remote.uri, record, span) - record.header
        return span[at : at + record.size]


class _Storages:
    """The storages of a checkpoint: allocated where they belong, filled, handed out by key."""

    def __init__(
        self, archive: _Archive, map_location: MapLocation, pin: bool, copier: DeviceCopier | None
    ) -> None:
        self._archive = archive
        self._map_location = map_location
        self._pin = pin
        self._copier = copier
        self._bytes: dict[str, torch.Tensor] = {}
        self._records: dict[str, Record] = {}
        self._typed: dict[str, torch.TypedStorage] = {}

    def fetch(self, wanted: Iterable[StorageId], *, verify: bool | None) -> None:
        """Allocates and fills all storages, and brings them to the devices they are meant for."""
        storages = list(wanted)
        small: list[str] = []
        large: dict[torch.device, list[str]] = {}
        for one in storages:
            record = self._archive.record(f"data/{one.key}")
            if record.size != one.nbytes:
                raise CorruptDataError(
                    self._archive.remote.uri,
                    f"storage {one.key!r} has {one.nbytes:,} bytes, its record {record.size:,}",
                    record.header,
                )
            device = self._landing(one.location)
            self._records[one.key] = record
            if device.type == "cpu":
                self._bytes[one.key] = allocate(one.nbytes, pin=self._pin)
            else:
                self._bytes[one.key] = torch.empty(one.nbytes, dtype=torch.uint8, device=device)
            if one.nbytes <= _SMALL:
                small.append(one.key)
            else:
                large.setdefault(device, []).append(one.key)
        if small:
            self._fill_small(small)
        for device, keys in large.items():
            self._fill_large(device, keys)
        if verify is not False:
            self._check_sums(on_devices=verify is True)
        for one in storages:
            self.get(one)

    def _fill_small(self, keys: list[str]) -> None:
        found = self._archive.read_together(self._records[key] for key in keys)
        for key, data in zip(keys, found, strict=True):
            fill(self._bytes[key], data)

    def _fill_large(self, device: torch.device, keys: list[str]) -> None:
        offsets = self._archive.offsets(self._records[key] for key in keys)
        extents = [
            Extent(at, at + self._records[key].size, self._bytes[key])
            for key, at in zip(keys, offsets, strict=True)
        ]
        if self._copier is not None:
            stage(self._archive.remote, extents, self._copier)
        elif device.type == "cuda":
            stage(self._archive.remote, extents, CudaCopier(device))
        else:
            land(self._archive.remote, extents)

    def _check_sums(self, *, on_devices: bool) -> None:
        """Compares each record's CRC-32."""
        for key, record in self._records.items():
            if not on_devices and self._bytes[key].device.type != "cpu":
                continue
            data = self._bytes[key].cpu()
            if zlib.crc32(view_of(data)) != record.crc:
                raise CorruptDataError(
                    self._archive.remote.uri, f"storage {key!r} is damaged (CRC-32)", record.header
                )

    def get(self, wanted: StorageId) -> torch.TypedStorage:
        """The storage that a pickle mentions; the same one each time."""
        found = self._typed.get(wanted.key)
        if found is None:
            storage = self._restored(untyped(self._bytes[wanted.key]), wanted.location)
            found = self._typed[wanted.key] = typed(storage, wanted.dtype)
        return found

    def _landing(self, location: str) -> torch.device:
        """Where a storage's bytes go first: a CUDA device it is meant for, else the CPU."""
        place = self._mapped(location)
        if place is not None and place.startswith("cuda") and torch.cuda.is_available():
            return torch.device(place)
        return torch.device("cpu")

    def _mapped(self, location: str) -> str | None:
        """The location after `map_location`; ``None`` if a function will say."""
        mapping = self._map_location
        if mapping is None:
            return location
        if isinstance(mapping, (str, torch.device)):
            return str(mapping)
        if callable(mapping):
            return None
        return mapping.get(location, location)

    def _restored(self, storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage:
        """A filled storage on the device it is meant for."""
        place = self._mapped(location)
        if callable(self._map_location):
            moved = self._map_location(storage, location)
            if moved is not None:
                return moved
        # torch's own words where the device doesn't exist, and its own way to the rarer devices.
        return torch.serialization.default_restore_location(storage, place or location)
