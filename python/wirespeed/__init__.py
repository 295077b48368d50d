"""S3 at the speed of the wire, from Python.

    import wirespeed

    data = wirespeed.get("s3://bucket/key")          # a Buffer: numpy.frombuffer(data), bytes(data)
    wirespeed.get_into("s3://bucket/key", array)     # straight into memory of yours
    parts = wirespeed.get_many(uris)                 # many objects, one call
    wirespeed.put("s3://bucket/key", data)

The verbs of this module work on one default client, configured by the environment; `Client` makes
others, and `wirespeed.aio` has the same verbs to be awaited. Every byte is received straight into
its final place, every transfer is verified, and nothing needs tuning.
"""

from __future__ import annotations

import atexit as _atexit
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import errors
from ._wirespeed import (
    AsyncClient,
    AsyncCompletions,
    AsyncListing,
    AsyncStream,
    AsyncWriter,
    BucketInfo,
    Buffer,
    Client,
    Completions,
    CopyResult,
    DeleteFailure,
    DeleteResult,
    ListedObject,
    Listing,
    ObjectInfo,
    Page,
    Progress,
    PutResult,
    RawAnswer,
    Stream,
    Transferred,
    Writer,
    __version__,
    _stop,  # pyright: ignore[reportPrivateUsage]
)
from .errors import (
    BrokenConnectionError,
    CancelledError,
    ConfigError,
    ConflictError,
    DeniedError,
    IntegrityError,
    LocalFileNotFoundError,
    LocalIOError,
    NotFoundError,
    PreconditionError,
    ProtocolError,
    ServerError,
    ThrottledError,
    TimedOutError,
    WirespeedError,
)

# The verbs are not among them: a star would make the default client.
__all__ = [
    "AsyncClient",
    "AsyncCompletions",
    "AsyncListing",
    "AsyncStream",
    "AsyncWriter",
    "BrokenConnectionError",
    "BucketInfo",
    "Buffer",
    "CancelledError",
    "Client",
    "Completions",
    "ConfigError",
    "ConflictError",
    "CopyResult",
    "DeleteFailure",
    "DeleteResult",
    "DeniedError",
    "IntegrityError",
    "ListedObject",
    "Listing",
    "LocalFileNotFoundError",
    "LocalIOError",
    "NotFoundError",
    "ObjectInfo",
    "Page",
    "PreconditionError",
    "Progress",
    "ProtocolError",
    "PutResult",
    "RawAnswer",
    "ServerError",
    "Stream",
    "ThrottledError",
    "TimedOutError",
    "Transferred",
    "WirespeedError",
    "Writer",
    "__version__",
    "default_client",
    "errors",
    "set_default_client",
]

_VERBS = frozenset(
    {
        "copy",
        "create_bucket",
        "delete",
        "delete_bucket",
        "delete_many",
        "download",
        "exists",
        "get",
        "get_into",
        "get_many",
        "get_ranges",
        "head",
        "list",
        "list_buckets",
        "presign",
        "put",
        "put_file",
        "put_many",
        "raw",
        "stream",
        "upload",
        "writer",
    }
)

if TYPE_CHECKING:
    from . import aio as aio

    _typed = Client()
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

_atexit.register(_stop)

_default: dict[str, Client] = {}


def default_client() -> Client:
    """The client behind this module's verbs; made when it is first needed."""
    client = _default.get("client")
    if client is None:
        # Two threads at once may make one each, which starts nothing: both use the first. A lock
        # could be held by another thread at a fork, and stay so.
        client = _default.setdefault("client", Client())
    return client


def set_default_client(client: Client | None) -> None:
    """Puts a client behind this module's verbs; ``None`` for a fresh one when next needed."""
    if client is None:
        _default.pop("client", None)
    else:
        _default["client"] = client


def __getattr__(name: str) -> Any:
    if name in _VERBS:
        return getattr(default_client(), name)
    if name == "aio":
        import importlib

        return importlib.import_module(".aio", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> Iterable[str]:
    return sorted({*globals(), *_VERBS, "aio"})
