"""Files open for reading.

A file is pinned to the version that was there when it was opened: if the object changes, the next
read that needs the server is an error, never a mixture. A read goes one of four ways:

- **what is held**: the bytes of the last few small requests are kept as the engine received them;
- **whole**: a read of `WHOLE` bytes or more is one call into the engine, which fetches its parts
  side by side straight into the bytes that are returned, or by `readinto` into the caller's own
  buffer;
- **a window**: a small read that doesn't follow the one before fetches itself, at least `LEAST`
  bytes. One that does follow fetches ahead, but never more than has been read in sequence so far:
  scattered reads don't pay for bytes that nobody wants;
- **the stream**: from `STREAM` bytes in sequence on the rest is streamed, fetched ahead in
  parallel. A seek elsewhere ends that.

``cache_type="none"`` fetches exactly what is read; any other name is that of one of fsspec's own
caches, which then decides what is fetched (``"parts"``, ``"blockcache"``, ...). ``block_size`` is
the most to fetch ahead.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false, reportAttributeAccessIssue=false

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable
from typing import Any

from fsspec.caching import caches
from fsspec.spec import AbstractBufferedFile

from .. import Stream
from ..errors import PreconditionError
from .core import Place
from .info import Info

KIB = 1 << 10
LEAST = 64 * KIB
STREAM = 1024 * KIB
WHOLE = 8192 * KIB
# Skipping so much costs less than a request.
SKIPPED = 256 * KIB
_HELD = 4


class ReadFile(AbstractBufferedFile):
    """An object open for reading; made by the file system's ``open``.

    Reads block the thread that calls; one file is for one thread at a time.
    """

    def __init__(
        self,
        fs: Any,
        place: Place,
        details: Info,
        *,
        confirmed: bool,
        block_size: int | None,
        cache_type: str,
        cache_options: dict[str, Any] | None,
        options: dict[str, Any],
    ) -> None:
        self.fs, self.path, self.mode = fs, place.path, "rb"
        self.closed = False
        self.loc = 0
        self.autocommit = True
        self.blocksize = block_size or self.DEFAULT_BLOCK_SIZE
        self.kwargs: dict[str, Any] = {}
        self._place, self._options = place, options
        self._ahead = block_size
        self._cache_type, self._cache_options = cache_type, cache_options or {}
        self._exact = cache_type == "none"
        self._pid = os.getpid()
        self._pin(details, confirmed=confirmed)
        # Windows, the newest first, each with its offset.
        self._held: deque[tuple[int, Any]] = deque(maxlen=_HELD)
        self._stream: Stream | None = None
        self._sequence = 0  # bytes read without a seek, up to `_follows`
        self._follows = 0
        self.cache: Any = None
        if cache_type not in ("none", "wirespeed"):
            if cache_type not in caches:
                known = ", ".join(sorted(str(name) for name in caches if name))
                raise ValueError(f"cache_type is wirespeed or one of {known}, not {cache_type!r}")
            self.cache = caches[cache_type](
                self.blocksize, self._fetch_range, self.size, **self._cache_options
            )

    def _pin(self, details: Info, *, confirmed: bool) -> None:
        """Notes the version that everything is read of. What a listing in the cache said is not
        confirmed: it may have been older than the opening."""
        self.details = details
        self._confirmed = confirmed
        self._pinned: dict[str, Any] = dict(self._options)
        if self._place.version_id:
            self._pinned["version_id"] = self._place.version_id
        elif details.get("ETag"):
            self._pinned["if_match"] = details["ETag"]

    # ------------------------------------------------------------------ asking the server

    def _asked(self, ask: Callable[[dict[str, Any]], Any]) -> Any:
        """The answer to a request that is pinned to the version."""
        try:
            answer = ask(self._pinned)
        except PreconditionError as error:
            if self._confirmed:
                error.add_note(
                    f"{self.path} has changed since it was opened: open it again to read what it is now"
                )
                raise
            old = self.size
            self._pin(self.fs.info(self.path, refresh=True), confirmed=True)
            if self.size != old:
                # What was asked for was cut to the old size.
                raise _Resized from None
            answer = ask(self._pinned)
        self._confirmed = True
        return answer

    def _get(self, start: int, stop: int) -> Any:
        """The bytes as the engine holds them."""
        at, client = self._place, self.fs.client
        return self._asked(
            lambda how: client.get(at.key, bucket=at.bucket, range=(start, stop), **how)
        )

    def _get_bytes(self, start: int, stop: int) -> bytes:
        at, client = self._place, self.fs.client
        # Of a whole object the server also says a checksum.
        span = None if start == 0 and stop == self.size else (start, stop)
        return self._asked(
            lambda how: client.get(at.key, bucket=at.bucket, range=span, as_bytes=True, **how)
        )

    def _get_into(self, start: int, view: memoryview) -> int:
        at, client, stop = self._place, self.fs.client, start + len(view)
        return self._asked(
            lambda how: client.get_into(at.key, view, bucket=at.bucket, range=(start, stop), **how)
        )

    def _fetch_range(self, start: int, end: int) -> bytes:
        """What fsspec's caches ask for."""
        end = min(end, self.size)
        return self._get_bytes(start, end) if start < end else b""

    # ------------------------------------------------------------------ reading

    def read(self, length: int | None = -1) -> bytes:
        """Up to ``length`` bytes from here on, all that is left if it is negative: fewer only at
        the end of the object."""
        self._check_open()
        length = -1 if length is None else int(length)
        with self._any_size():
            if self.cache is not None:
                return super().read(length)
            stop = self.size if length < 0 else min(self.size, self.loc + length)
            if stop <= self.loc:
                return b""
            if self._goes_whole(stop - self.loc):
                data = self._get_bytes(self.loc, stop)
            else:
                data = self._small(stop - self.loc)
            return self._moved(data)
        return self.read(length)

    def readinto(self, b: Any) -> int:
        """Fills a buffer from here on; how many bytes it got, fewer than it holds only at the end
        of the object. Large reads land in it without a copy."""
        self._check_open()
        view = memoryview(b).cast("B")
        if view.readonly:
            raise TypeError("readinto needs a buffer that can be written")
        with self._any_size():
            length = min(len(view), max(0, self.size - self.loc))
            if length == 0:
                return 0
            view = view[:length]
            if self.cache is not None:
                data = super().read(length)
                view[: len(data)] = data
                return len(data)
            if self._goes_whole(length):
                self._get_into(self.loc, view)
            elif (stream := self._streaming(length)) is not None:
                _fill(stream, view)
            else:
                view[:] = memoryview(self._window(self.loc, self.loc + length))
            return len(self._moved(view))
        return self.readinto(b)

    def read1(self, size: int | None = -1) -> bytes:
        """As `read`; of a negative size no more than a window, so that who decodes as it goes
        doesn't hold the whole object."""
        return self.read(min(STREAM, self.blocksize) if size is None or size < 0 else size)

    def readuntil(self, char: bytes = b"\n", blocks: int | None = None) -> bytes:
        """Up to and with the next ``char``."""
        found: list[bytes] = []
        while True:
            start = self.loc
            part = self.read(blocks or LEAST)
            place = part.find(char)
            if place >= 0:
                end = place + len(char)
                found.append(part[:end])
                self._back_to(start + end, part[end:])
                break
            if not part:
                break
            found.append(part)
        return b"".join(found)

    def _back_to(self, place: int, rest: bytes) -> None:
        """Puts back what was read too much, without giving the sequence up."""
        self.loc = place
        if rest and self.cache is None:
            self._held.appendleft((place, rest))
            self._follows = place

    def seek(self, loc: int, whence: int = 0) -> int:
        """Goes to a place, counted from the beginning (0), from here (1) or from the end (2)."""
        self._check_open()
        return super().seek(loc, whence)

    # ------------------------------------------------------------------ which way

    def _goes_whole(self, length: int) -> bool:
        """Whether a read is large enough to be one call, whatever was read before."""
        streaming = self._stream is not None and self.loc == self._follows
        return length >= WHOLE or (self._exact and not streaming)

    def _small(self, length: int) -> bytes:
        stream = self._streaming(length)
        if stream is None:
            return bytes(self._window(self.loc, self.loc + length))
        data = bytearray(length)
        _fill(stream, memoryview(data))
        return bytes(data)

    def _streaming(self, length: int) -> Stream | None:
        """The stream, where the next bytes are to come from it."""
        if self._pid != os.getpid():
            # The parent's; a child of a fork begins its own.
            self._stream, self._pid = None, os.getpid()
        if self.loc != self._follows:
            gap = self.loc - self._follows
            if self._stream is not None and 0 < gap <= SKIPPED:
                self._stream.read(gap)
                self._follows = self.loc
            else:
                self._end_stream()
                self._sequence, self._follows = 0, self.loc
        if self._exact or self._holds(self.loc, self.loc + length):
            return None
        if self._stream is None and self._sequence >= STREAM:
            at, client = self._place, self.fs.client
            self._stream = self._asked(
                lambda how: client.stream(
                    at.key, bucket=at.bucket, range=(self.loc, None), window=self._ahead, **how
                )
            )
        return self._stream

    def _holds(self, start: int, stop: int) -> bool:
        return any(at <= start and stop <= at + len(held) for at, held in self._held)

    def _window(self, start: int, stop: int) -> memoryview:
        """The bytes, which are held or fetched now with what is likely to be read next."""
        for at, held in self._held:
            if at <= start and stop <= at + len(held):
                return memoryview(held)[start - at : stop - at]
        parts: list[memoryview] = []
        # The first of them may be held: what is read in sequence crosses windows.
        for at, held in self._held:
            if at <= start < at + len(held):
                parts.append(memoryview(held)[start - at :])
                break
        begin = start + sum(len(part) for part in parts)
        ahead = min(self._sequence, self._ahead or STREAM)
        until = min(self.size, max(stop + ahead, begin + LEAST))
        first = begin
        if not parts and not self._sequence and until - begin < LEAST:
            # At the end of the object its footer comes next, and that lies before.
            first = max(0, until - LEAST)
        window = self._get(first, until)
        self._held.appendleft((first, window))
        parts.append(memoryview(window)[begin - first : stop - first])
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def _moved(self, data: Any) -> Any:
        """Notes that these bytes have been read."""
        if self.loc != self._follows:
            self._end_stream()
            self._sequence = 0
        self.loc += len(data)
        self._sequence += len(data)
        self._follows = self.loc
        return data

    @contextlib.contextmanager
    def _any_size(self) -> Any:
        """Swallows that the object turned out to be of another size than a listing had said: what
        comes after this block reads again."""
        with contextlib.suppress(_Resized):
            yield

    # ------------------------------------------------------------------ the end

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on a closed file")

    def _end_stream(self) -> None:
        if self._stream is not None:
            if self._pid == os.getpid():
                self._stream.close()
            self._stream = None

    def close(self) -> None:
        """Stops what is fetched ahead and lets go of what is held."""
        if self.closed:
            return
        self.closed = True
        self._end_stream()
        self._held.clear()
        self.cache = None

    def __reduce__(self) -> tuple[Any, ...]:
        path = self.path
        if self._place.version_id:
            path += f"?versionId={self._place.version_id}"
        how = (self._ahead, self._cache_type, self._cache_options, self._options)
        return _reopened, (self.fs, path, dict(self.details), how, self.loc)


class _Resized(Exception):
    """The object is of another size than a listing had said."""


def _reopened(fs: Any, path: str, details: Info, how: tuple[Any, ...], loc: int) -> ReadFile:
    block_size, cache_type, cache_options, options = how
    place = fs._place(path)
    file = ReadFile(
        fs,
        place,
        details,
        confirmed=True,
        block_size=block_size,
        cache_type=cache_type,
        cache_options=cache_options,
        options=options,
    )
    file.seek(loc)
    return file


def _fill(stream: Stream, view: memoryview) -> None:
    """Fills a view from a stream, which may give less at a time."""
    while len(view):
        got = stream.readinto(view)
        if not got:
            raise EOFError("the stream ended before the object did")
        view = view[got:]
