"""`WirespeedFileSystem`: opening files, on top of the operations of its base classes."""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import contextlib
import errno
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from fsspec.compression import compr
from fsspec.core import get_compression

from .core import Place, said_version
from .described import Described
from .info import Info
from .reading import ReadFile
from .steps import Plan, made, run, run_async
from .streaming import AsyncReadFile, AsyncWriteFile
from .writing import CompressedFile, TextFile, WriteFile

if TYPE_CHECKING:
    from .._wirespeed import Writer

# s3fs's names for how a file is buffered that say nothing here.
_IGNORED = frozenset({"fill_cache", "default_cache", "trim", "max_concurrency"})
# What an object that is appended to keeps of how it was described.
_KEPT = {
    "ContentType": "content_type",
    "ContentEncoding": "content_encoding",
    "ContentDisposition": "content_disposition",
    "ContentLanguage": "content_language",
    "CacheControl": "cache_control",
    "Metadata": "metadata",
    "StorageClass": "storage_class",
}
# The options that reading the object has to have too.
_ACCESS = ("sse_customer_key", "request_payer", "expected_bucket_owner")


def _kept(details: Info) -> dict[str, Any]:
    """Returns the options that describe an object as it is described."""
    kept = {ours: details[name] for name, ours in _KEPT.items() if details.get(name)}
    if kept.get("storage_class") == "STANDARD":
        del kept["storage_class"]
    if details.get("ServerSideEncryption") in ("AES256", "aws:kms"):
        kept["sse"] = details["ServerSideEncryption"]
        if details.get("SSEKMSKeyId"):
            kept["sse_kms_key_id"] = details["SSEKMSKeyId"]
    if details.get("Expires"):
        with contextlib.suppress(ValueError):  # any text may stand there
            kept["expires"] = parsedate_to_datetime(details["Expires"])
    return kept


class WirespeedFileSystem(Described):
    """S3 as a file system, for all that takes fsspec's: pandas, pyarrow, dask, zarr, xarray,
    polars, Hugging Face datasets.

    The options are s3fs's: ``key``, ``secret``, ``token``, ``anon``, ``profile``,
    ``endpoint_url``, ``client_kwargs`` (``region_name``, ``endpoint_url``, ``verify``),
    ``config_kwargs``, ``requester_pays``, ``version_aware``, ``s3_additional_kwargs``,
    ``default_block_size``, ``default_cache_type``, ``use_listings_cache``,
    ``listings_expiry_time`` (seconds, 60 unless said; ``None`` is for ever), ``asynchronous``;
    and the settings of `wirespeed.Client` by their own names (``region``, ``concurrency``,
    ``part_size``, ``memory``, ...). What is not said comes from AWS's variables and files.

    Every operation has a blocking form, which runs on the thread that calls it (from a coroutine,
    another thread or a forked child as well) and one with an underscore to await. Many objects
    are one call: ``cat``, ``cat_ranges``, ``get``, ``put``, ``pipe``, ``rm``, ``find``, ``glob``,
    ``du``.

    To be fresh: listings are kept for a minute, and never answer that something is not there.
    Give ``refresh=True`` to `ls`, `info` and `exists`, or call `invalidate_cache`, or make the
    file system with ``use_listings_cache=False``.
    """

    def _plan_open(
        self, path: str, version_id: str | None, size: int | None, how: dict[str, Any]
    ) -> Plan[Any]:
        """The place, what the server says of the object there, and with what to read it. A
        listing in the cache is not asked: the object may have been replaced since. Where the
        caller gives the object's size, nothing is asked."""
        place = self._object(path, said_version(how, version_id))
        details: Info | None = None
        if size is None:
            details = yield from self._plan_head(place, how)
        elif size < 0:
            raise ValueError(f"size is a number of bytes, not {size}")
        return place, details, self.options.reading(how)

    def _read_ahead(self) -> int | None:
        """The most to read ahead of a file whose ``block_size`` is not given."""
        return self.options.default_block_size

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        cache_type: str | None = None,
        size: int | None = None,
        version_id: str | None = None,
        **kwargs: Any,
    ) -> Any:
        kwargs = {name: value for name, value in kwargs.items() if name not in _IGNORED}
        block_size = block_size or self._read_ahead()
        if mode == "rb":
            size = None if size is None else int(size)
            plan = self._plan_open(path, version_id, size, kwargs)
            place, details, options = run(plan, self.client)
            return ReadFile(
                self,
                place,
                details,
                block_size=block_size,
                cache_type=cache_type or self.options.default_cache_type,
                cache_options=cache_options,
                options=options,
                size=size,
            )
        if mode not in ("wb", "ab", "xb"):
            raise NotImplementedError(f"mode is rb, wb, ab or xb, not {mode!r}")
        place = self._target(path)
        options = self.options.writing(kwargs)
        how: dict[str, Any] = {"autocommit": autocommit, "block_size": block_size}
        if mode == "ab":
            return self._append(place, options, how)
        if mode == "xb":
            if self._is_there(path):
                raise FileExistsError(errno.EEXIST, "there is an object", place.uri)
            options["if_none_match"] = "*"
        return WriteFile(self, place, mode, options=options, **how)

    def open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        cache_options: dict[str, Any] | None = None,
        compression: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """A file; mode ``"rb"``, ``"wb"``, ``"ab"`` or ``"xb"``, or without the ``b`` as text.

        ``block_size`` is the most to fetch ahead in reading, ``cache_type`` how (see `reading`).
        ``size`` of an object to be read saves the request that opens it; if the object has
        a different size by then, reading raises `FileExpired`.
        Further keywords say which version is read, or with what the object is written.
        """
        if "r" in mode or (compression is None and "b" in mode):
            return super().open(
                path,
                mode,
                block_size=block_size,
                cache_options=cache_options,
                compression=compression,
                **kwargs,
            )
        if "b" not in mode:
            text = {name: kwargs.pop(name, None) for name in ("encoding", "errors", "newline")}
            binary = mode.replace("t", "") + "b"
            target = self.open(path, binary, block_size, compression=compression, **kwargs)
            return TextFile(target, **text)
        raw: Any = super().open(path, mode, block_size=block_size, **kwargs)
        codec = compr[get_compression(path, compression)]
        return raw if codec is None else CompressedFile(codec(raw, mode=mode[0]), raw)

    def _append(self, place: Place, options: dict[str, Any], how: dict[str, Any]) -> WriteFile:
        """S3 can't add to an object: it is written anew, its old bytes first, unless it changes
        meanwhile."""
        access = {name: options[name] for name in _ACCESS if name in options}
        try:
            details: Info = run(self._plan_head(place, access), self.client)
        except FileNotFoundError:
            if "if_match" not in options:
                # So that what another makes meanwhile is not overwritten.
                options = options | {"if_none_match": "*"}
            return WriteFile(self, place, "ab", options=options, **how)
        reading = self.options.reading(access | {"if_match": details["ETag"] or None})
        kept = _kept(details)
        if options.keys() & {"sse", "sse_customer_key"}:
            kept = {name: value for name, value in kept.items() if not name.startswith("sse")}
        if details["ETag"]:
            kept["if_match"] = details["ETag"]

        def prepend(writer: Writer) -> None:
            if not details["size"]:
                return
            with self.client.stream(place.key, bucket=place.bucket, **reading) as old:
                for part in old:
                    writer.write(part)

        return WriteFile(
            self,
            place,
            "ab",
            options=kept | options,
            before=details["size"],
            before_version=details.get("VersionId"),
            prepend=prepend,
            **how,
        )

    def _is_there(self, path: str) -> bool:
        """Returns whether there is an object; False where HEAD is denied: the write finds out."""
        try:
            return self.exists(path, refresh=True)
        except PermissionError:
            return False

    async def open_async(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        """A file to be read or written with ``await``; modes ``"rb"`` and ``"wb"``. A file being
        written is stored by its ``close``, which is why it can't be part of a transaction."""
        version_id, size = kwargs.pop("version_id", None), kwargs.pop("size", None)
        autocommit = kwargs.pop("autocommit", not self._intrans)
        for name in ("block_size", "cache_type", "cache_options", *_IGNORED):
            kwargs.pop(name, None)
        if mode == "rb":
            size = None if size is None else int(size)
            plan = self._plan_open(self._strip_protocol(path), version_id, size, kwargs)
            place, details, options = await run_async(plan, self.client.aio)
            return AsyncReadFile(self, place, details, options, size)
        if mode != "wb":
            raise ValueError(f"mode is rb or wb, not {mode!r}")
        if not autocommit:
            raise ValueError("a file of open_async can't be committed later: use open()")
        place = self._target(path)
        options = self.options.writing(kwargs)
        writer = await made(self.client.aio.writer(place.key, bucket=place.bucket, **options))
        return AsyncWriteFile(self, place, mode, writer)
