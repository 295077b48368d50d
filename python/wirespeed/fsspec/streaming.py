"""Files for coroutines, as ``open_async`` gives them: in order, with nothing kept behind."""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from fsspec.asyn import AbstractAsyncStreamedFile

from ..errors import PreconditionError, WirespeedError
from .core import Place
from .file import RANGE_NOT_SATISFIABLE, FileExpired, expired
from .info import Info, of_object
from .reading import WHOLE
from .steps import made

if TYPE_CHECKING:
    from .._wirespeed import AsyncStream, AsyncWriter, PutResult


class AsyncReadFile(AbstractAsyncStreamedFile):
    """An object to be read with ``await``, pinned to the version that was opened. Reading on
    after a `seek` begins a new stream."""

    version_id: str | None
    """The version that is read; only with ``version_aware=True``, as `ReadFile.version_id`."""

    def __init__(
        self,
        fs: Any,
        place: Place,
        details: Info | None,
        options: dict[str, Any],
        size: int | None = None,
    ) -> None:
        self.fs, self.path, self.mode = fs, place.path, "rb"
        self.closed = False
        self.loc = 0
        self._place = place
        self._options = dict(options)
        self.version_id = place.version_id
        if place.version_id:
            self._options["version_id"] = place.version_id
        self._stream: AsyncStream | None = None
        self._follows = 0
        self.size: Any = size
        if details is not None:
            self._pin(details)

    def _pin(self, details: Info) -> None:
        """Pins the file to the version that is described."""
        if self.size not in (None, details["size"]):
            raise expired(self._place, f"has {details['size']} bytes, not size={self.size}")
        if self.fs.version_aware and self.version_id is None:
            self.version_id = details.get("VersionId")
        if self.version_id:
            self._options["version_id"] = self.version_id
        elif details.get("ETag"):
            self._options["if_match"] = details["ETag"]
        self.details = details

    async def read(self, length: int | None = -1) -> bytes:
        """Up to ``length`` bytes, all that is left if it is negative: fewer only at the end."""
        if self.closed:
            raise ValueError("I/O operation on a closed file")
        left = max(0, self.size - self.loc)
        length = left if length is None or length < 0 else min(int(length), left)
        if length == 0:
            return b""
        try:
            data = await self._take(length, length == left)
        except FileExpired:
            raise
        except PreconditionError as error:
            raise expired(self._place, "has changed since it was opened", error) from error
        except WirespeedError as error:
            if self._details is None and error.status == RANGE_NOT_SATISFIABLE:
                what = f"has fewer bytes than size={self.size}"
                raise expired(self._place, what, error) from error
            raise
        self.loc += length
        return data

    async def _take(self, length: int, all_that_is_left: bool) -> bytes:
        at, client = self._place, self.fs.client.aio
        if self._stream is None or self._follows != self.loc:
            self._end()
            if all_that_is_left and self._details is not None:
                data = await client.get(
                    at.key,
                    bucket=at.bucket,
                    range=(self.loc, None) if self.loc else None,
                    as_bytes=True,
                    **self._options,
                )
                self._check(len(data), length)
                return data
            # As in `ReadFile`, a small object that is not pinned yet is read in one request.
            verify = self._details is not None or self.size >= WHOLE
            call = client.stream(
                at.key,
                bucket=at.bucket,
                range=(self.loc, self.size),
                verify=verify,
                **self._options,
            )
            self._stream = await made(call)
        stream = cast("AsyncStream", self._stream)
        data = bytearray(length)
        done = 0
        try:
            if self._details is None:
                self._pin(of_object(self.path, stream.info))
            while done < length:
                got = await stream.readinto(memoryview(data)[done:])
                if not got:
                    self._check(done, length)
                done += got
        except BaseException:
            self._end()  # it may be further on than `_follows`
            raise
        self._follows = self.loc + length
        return bytes(data)

    def _check(self, got: int, wanted: int) -> None:
        if got < wanted:
            what = f"ended at byte {self.loc + got} and had {self.size} when it was opened"
            raise expired(self._place, what)

    def _end(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    async def close(self) -> None:
        """Stops what is fetched ahead."""
        self.closed = True
        self._end()

    def __del__(self) -> None:
        if not self.closed:
            self.closed = True
            self._end()


class AsyncWriteFile(AbstractAsyncStreamedFile):
    """An object to be written with ``await``; it appears at `close`. A block left by an exception
    leaves nothing behind."""

    def __init__(self, fs: Any, place: Place, mode: str, writer: AsyncWriter) -> None:
        self.fs, self.path, self.mode = fs, place.path, mode
        self.closed = False
        self.loc = 0
        self.version_id: str | None = None
        self._writer = writer
        self._failure: Exception | None = None

    @property
    def result(self) -> PutResult | None:
        """As `WriteFile.result`."""
        return self._writer.result

    async def write(self, data: Any) -> int:
        """Takes a copy of the bytes; waits while too many are unsent. How many they were."""
        if self.closed:
            raise ValueError("I/O operation on a closed file")
        view = memoryview(data).cast("B")
        if len(view):
            await self._writer.write(view)
        self.loc += len(view)
        return len(view)

    async def flush(self, force: bool = False) -> None:
        """Does nothing: parts go out as they fill."""

    async def close(self) -> None:
        """Makes the object. Closing again raises again what kept it from being made."""
        if self._failure is not None:
            raise self._failure
        if not self.closed:
            self.closed = True
            try:
                await self._writer.close()
            except Exception as error:
                self._failure = error
                raise
            finally:
                self.fs._forget([self.path])
            if self.fs.version_aware and self._writer.result is not None:
                self.version_id = self._writer.result.version_id

    async def discard(self) -> None:
        """Throws away what was written, on the server too."""
        if not self.closed:
            self.closed = True
            await self._writer.abort()

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is not None:
            await self.discard()
        else:
            await self.close()

    def __del__(self) -> None:
        # The writer aborts by itself when it is dropped unclosed.
        self.closed = True
