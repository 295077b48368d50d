"""Writing a checkpoint: `torch.save`'s archive, streamed into an upload.

torch's own writer is not used: it copies each storage whole, and an error or Ctrl-C while it calls
back into Python ends the process. The archive is the same: records that are stored as they are,
aligned to 64 bytes, so that `torch.load` (its ``mmap=True`` as well) reads it.

The pickle comes first, then each storage in pieces. A storage on a device comes to the CPU a piece
at a time, so memory is bounded by a piece and what the upload has in flight.
"""

from __future__ import annotations

import io
import pickle
import sys
import zipfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from wirespeed import Client, PutResult
from wirespeed.torch.memory import address_of, bytes_of, element_size, untyped_of, view_of
from wirespeed.torch.objects import client_or_default
from wirespeed.torch.unpickling import name_of_kind

if TYPE_CHECKING:
    from wirespeed._wirespeed import Writer

_ROOT = "archive"
_ALIGNMENT = 64
# From here on zipfile writes sizes of 64 bits, which take room in a record's header.
_WIDE = zipfile.ZIP64_LIMIT
_PIECE = 8 << 20


def save(
    obj: object, uri: str, *, pickle_protocol: int = 2, client: Client | None = None
) -> PutResult | None:
    """``torch.save(obj, uri)``: the checkpoint goes up as it is written.

    The object appears when all is written; if anything fails, or on Ctrl-C, there is none. Raises
    `ValueError` for tensors of different types over one storage, which the format can't tell apart.
    """
    text = io.BytesIO()
    pickler = _Pickler(text, pickle_protocol)
    pickler.dump(obj)
    with (
        client_or_default(client).writer(uri) as writer,
        zipfile.ZipFile(_Sink(writer), "w") as archive,
    ):
        for name, content in (
            ("data.pkl", text.getvalue()),
            ("byteorder", sys.byteorder.encode()),
            ("version", b"3\n"),
        ):
            _write(archive, name, len(content), [memoryview(content)])
        for key, storage in pickler.storages.items():
            _write(archive, f"data/{key}", storage.nbytes(), _pieces(storage))
    return writer.result


class _Pickler(pickle.Pickler):
    """Pickles all but the bytes of storages, which it collects by their keys."""

    def __init__(self, out: io.BytesIO, protocol: int) -> None:
        super().__init__(out, protocol)
        self.storages: dict[str, torch.UntypedStorage] = {}
        self._keys: dict[int, str] = {}
        self._dtypes: dict[int, torch.dtype] = {}

    def persistent_id(self, obj: Any, /) -> Any:
        if isinstance(obj, torch.TypedStorage):
            storage, dtype = untyped_of(obj), obj.dtype
            kind = getattr(torch, name_of_kind(dtype))
        elif isinstance(obj, torch.UntypedStorage):
            storage, dtype = obj, torch.uint8
            kind = torch.UntypedStorage
        else:
            return None
        nbytes = storage.nbytes()
        place = storage.data_ptr() if nbytes else 0
        if place and self._dtypes.setdefault(place, dtype) != dtype:
            raise ValueError(
                f"one storage is seen as {dtype} and as {self._dtypes[place]}: save a .clone() of"
                " one of the tensors"
            )
        # The storage is kept, so no other one can get its address meanwhile.
        key = self._keys.setdefault(address_of(storage), str(len(self._keys)))
        self.storages[key] = storage
        location: str = torch.serialization.location_tag(storage)
        return "storage", kind, key, location, nbytes // element_size(dtype)


class _Sink(io.RawIOBase):
    """An upload as a file that is written from beginning to end."""

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        return self._writer.write(data)


def _write(archive: zipfile.ZipFile, name: str, size: int, pieces: Iterable[memoryview]) -> None:
    """A record, its bytes aligned: what its header lacks to that is filled up."""
    info = zipfile.ZipInfo(f"{_ROOT}/{name}")
    info.file_size = size
    wide = size > _WIDE
    # The header's fixed part, the name, the sizes of 64 bits if need be, the head of the filler.
    before = archive.start_dir + 30 + len(info.filename) + 20 * wide + 4
    filler = -before % _ALIGNMENT
    info.extra = b"FB" + filler.to_bytes(2, "little") + b"Z" * filler
    with archive.open(info, "w", force_zip64=wide) as record:
        for piece in pieces:
            record.write(piece)


def _pieces(storage: torch.UntypedStorage) -> Iterator[memoryview]:
    """The bytes of a storage, some at a time on the CPU."""
    if storage.nbytes() == 0:
        return
    for piece in bytes_of(storage).split(_PIECE):
        yield view_of(piece.cpu())
