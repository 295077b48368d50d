"""Files for coroutines, as ``open_async`` gives them: in order, with nothing kept behind."""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from fsspec.asyn import AbstractAsyncStreamedFile

from .core import Place
from .info import Info
from .steps import made

if TYPE_CHECKING:
    from .._wirespeed import AsyncStream, AsyncWriter


class AsyncReadFile(AbstractAsyncStreamedFile):
    """An object to be read with ``await``, pinned to the version that was opened. Reading on
    after a `seek` begins a new stream."""

    def __init__(self, fs: Any, place: Place, details: Info, options: dict[str, Any]) -> None:
        self.fs, self.path, self.mode = fs, place.path, "rb"
        self.closed = False
        self.loc = 0
        self.details = details
        self._place = place
        self._options = dict(options)
        if place.version_id:
            self._options["version_id"] = place.version_id
        elif details.get("ETag"):
            self._options["if_match"] = details["ETag"]
        self._stream: AsyncStream | None = None
        self._follows = 0

    async def read(self, length: int | None = -1) -> bytes:
        """Up to ``length`` bytes, all that is left if it is negative: fewer only at the end."""
        if self.closed:
            raise ValueError("I/O operation on a closed file")
        left = max(0, self.size - self.loc)
        length = left if length is None or length < 0 else min(int(length), left)
        if length == 0:
            return b""
        at, client = self._place, self.fs.client.aio
        if self._stream is None or self._follows != self.loc:
            self._end()
            if length == left:
                span = None if self.loc == 0 else (self.loc, None)
                data = await client.get(
                    at.key, bucket=at.bucket, range=span, as_bytes=True, **self._options
                )
                self.loc += len(data)
                return data
            call = client.stream(at.key, bucket=at.bucket, range=(self.loc, None), **self._options)
            self._stream = await made(call)
        data = bytearray(length)
        view = memoryview(data)
        stream = cast("AsyncStream", self._stream)
        while len(view):
            got = await stream.readinto(view)
            if not got:
                raise EOFError("the stream ended before the object did")
            view = view[got:]
        self.loc += length
        self._follows = self.loc
        return bytes(data)

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
        self._writer = writer

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
        """Makes the object."""
        if not self.closed:
            self.closed = True
            try:
                await self._writer.close()
            finally:
                self.fs._forget([self.path])

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
