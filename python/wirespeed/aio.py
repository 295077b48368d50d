"""The module's verbs, to be awaited: ``await wirespeed.aio.get("s3://bucket/key")``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import _VERBS, default_client  # pyright: ignore[reportPrivateUsage]

if TYPE_CHECKING:
    from . import AsyncClient

    _typed = AsyncClient()
    copy = _typed.copy
    create_bucket = _typed.create_bucket
    delete = _typed.delete
    delete_bucket = _typed.delete_bucket
    delete_many = _typed.delete_many
    download = _typed.download
    exists = _typed.exists
    get = _typed.get
    get_into = _typed.get_into
    get_many = _typed.get_many
    get_ranges = _typed.get_ranges
    head = _typed.head
    list = _typed.list
    list_buckets = _typed.list_buckets
    presign = _typed.presign
    put = _typed.put
    put_file = _typed.put_file
    put_many = _typed.put_many
    raw = _typed.raw
    stream = _typed.stream
    upload = _typed.upload
    writer = _typed.writer


def __getattr__(name: str) -> Any:
    if name in _VERBS:
        return getattr(default_client().aio, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> Iterable[str]:
    return sorted({*globals(), *_VERBS})
