"""The compiled half of the package.

`Client` blocks, `AsyncClient` returns awaitables; their verbs have the same names and arguments,
and the two views of one client share connections, memory and budget.

A verb's first argument says where: ``"s3://bucket/key"``, taken literally (nothing is
percent-decoded), or with ``bucket="bucket"`` the bare key. Sizes and offsets are in bytes, times in
seconds unless a docstring says otherwise.
"""

# `list` is a verb of the clients, whose other verbs return lists.
import builtins
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    final,
    overload,
    type_check_only,
)

from typing_extensions import Buffer as BufferLike
from typing_extensions import CapsuleType

from wirespeed.errors import WirespeedError

__version__: Final[str]

def _stop() -> None:
    """Stops the engine's threads, before the interpreter ends."""

def _split_bucket(path: str) -> tuple[str, str]:
    """Splits a path as ``s3://`` URIs have it into the bucket, which may be an access point's ARN,
    and the key."""

def _plan_shards(client: Client, job: str, names: str | None, shards: int) -> builtins.list[str]:
    """Cuts a job into at most so many shards: by its source, or by a list of names as JSON."""

def _run_shard(client: Client, spec: str, progress: _OnProgress | None) -> str:
    """Runs one shard; what came of it."""

def _merge_shards(results: builtins.list[str]) -> str:
    """One report of the results of shards."""

class _Reader(Protocol):
    def read(self, size: int, /) -> BufferLike: ...

_Path: TypeAlias = str | PathLike[str]
_Range: TypeAlias = tuple[int | None, int | None] | slice[int | None, int | None, None]
_Item: TypeAlias = str | tuple[str, _Range | None]
_Body: TypeAlias = BufferLike | _Reader | Iterable[BufferLike]
_OnPart: TypeAlias = Callable[[int, memoryview], object]
_OnProgress: TypeAlias = Callable[[Progress], object]
_T = TypeVar("_T")

# No classes at run time: names for annotations, to be imported under TYPE_CHECKING.
@type_check_only
class ReadOptions(TypedDict, total=False):
    """Keywords of every verb that reads objects."""

    version_id: str
    if_match: str
    if_none_match: str
    if_modified_since: datetime
    if_unmodified_since: datetime
    sse_customer_key: bytes
    request_payer: bool
    expected_bucket_owner: str

@type_check_only
class WriteOptions(TypedDict, total=False):
    """Keywords of every verb that writes objects."""

    content_type: str
    content_encoding: str
    content_disposition: str
    content_language: str
    cache_control: str
    expires: datetime
    website_redirect: str
    metadata: Mapping[str, str]
    tags: Mapping[str, str]
    storage_class: str
    acl: str
    grant_full_control: str
    grant_read: str
    grant_read_acp: str
    grant_write_acp: str
    object_lock_mode: Literal["GOVERNANCE", "COMPLIANCE"]
    object_lock_retain_until: datetime
    object_lock_legal_hold: bool
    sse: Literal["AES256", "aws:kms"]
    sse_kms_key_id: str
    sse_kms_bucket_key: bool
    sse_kms_context: str
    sse_customer_key: bytes
    checksum: Literal["CRC64NVME", "CRC32", "CRC32C", "SHA1", "SHA256"] | None
    if_match: str
    if_none_match: Literal["*"]
    request_payer: bool
    expected_bucket_owner: str

@type_check_only
class CopyOptions(WriteOptions, total=False):
    """Keywords of a copy."""

    source_if_none_match: str
    source_if_modified_since: datetime
    source_if_unmodified_since: datetime
    source_sse_customer_key: bytes
    metadata_directive: Literal["COPY", "REPLACE"]
    tagging_directive: Literal["COPY", "REPLACE"]

@type_check_only
class Settings(TypedDict, total=False):
    """Keywords of a client that are settings; each is also an environment variable
    ``WIRESPEED_<NAME>``, and the AWS variables count."""

    endpoint_url: str
    region: str
    addressing_style: Literal["auto", "path", "virtual"]
    profile: str
    use_dualstack_endpoint: bool
    use_fips_endpoint: bool
    use_accelerate_endpoint: bool
    express_sessions: str
    concurrency: int
    part_size: int | str
    multipart_threshold: int | str
    memory: int | str
    bandwidth_limit: int | str
    connect_timeout: float | str
    first_byte_timeout: float | str
    stall_timeout: float | str
    max_attempts: int
    payload_signing: str
    checksum_algorithm: str
    verify_checksums: bool
    ca_bundle: str
    verify_tls: bool
    https_proxy: str
    no_proxy: str
    receive_low_water: int | str
    huge_pages: bool

@final
class Buffer:
    """Bytes in the engine's memory: read-only, shared, never copied.

    Supports the buffer protocol (``memoryview(b)``, ``numpy.frombuffer(b, dtype)``), DLPack
    (``numpy.from_dlpack(b)``), ``len``, ``bytes`` and comparison. A slice is a `Buffer` over the
    same memory, which goes back to the client's pool with the last of them and of their views.
    """

    @property
    def info(self) -> ObjectInfo | None:
        """What the server said of the object; ``None`` for a part of a stream."""
    @property
    def nbytes(self) -> int: ...
    def tobytes(self) -> bytes: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, index: slice[int | None, int | None, int | None], /) -> Buffer: ...
    def __iter__(self) -> Iterator[int]: ...
    def __contains__(self, value: object, /) -> bool: ...
    def __bytes__(self) -> bytes: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Progress:
    """How far a call has come; what a progress callback is given, about ten times a second and once
    at the end."""

    @property
    def bytes(self) -> int:
        """Bytes that have arrived (or, of an upload, that the server has accepted)."""
    @property
    def expected(self) -> int:
        """Bytes known to be on their way or there; grows as sizes become known."""
    @property
    def objects(self) -> int:
        """Objects that are complete."""

@final
class ObjectInfo:
    """What the server says of an object."""

    @property
    def size(self) -> int: ...
    @property
    def etag(self) -> str | None: ...
    @property
    def version_id(self) -> str | None: ...
    @property
    def last_modified(self) -> datetime | None: ...
    @property
    def content_type(self) -> str | None: ...
    @property
    def content_encoding(self) -> str | None: ...
    @property
    def content_disposition(self) -> str | None: ...
    @property
    def content_language(self) -> str | None: ...
    @property
    def cache_control(self) -> str | None: ...
    @property
    def expires(self) -> str | None: ...
    @property
    def server_side_encryption(self) -> str | None: ...
    @property
    def kms_key_id(self) -> str | None: ...
    @property
    def tag_count(self) -> int | None: ...
    @property
    def storage_class(self) -> str | None: ...
    @property
    def checksum(self) -> str | None:
        """Such as ``CRC64NVME:fJ3vKdU3mLM=``."""
    @property
    def verified(self) -> str:
        """``"verified"``, or why the bytes were not compared with a checksum."""
    @property
    def metadata(self) -> dict[str, str]: ...

@final
class PutResult:
    """What the server says of an object that it has stored."""

    @property
    def etag(self) -> str | None: ...
    @property
    def version_id(self) -> str | None: ...
    @property
    def parts(self) -> int: ...
    @property
    def checksum(self) -> str | None: ...

@final
class CopyResult:
    @property
    def etag(self) -> str | None: ...
    @property
    def version_id(self) -> str | None: ...
    @property
    def parts(self) -> int: ...

@final
class DeleteResult:
    @property
    def delete_marker(self) -> bool: ...
    @property
    def version_id(self) -> str | None: ...

@final
class DeleteFailure:
    """An object that `delete_many` could not delete."""

    @property
    def bucket(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def version_id(self) -> str | None: ...
    @property
    def code(self) -> str: ...
    @property
    def message(self) -> str: ...

@final
class Transferred:
    """What `download` and `upload` moved."""

    @property
    def objects(self) -> int:
        """How many objects."""
    @property
    def bytes(self) -> int:
        """Their bytes."""

@final
class RawAnswer:
    """The answer to `Client.raw`: a success, whatever its body says."""

    @property
    def status(self) -> int:
        """The HTTP status, 200 to 299."""
    @property
    def headers(self) -> dict[str, str]:
        """By their names in lower case."""
    @property
    def body(self) -> bytes: ...

@final
class BucketInfo:
    @property
    def name(self) -> str: ...
    @property
    def created(self) -> datetime | None: ...
    @property
    def region(self) -> str | None: ...

@final
class ListedObject:
    """One object, or one version of one, in a listing."""

    @property
    def key(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def etag(self) -> str | None: ...
    @property
    def last_modified(self) -> datetime | None: ...
    @property
    def storage_class(self) -> str | None: ...
    @property
    def version_id(self) -> str | None: ...
    @property
    def is_latest(self) -> bool: ...
    @property
    def is_delete_marker(self) -> bool: ...

@final
class Page:
    """Up to 1,000 objects of a listing, or all of it (`Listing.table`), as columns.

    Goes into pyarrow, polars, duckdb and pandas by the Arrow PyCapsule interface, without an object
    for each key: ``pyarrow.record_batch(page)``. Columns: ``key`` (string), ``size`` (int64),
    ``last_modified`` (timestamp[us, UTC]), ``etag`` (string), ``storage_class`` (string), and of a
    listing of versions also ``version_id`` (string), ``is_latest`` and ``is_delete_marker`` (bool).
    """

    @property
    def prefixes(self) -> list[str]:
        """The common prefixes of a listing with a delimiter."""
    def keys(self) -> list[str]: ...
    def sizes(self) -> list[int]: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> ListedObject: ...
    @overload
    def __getitem__(
        self, index: slice[int | None, int | None, int | None], /
    ) -> list[ListedObject]: ...
    def __iter__(self) -> Iterator[ListedObject]: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]: ...
    def __arrow_c_stream__(self, requested_schema: CapsuleType | None = None) -> CapsuleType: ...

@final
class Listing:
    """A listing that has not been read yet: iterate over it, or over its `pages`.

    Each page is asked for when it is needed, one ahead. `keys` and `table` read all of it in one
    crossing into the engine.
    """

    def pages(self) -> Iterator[Page]: ...
    def keys(self) -> list[str]: ...
    def table(self) -> Page: ...
    def first_page(self) -> Page:
        """The first page alone, empty where there is nothing: one request, and none ahead."""
    def __iter__(self) -> Iterator[ListedObject]: ...

@final
class AsyncListing:
    """As `Listing`, for ``async for``."""

    def pages(self) -> AsyncIterator[Page]: ...
    def keys(self) -> Awaitable[list[str]]: ...
    def table(self) -> Awaitable[Page]: ...
    def first_page(self) -> Awaitable[Page]: ...
    def __aiter__(self) -> AsyncIterator[ListedObject]: ...

@final
class Completions(Generic[_T]):
    """What comes of the items of a bulk call, as they finish: ``(index, outcome)``, where a failed
    item's outcome is its exception if ``errors="return"``. Closed or dropped, it stops the rest."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[int, _T]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class AsyncCompletions(Generic[_T]):
    """As `Completions`, for ``async for``."""

    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Awaitable[tuple[int, _T]]: ...
    def close(self) -> Awaitable[None]:
        """Stops what is in flight. Nothing more is given. What it returns need not be awaited: it
        is done when destinations are the caller's again."""
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Stream:
    """An object in order, fetched ahead: iterate over its parts (`Buffer`), or read it as a file.

    Iterating copies nothing; `read` and `readinto` copy each byte once, from where it landed.
    Threads that share a stream take turns. Dropped or closed, it stops what is in flight. It is not
    seekable: ``io.BufferedReader(stream)`` adds lines and peeking, ``io.TextIOWrapper(stream)``
    text.
    """

    @property
    def info(self) -> ObjectInfo:
        """What the server says of the object; when the stream has ended, also whether its bytes
        agreed with its checksum."""
    @property
    def length(self) -> int:
        """Bytes that the whole stream has."""
    def read(self, size: int | None = -1, /) -> bytes:
        """Reads `size` bytes, fewer only at the end; all that are left without a size, or with a
        negative one. One copy: from where they landed into the new ``bytes``."""
    def readinto(self, destination: BufferLike, /) -> int:
        """Fills a writable buffer, less of it only at the end, and returns how many that took. One
        copy: from where they landed."""
    def readable(self) -> Literal[True]: ...
    def writable(self) -> Literal[False]: ...
    def seekable(self) -> Literal[False]: ...
    def flush(self) -> None: ...
    def tell(self) -> int:
        """Bytes that have been read."""
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Buffer: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class AsyncStream:
    """As `Stream`, for ``async for`` and ``await``."""

    @property
    def info(self) -> ObjectInfo: ...
    @property
    def length(self) -> int: ...
    def read(self, size: int | None = -1, /) -> Awaitable[bytes]: ...
    def readinto(self, destination: BufferLike, /) -> Awaitable[int]: ...
    def tell(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Awaitable[Buffer]: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Writer:
    """An object being written: parts go out as they fill, the object appears at `close`.

    Leaving the ``with`` block by an exception, or dropping the writer unclosed, aborts: no object,
    no parts left behind. So does a `write` or `close` that is stopped half-way by Ctrl-C.

    It is what `json.dump` (inside ``io.TextIOWrapper``), `pickle.dump`, `zipfile`, `tarfile`
    (``mode="w|"``), `numpy.save` and `torch.save` write to. A wrapper such as ``io.TextIOWrapper``
    closes what it wraps also after an exception: leave the writer's own ``with`` block around it.
    """

    def write(self, data: BufferLike, /) -> int:
        """Takes the bytes, which may be changed again afterwards, and returns how many there were.
        Waits while too many are unsent.

        Raises what has gone wrong with the upload meanwhile; nothing is stored then."""
    def writable(self) -> Literal[True]: ...
    def readable(self) -> Literal[False]: ...
    def seekable(self) -> Literal[False]: ...
    def flush(self) -> None:
        """Does nothing: parts go out when they are full, and the object appears at `close`."""
    def tell(self) -> int:
        """Bytes that have been written."""
    @property
    def closed(self) -> bool: ...
    @property
    def result(self) -> PutResult | None:
        """What the server said, once closed."""
    def close(self) -> None:
        """Sends what is left and stores the object. Closing again does nothing.

        Raises as `put`; nothing is stored then, and the writer is closed all the same."""
    def abort(self) -> None:
        """Ends it without an object, and returns when the server has no parts of it any more. After
        `close` it does nothing.

        Raises where the parts could not be removed; the exception's `upload_id` names them."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class AsyncWriter:
    """As `Writer`, awaitable."""

    def write(self, data: BufferLike, /) -> Awaitable[int]: ...
    def tell(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def result(self) -> PutResult | None: ...
    def close(self) -> Awaitable[None]: ...
    def abort(self) -> Awaitable[None]: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

class Client:
    """A client of one endpoint: its connections, its memory and its budget.

    Making one sends nothing and starts nothing. It may be used from any number of threads at once,
    and in children after a fork; pickled, it takes its settings along and never a secret.
    """

    def __new__(
        cls,
        *,
        access_key_id: str | None = None,
        secret_access_key: str | None = None,
        session_token: str | None = None,
        anonymous: bool = False,
        pickle_secrets: bool = False,
        **settings: Unpack[Settings],
    ) -> Self: ...
    @property
    def aio(self) -> AsyncClient:
        """The awaitable view of this client."""
    @property
    def settings(self) -> dict[str, str]:
        """What is in effect, by name; no secret is among it."""
    def metrics(self) -> dict[str, int]:
        """Counters since the client was made: requests, retries, bytes, connections, memory."""
    def close(self) -> None:
        """Stops what is in flight, aborts unfinished uploads and drops connections and memory.
        Using the client again is an error. Need not be called."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    # verbs: begin
    @overload
    def get(
        self,
        where: str,
        *,
        on_part: _OnPart,
        bucket: str | None = None,
        range: _Range | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> ObjectInfo: ...
    @overload
    def get(
        self,
        where: str,
        *,
        as_bytes: Literal[True],
        bucket: str | None = None,
        range: _Range | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> bytes: ...
    @overload
    def get(
        self,
        where: str,
        *,
        bucket: str | None = None,
        range: _Range | None = None,
        as_bytes: Literal[False] = False,
        on_part: None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Buffer: ...
    def get_into(
        self,
        where: str,
        destination: BufferLike,
        *,
        bucket: str | None = None,
        range: _Range | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> int: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        into: Sequence[BufferLike],
        as_bytes: Literal[False] = False,
        as_completed: Literal[False] = False,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> builtins.list[int]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        into: Sequence[BufferLike],
        errors: Literal["return"],
        as_bytes: Literal[False] = False,
        as_completed: Literal[False] = False,
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> builtins.list[int | WirespeedError]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        as_bytes: Literal[True],
        into: None = None,
        as_completed: Literal[False] = False,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> builtins.list[bytes]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        as_bytes: Literal[True],
        errors: Literal["return"],
        into: None = None,
        as_completed: Literal[False] = False,
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> builtins.list[bytes | WirespeedError]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        into: None = None,
        as_bytes: Literal[False] = False,
        as_completed: Literal[False] = False,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> builtins.list[Buffer]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        errors: Literal["return"],
        into: None = None,
        as_bytes: Literal[False] = False,
        as_completed: Literal[False] = False,
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> builtins.list[Buffer | WirespeedError]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        into: Sequence[BufferLike],
        as_completed: Literal[True],
        as_bytes: Literal[False] = False,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Completions[int]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        into: Sequence[BufferLike],
        as_completed: Literal[True],
        errors: Literal["return"],
        as_bytes: Literal[False] = False,
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Completions[int | WirespeedError]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        as_bytes: Literal[True],
        as_completed: Literal[True],
        into: None = None,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Completions[bytes]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        as_bytes: Literal[True],
        as_completed: Literal[True],
        errors: Literal["return"],
        into: None = None,
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Completions[bytes | WirespeedError]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        as_completed: Literal[True],
        into: None = None,
        as_bytes: Literal[False] = False,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Completions[Buffer]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        as_completed: Literal[True],
        errors: Literal["return"],
        into: None = None,
        as_bytes: Literal[False] = False,
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Completions[Buffer | WirespeedError]: ...
    @overload
    def get_ranges(
        self,
        where: str,
        ranges: Iterable[_Range],
        *,
        as_bytes: Literal[True],
        bucket: str | None = None,
        max_gap: int = 0,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> builtins.list[bytes]: ...
    @overload
    def get_ranges(
        self,
        where: str,
        ranges: Iterable[_Range],
        *,
        bucket: str | None = None,
        max_gap: int = 0,
        as_bytes: Literal[False] = False,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> builtins.list[Buffer]: ...
    def stream(
        self,
        where: str,
        *,
        bucket: str | None = None,
        range: _Range | None = None,
        window: int | None = None,
        verify: bool | None = None,
        **options: Unpack[ReadOptions],
    ) -> Stream: ...
    def put(
        self,
        where: str,
        data: _Body,
        *,
        bucket: str | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[WriteOptions],
    ) -> PutResult: ...
    def put_file(
        self,
        where: str,
        path: _Path,
        *,
        bucket: str | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[WriteOptions],
    ) -> PutResult: ...
    @overload
    def put_many(
        self,
        items: Iterable[tuple[str, BufferLike]],
        *,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[WriteOptions],
    ) -> builtins.list[PutResult]: ...
    @overload
    def put_many(
        self,
        items: Iterable[tuple[str, BufferLike]],
        *,
        errors: Literal["return"],
        bucket: str | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[WriteOptions],
    ) -> builtins.list[PutResult | WirespeedError]: ...
    def writer(
        self,
        where: str,
        *,
        bucket: str | None = None,
        expected_size: int = 0,
        **options: Unpack[WriteOptions],
    ) -> Writer: ...
    def download(
        self,
        source: str | Iterable[tuple[str, _Path]],
        target: _Path | None = None,
        *,
        bucket: str | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Transferred: ...
    def upload(
        self,
        source: _Path | Iterable[tuple[_Path, str]],
        target: str | None = None,
        *,
        bucket: str | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[WriteOptions],
    ) -> Transferred: ...
    def head(
        self, where: str, *, bucket: str | None = None, **options: Unpack[ReadOptions]
    ) -> ObjectInfo: ...
    def exists(
        self, where: str, *, bucket: str | None = None, **options: Unpack[ReadOptions]
    ) -> bool: ...
    def list(
        self,
        where: str = "",
        *,
        bucket: str | None = None,
        delimiter: str | None = None,
        start_after: str | None = None,
        versions: bool = False,
        page_size: int = 1000,
        request_payer: bool = False,
        expected_bucket_owner: str | None = None,
    ) -> Listing: ...
    def delete(
        self,
        where: str,
        *,
        bucket: str | None = None,
        version_id: str | None = None,
        if_match: str | None = None,
        request_payer: bool = False,
        expected_bucket_owner: str | None = None,
    ) -> DeleteResult: ...
    def delete_many(
        self,
        items: Iterable[str | tuple[str, str | None]],
        *,
        bucket: str | None = None,
        request_payer: bool = False,
        expected_bucket_owner: str | None = None,
    ) -> builtins.list[DeleteFailure]: ...
    def copy(
        self,
        source: str,
        target: str,
        *,
        source_version_id: str | None = None,
        source_if_match: str | None = None,
        confirm: bool = False,
        progress: _OnProgress | None = None,
        **options: Unpack[CopyOptions],
    ) -> CopyResult: ...
    def presign(
        self,
        where: str,
        *,
        bucket: str | None = None,
        method: Literal["GET", "PUT", "HEAD", "DELETE"] = "GET",
        expires_in: float = 3600,
        version_id: str | None = None,
        content_type: str | None = None,
        response: dict[str, str] | None = None,
    ) -> str: ...
    def list_buckets(self, *, prefix: str | None = None) -> builtins.list[BucketInfo]: ...
    def create_bucket(self, bucket: str) -> None: ...
    def delete_bucket(self, bucket: str) -> None: ...
    def raw(
        self,
        method: Literal["GET", "HEAD", "PUT", "POST", "DELETE"],
        bucket: str = "",
        key: str = "",
        *,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        body: BufferLike | None = None,
    ) -> RawAnswer: ...
    # verbs: end

class AsyncClient:
    """The awaitable view of a `Client`: the same verbs and arguments.

    Its results are awaitables; what is gone through piece by piece (`AsyncListing`, `AsyncWriter`,
    `AsyncCompletions`) is there at once, for ``async for`` and ``async with``. Works in whichever
    event loop awaits it; a cancelled task stops its transfer.
    """

    def __new__(
        cls,
        *,
        access_key_id: str | None = None,
        secret_access_key: str | None = None,
        session_token: str | None = None,
        anonymous: bool = False,
        pickle_secrets: bool = False,
        **settings: Unpack[Settings],
    ) -> Self: ...
    @property
    def blocking(self) -> Client:
        """The blocking view of this client."""
    @property
    def settings(self) -> dict[str, str]:
        """What is in effect, by name; no secret is among it."""
    def metrics(self) -> dict[str, int]:
        """Counters since the client was made: requests, retries, bytes, connections, memory."""
    def close(self) -> Awaitable[None]:
        """As `Client.close`, of both views. It has begun when this returns."""
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    # Written by tools/async_stubs.py from Client's.
    # verbs: begin
    @overload
    def get(
        self,
        where: str,
        *,
        on_part: _OnPart,
        bucket: str | None = None,
        range: _Range | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[ObjectInfo]: ...
    @overload
    def get(
        self,
        where: str,
        *,
        as_bytes: Literal[True],
        bucket: str | None = None,
        range: _Range | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[bytes]: ...
    @overload
    def get(
        self,
        where: str,
        *,
        bucket: str | None = None,
        range: _Range | None = None,
        as_bytes: Literal[False] = False,
        on_part: None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[Buffer]: ...
    def get_into(
        self,
        where: str,
        destination: BufferLike,
        *,
        bucket: str | None = None,
        range: _Range | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[int]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        into: Sequence[BufferLike],
        as_bytes: Literal[False] = False,
        as_completed: Literal[False] = False,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[builtins.list[int]]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        into: Sequence[BufferLike],
        errors: Literal["return"],
        as_bytes: Literal[False] = False,
        as_completed: Literal[False] = False,
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[builtins.list[int | WirespeedError]]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        as_bytes: Literal[True],
        into: None = None,
        as_completed: Literal[False] = False,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[builtins.list[bytes]]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        as_bytes: Literal[True],
        errors: Literal["return"],
        into: None = None,
        as_completed: Literal[False] = False,
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[builtins.list[bytes | WirespeedError]]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        into: None = None,
        as_bytes: Literal[False] = False,
        as_completed: Literal[False] = False,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[builtins.list[Buffer]]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        errors: Literal["return"],
        into: None = None,
        as_bytes: Literal[False] = False,
        as_completed: Literal[False] = False,
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[builtins.list[Buffer | WirespeedError]]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        into: Sequence[BufferLike],
        as_completed: Literal[True],
        as_bytes: Literal[False] = False,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> AsyncCompletions[int]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        into: Sequence[BufferLike],
        as_completed: Literal[True],
        errors: Literal["return"],
        as_bytes: Literal[False] = False,
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> AsyncCompletions[int | WirespeedError]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        as_bytes: Literal[True],
        as_completed: Literal[True],
        into: None = None,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> AsyncCompletions[bytes]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        as_bytes: Literal[True],
        as_completed: Literal[True],
        errors: Literal["return"],
        into: None = None,
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> AsyncCompletions[bytes | WirespeedError]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        as_completed: Literal[True],
        into: None = None,
        as_bytes: Literal[False] = False,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> AsyncCompletions[Buffer]: ...
    @overload
    def get_many(
        self,
        items: Iterable[_Item],
        *,
        as_completed: Literal[True],
        errors: Literal["return"],
        into: None = None,
        as_bytes: Literal[False] = False,
        bucket: str | None = None,
        max_gap: int | None = None,
        verify: bool | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> AsyncCompletions[Buffer | WirespeedError]: ...
    @overload
    def get_ranges(
        self,
        where: str,
        ranges: Iterable[_Range],
        *,
        as_bytes: Literal[True],
        bucket: str | None = None,
        max_gap: int = 0,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[builtins.list[bytes]]: ...
    @overload
    def get_ranges(
        self,
        where: str,
        ranges: Iterable[_Range],
        *,
        bucket: str | None = None,
        max_gap: int = 0,
        as_bytes: Literal[False] = False,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[builtins.list[Buffer]]: ...
    def stream(
        self,
        where: str,
        *,
        bucket: str | None = None,
        range: _Range | None = None,
        window: int | None = None,
        verify: bool | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[AsyncStream]: ...
    def put(
        self,
        where: str,
        data: _Body,
        *,
        bucket: str | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[WriteOptions],
    ) -> Awaitable[PutResult]: ...
    def put_file(
        self,
        where: str,
        path: _Path,
        *,
        bucket: str | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[WriteOptions],
    ) -> Awaitable[PutResult]: ...
    @overload
    def put_many(
        self,
        items: Iterable[tuple[str, BufferLike]],
        *,
        errors: Literal["raise"] = "raise",
        bucket: str | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[WriteOptions],
    ) -> Awaitable[builtins.list[PutResult]]: ...
    @overload
    def put_many(
        self,
        items: Iterable[tuple[str, BufferLike]],
        *,
        errors: Literal["return"],
        bucket: str | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[WriteOptions],
    ) -> Awaitable[builtins.list[PutResult | WirespeedError]]: ...
    def writer(
        self,
        where: str,
        *,
        bucket: str | None = None,
        expected_size: int = 0,
        **options: Unpack[WriteOptions],
    ) -> AsyncWriter: ...
    def download(
        self,
        source: str | Iterable[tuple[str, _Path]],
        target: _Path | None = None,
        *,
        bucket: str | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[ReadOptions],
    ) -> Awaitable[Transferred]: ...
    def upload(
        self,
        source: _Path | Iterable[tuple[_Path, str]],
        target: str | None = None,
        *,
        bucket: str | None = None,
        progress: _OnProgress | None = None,
        **options: Unpack[WriteOptions],
    ) -> Awaitable[Transferred]: ...
    def head(
        self, where: str, *, bucket: str | None = None, **options: Unpack[ReadOptions]
    ) -> Awaitable[ObjectInfo]: ...
    def exists(
        self, where: str, *, bucket: str | None = None, **options: Unpack[ReadOptions]
    ) -> Awaitable[bool]: ...
    def list(
        self,
        where: str = "",
        *,
        bucket: str | None = None,
        delimiter: str | None = None,
        start_after: str | None = None,
        versions: bool = False,
        page_size: int = 1000,
        request_payer: bool = False,
        expected_bucket_owner: str | None = None,
    ) -> AsyncListing: ...
    def delete(
        self,
        where: str,
        *,
        bucket: str | None = None,
        version_id: str | None = None,
        if_match: str | None = None,
        request_payer: bool = False,
        expected_bucket_owner: str | None = None,
    ) -> Awaitable[DeleteResult]: ...
    def delete_many(
        self,
        items: Iterable[str | tuple[str, str | None]],
        *,
        bucket: str | None = None,
        request_payer: bool = False,
        expected_bucket_owner: str | None = None,
    ) -> Awaitable[builtins.list[DeleteFailure]]: ...
    def copy(
        self,
        source: str,
        target: str,
        *,
        source_version_id: str | None = None,
        source_if_match: str | None = None,
        confirm: bool = False,
        progress: _OnProgress | None = None,
        **options: Unpack[CopyOptions],
    ) -> Awaitable[CopyResult]: ...
    def presign(
        self,
        where: str,
        *,
        bucket: str | None = None,
        method: Literal["GET", "PUT", "HEAD", "DELETE"] = "GET",
        expires_in: float = 3600,
        version_id: str | None = None,
        content_type: str | None = None,
        response: dict[str, str] | None = None,
    ) -> Awaitable[str]: ...
    def list_buckets(
        self, *, prefix: str | None = None
    ) -> Awaitable[builtins.list[BucketInfo]]: ...
    def create_bucket(self, bucket: str) -> Awaitable[None]: ...
    def delete_bucket(self, bucket: str) -> Awaitable[None]: ...
    def raw(
        self,
        method: Literal["GET", "HEAD", "PUT", "POST", "DELETE"],
        bucket: str = "",
        key: str = "",
        *,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        body: BufferLike | None = None,
    ) -> Awaitable[RawAnswer]: ...
    # verbs: end
