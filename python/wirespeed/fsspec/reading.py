"""Files open for reading.

A file is pinned to the version that was there when it was opened: if the object changes, the next
read that needs the server raises `FileExpired`, never a mixture. With ``size=`` no request opens
the file; the first one that reads pins it, and an object of a different size is `FileExpired` too.
The bytes of a read come, in this order, from

- **what is held**: the last few small requests are kept as the engine received them;
- **the stream**, once `STREAM` bytes in a row have been fetched: the rest is fetched ahead in
  parallel, until a seek elsewhere ends that;
- **one call**, of `WHOLE` bytes or more: the engine fetches its parts side by side straight into
  the bytes that are returned, or by `readinto` into the caller's own buffer;
- **a window**: what is wanted, at least `LEAST` bytes. One that goes on where the last ended
  fetches ahead as much as has been fetched in a row so far; one elsewhere fetches nothing ahead,
  so that scattered reads don't pay for bytes that nobody wants.

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

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from fsspec.caching import caches

from ..errors import PreconditionError, WirespeedError
from .core import Place
from .file import RANGE_NOT_SATISFIABLE, FileExpired, S3File, expired
from .info import Info, of_object
from .secrets import refuse
from .steps import run

if TYPE_CHECKING:
    from .._wirespeed import Stream

B = TypeVar("B", bound=Sized)

KIB = 1 << 10
LEAST = 64 * KIB
STREAM = 1024 * KIB
WHOLE = 8192 * KIB
# Skipping so much costs less than a request.
SKIPPED = 256 * KIB
_HELD = 4
# The methods of a URL that a version is named for.
_READS = ("get_object", "head_object")


class ReadFile(S3File):
    """An object open for reading; made by the file system's ``open``.

    Reads block the thread that calls; one file is for one thread at a time.
    """

    mode = "rb"
    forced = False
    _details: Info | None = None
    _rewritten = False

    def __init__(
        self,
        fs: Any,
        place: Place,
        details: Info | None,
        *,
        block_size: int | None,
        cache_type: str,
        cache_options: dict[str, Any] | None,
        options: dict[str, Any],
        size: int | None = None,
    ) -> None:
        self.fs = fs
        self._name(place)
        self.closed = False
        self.loc = 0
        self.autocommit = True
        self.blocksize = block_size or self.DEFAULT_BLOCK_SIZE
        self.kwargs: dict[str, Any] = {}
        self._options = options
        self._ahead = block_size
        self._cache_type, self._cache_options = cache_type, cache_options or {}
        self._exact = cache_type == "none"
        self._pid = os.getpid()
        self.version_id = place.version_id
        self._pinned: dict[str, Any] = dict(options)
        if place.version_id:
            self._pinned["version_id"] = place.version_id
        self._pinning = threading.RLock()
        self.size: Any = size
        if details is not None:
            self._pin(details)
        # The newest first, each with its offset.
        self._held: deque[tuple[int, Any]] = deque(maxlen=_HELD)
        self._stream: Stream | None = None
        # What has been fetched in a row: from where, up to before where.
        self._run = self._edge = 0
        # What `readuntil` looks for lines in.
        self._line_block: tuple[int, bytes] = (0, b"")
        self.cache: Any = None
        if cache_type not in ("none", "wirespeed"):
            if cache_type not in caches:
                known = ", ".join(sorted(str(name) for name in caches if name))
                raise ValueError(f"cache_type is wirespeed or one of {known}, not {cache_type!r}")
            self.cache = caches[cache_type](
                self.blocksize, self._fetch_range, self.size, **self._cache_options
            )

    # ------------------------------------------------------------------ asking the server

    @property
    def details(self) -> Info:
        """The object's description, as the file system's ``info`` gives it. One request where the
        file was opened with ``size=`` and nothing has been read yet."""
        with self._pinning:
            if self._details is None:
                head = self.fs._plan_head(self._place, self._options)
                self._pin(self._asked(lambda _: run(head, self.fs.client)))
            return cast(Info, self._details)

    def _pin(self, details: Info) -> None:
        """Pins the file to the version that is described."""
        if self.size is None:
            self.size = details["size"]
        elif self.size != details["size"]:
            raise expired(self._place, f"has {details['size']} bytes, not size={self.size}")
        if self.fs.version_aware and self.version_id is None:
            self.version_id = details.get("VersionId")
        if self.version_id:
            self._pinned["version_id"] = self.version_id
        elif details.get("ETag"):
            self._pinned["if_match"] = details["ETag"]
        self._details = details

    def _asked(self, ask: Callable[[dict[str, Any]], Any]) -> Any:
        """Returns the answer to a request that is pinned to the version."""
        try:
            return ask(self._pinned)
        except WirespeedError as error:
            self._explain(error)
            raise

    def _explain(self, error: BaseException) -> None:
        """Raises `FileExpired` if a read failed because the object is no longer the one that was
        opened."""
        if not isinstance(error, WirespeedError) or isinstance(error, FileExpired):
            return
        if isinstance(error, PreconditionError):
            raise expired(self._place, "has changed since it was opened", error) from error
        if self._details is None and error.status == RANGE_NOT_SATISFIABLE:
            what = f"has fewer bytes than size={self.size}"
            raise expired(self._place, what, error) from error

    def _all(self, got: B, start: int, stop: int) -> B:
        """Returns the bytes, unless there are fewer than the object had when it was opened: a
        server without ETags lets a file that is cut meanwhile be read on."""
        if len(got) < stop - start:
            what = f"ended at byte {start + len(got)} and had {self.size} when it was opened"
            raise expired(self._place, what)
        return got

    def _first(self, start: int, stop: int) -> Stream | None:
        """Pins a file that is not pinned yet with the request for these bytes, and returns them
        as a stream."""
        if self._details is not None:
            return None
        with self._pinning:
            if self._details is not None:
                return None
            at, client = self._place, self.fs.client
            # A checksum costs a request beside that for the bytes, which a small object is spared.
            verify = stop - start >= WHOLE
            stream: Stream = self._asked(
                lambda how: client.stream(
                    at.key, bucket=at.bucket, range=(start, stop), verify=verify, **how
                )
            )
            try:
                self._pin(of_object(self.path, stream.info))
            except BaseException:
                stream.close()
                raise
            return stream

    def _get(self, start: int, stop: int) -> Any:
        """The bytes as the engine holds them."""
        if (first := self._first(start, stop)) is not None:
            return self._all_of(first, start, stop)
        at, client = self._place, self.fs.client
        got = self._asked(
            lambda how: client.get(at.key, bucket=at.bucket, range=(start, stop), **how)
        )
        return self._all(got, start, stop)

    def _get_bytes(self, start: int, stop: int) -> bytes:
        if (first := self._first(start, stop)) is not None:
            return self._all_of(first, start, stop)
        at, client = self._place, self.fs.client
        if start == 0 and stop == self.size:
            # A whole object is compared with its checksum, which a small one brings along.
            if stop < WHOLE:
                got = self._asked(lambda how: client.get_many([at.uri], as_bytes=True, **how)[0])
            else:
                got = self._asked(
                    lambda how: client.get(at.key, bucket=at.bucket, as_bytes=True, **how)
                )
        else:
            got = self._asked(
                lambda how: client.get(
                    at.key, bucket=at.bucket, range=(start, stop), as_bytes=True, **how
                )
            )
        return self._all(got, start, stop)

    def _all_of(self, stream: Stream, start: int, stop: int) -> bytes:
        with stream:
            got = self._asked(lambda _: stream.read(stop - start))
        return self._all(got, start, stop)

    def _get_into(self, start: int, view: memoryview) -> None:
        at, client, stop = self._place, self.fs.client, start + len(view)
        if (first := self._first(start, stop)) is not None:
            with first:
                self._asked(lambda _: self._stream_into(first, start, view))
            return
        got = self._asked(
            lambda how: client.get_into(at.key, view, bucket=at.bucket, range=(start, stop), **how)
        )
        self._all(view[:got], start, stop)

    def _stream_into(self, stream: Stream, start: int, view: memoryview) -> None:
        """Fills a view with what comes next of a stream that is at ``start``."""
        done = 0
        while done < len(view):
            rest = view[done:]
            taken = stream.readinto(rest)
            if not taken:
                self._all(view[:done], start, start + len(view))
            done += taken

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
        if self.cache is not None:
            left = max(0, self.size - self.loc)
            return super().read(left if length < 0 else min(length, left))
        stop = self.size if length < 0 else min(self.size, self.loc + length)
        data = self._bytes(self.loc, stop)
        self.loc += len(data)
        return data

    def readinto(self, b: Any) -> int:
        """Fills a buffer from here on; how many bytes it got, fewer than it holds only at the end
        of the object. Large reads land in it without a copy."""
        self._check_open()
        view = memoryview(b).cast("B")
        if view.readonly:
            raise TypeError("readinto needs a buffer that can be written")
        view = view[: max(0, self.size - self.loc)]
        if self.cache is not None:
            view[:] = super().read(len(view)) if len(view) else b""
        else:
            self._fill(self.loc, view)
            self.loc += len(view)
        return len(view)

    def read1(self, size: int | None = -1) -> bytes:
        """As `read`; of a negative size no more than `STREAM`, so that who decodes as it goes
        doesn't hold the whole object."""
        return self.read(STREAM if size is None or size < 0 else size)

    def readuntil(self, char: bytes = b"\n", blocks: int | None = None) -> bytes:
        """Up to and with the next ``char``."""
        self._check_open()
        found: list[bytes] = []
        overlap = b""
        while True:
            at, block = self._line_block
            if not at <= self.loc < at + len(block):
                at, block = self.loc, self.read(blocks or LEAST)
                if not block:
                    break
                self._line_block, self.loc = (at, block), at
            start = self.loc - at
            if overlap and (begun := _begun(overlap, block[start : start + len(char)], char)):
                end = start + begun
            else:
                place = block.find(char, start)
                end = place + len(char) if place >= 0 else None
            part = block[start:end]
            found.append(part)
            self.loc = at + start + len(part)
            if end is not None:
                break
            overlap = part[1 - len(char) :] if len(char) > 1 else b""
        return b"".join(found)

    def readlines(self, hint: int = -1) -> list[bytes]:
        """All lines from here on; with a hint, until they have that many bytes."""
        lines: list[bytes] = []
        total = 0
        for line in self:
            lines.append(line)
            total += len(line)
            if 0 < hint <= total:
                break
        return lines

    def seek(self, loc: int, whence: int = 0) -> int:
        """Goes to a place, counted from the beginning (0), from here (1) or from the end (2)."""
        self._check_open()
        return super().seek(loc, whence)

    # ------------------------------------------------------------------ where from

    def _bytes(self, start: int, stop: int) -> bytes:
        if stop <= start:
            return b""
        held = self._from_held(start, stop)
        if held is not None and len(held) == stop - start:
            return bytes(held)
        if held is None and self._one_call(start, stop):
            return self._get_bytes(start, stop)
        if held is None and (stream := self._streaming(start)) is not None:
            try:
                got = stream.read(stop - start)
            except BaseException as error:
                self._broke(error)
            if len(got) == stop - start:
                self._edge = stop
                return got
            self._end_stream()
            return self._all(got, start, stop)
        data = bytearray(stop - start)
        self._fill(start, memoryview(data))
        return bytes(data)

    def _fill(self, start: int, view: memoryview) -> None:
        """Fills a view with the bytes from ``start`` on, all of which the object has."""
        while len(view):
            got = self._from_held(start, start + len(view))
            if got is not None:
                view[: len(got)] = got
                start, view = start + len(got), view[len(got) :]
            elif self._one_call(start, start + len(view)):
                self._get_into(start, view)
                return
            elif (stream := self._streaming(start)) is not None:
                try:
                    self._stream_into(stream, start, view)
                except BaseException as error:
                    self._broke(error)
                self._edge = start + len(view)
                return
            else:
                self._fetch_window(start, start + len(view))

    def _from_held(self, start: int, stop: int) -> memoryview | None:
        """As many of the bytes from ``start`` on as one of what is held has."""
        for at, held in (self._line_block, *self._held):
            if at <= start < at + len(held):
                return memoryview(held)[start - at : stop - at]
        return None

    def _one_call(self, start: int, stop: int) -> bool:
        """Whether to fetch exactly this, and to keep nothing of it; notes that it is fetched."""
        goes_on = self._stream is not None and start == self._edge
        whole = stop - start >= min(WHOLE, self.size)
        if goes_on or not (self._exact or whole):
            return False
        self._goes_on_from(start)
        self._edge = stop
        return True

    def _goes_on_from(self, start: int) -> None:
        """Begins another run, unless what is fetched next belongs to the last."""
        if start != self._edge:
            self._end_stream()
            self._run = self._edge = start

    def _streaming(self, start: int) -> Stream | None:
        """The stream, if the bytes from ``start`` on are to come from it."""
        if self._pid != os.getpid():
            # The parent's; a child of a fork begins its own.
            self._stream, self._pid = None, os.getpid()
        if self._stream is not None and 0 < start - self._edge <= SKIPPED:
            try:
                self._edge += len(self._stream.read(start - self._edge))
            except BaseException as error:
                self._broke(error)
        self._goes_on_from(start)
        if self._stream is None and start - self._run >= STREAM:
            at, client = self._place, self.fs.client
            self._stream = self._asked(
                lambda how: client.stream(
                    at.key, bucket=at.bucket, range=(start, None), window=self._ahead, **how
                )
            )
        return self._stream

    def _broke(self, error: BaseException) -> NoReturn:
        """Ends a stream of which a read failed: it may be further on than `_edge`."""
        self._end_stream()
        self._explain(error)
        raise error

    def _fetch_window(self, start: int, stop: int) -> None:
        """Fetches what is wanted, with what is likely to be read next."""
        in_a_row = start - self._run
        ahead = min(in_a_row, STREAM if self._ahead is None else self._ahead)
        until = min(self.size, max(stop + ahead, start + LEAST))
        first = start
        if not in_a_row and until - start < LEAST:
            # At the end of the object its footer comes next, and that lies before.
            first = self._run = max(0, until - LEAST)
        self._held.appendleft((first, self._get(first, until)))
        self._edge = until

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
        self._line_block = (0, b"")
        if callable(close := getattr(self.cache, "close", None)):
            close()
        self.cache = None

    # ------------------------------------------------------------------ what describes it

    def metadata(self, refresh: bool = False, **kwargs: Any) -> dict[str, str]:
        """Returns the metadata of the version that is read. They came with the first request;
        ``refresh=True`` asks again."""
        if self._rewritten or kwargs:
            return super().metadata(refresh, **kwargs)
        if refresh:
            version = {"version_id": self.version_id} if self.version_id else {}
            return super().metadata(refresh, **version)
        return dict(self.details["Metadata"])

    def url(self, **kwargs: Any) -> str:
        """Returns a presigned URL of the version that is read, as the file system's ``url``; with
        a ``client_method`` that writes or deletes, of the object."""
        if self.version_id and kwargs.get("client_method", "get_object") in _READS:
            kwargs = {"version_id": self.version_id} | kwargs
        return super().url(**kwargs)

    def setxattr(self, copy_kwargs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """As `S3File.setxattr`. The copy is a new version, which this file doesn't read; where the
        bucket keeps no versions and the copy has a different ETag, its next request raises
        `FileExpired`."""
        super().setxattr(copy_kwargs, **kwargs)
        self._rewritten = True

    def __reduce__(self) -> tuple[Any, ...]:
        if "sse_customer_key" in self._options and not self.fs.options.pickle_secrets:
            refuse()
        path = self.path
        if self.version_id:
            path += f"?versionId={self.version_id}"
        how = (self._ahead, self._cache_type, self._cache_options, self._options, self.size)
        return _reopened, (self.fs, path, self._details and dict(self._details), how, self.loc)


def _reopened(fs: Any, path: str, details: Info | None, how: tuple[Any, ...], loc: int) -> ReadFile:
    block_size, cache_type, cache_options, options, size = how
    place = fs._place(path)
    file = ReadFile(
        fs,
        place,
        details,
        block_size=block_size,
        cache_type=cache_type,
        cache_options=cache_options,
        options=options,
        size=size,
    )
    file.seek(loc)
    return file


def _begun(before: bytes, after: bytes, char: bytes) -> int:
    """How much of ``after`` ends a ``char`` that begins in ``before``; 0 if none does."""
    place = (before + after).find(char)
    return place + len(char) - len(before) if place >= 0 else 0
