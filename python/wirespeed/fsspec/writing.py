"""Files open for writing.

What is written goes out in parts while more is written; memory stays bounded however large the
object becomes, and its size need not be known. The object appears when the file is closed, all of
it at once. A ``with`` block that is left by an exception, `WriteFile.discard` and a file that is
dropped unclosed leave nothing behind: no object, no parts. Nor does a file that is closed while an
exception passes that came after it was opened: who wraps files (`fsspec.open`, pandas) closes
them so with half of their bytes written.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import contextlib
import errno
import io
import logging
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import ConflictError, PreconditionError
from .core import Place
from .file import S3File, expired

if TYPE_CHECKING:
    from .._wirespeed import PutResult, Writer

logger = logging.getLogger("wirespeed.fsspec")


# What iterating ends with says nothing of the bytes written.
_ENDS = (StopIteration, StopAsyncIteration)


def _being_handled() -> tuple[BaseException, ...]:
    """The exception that is being handled now, with those around it."""
    found: list[BaseException] = []
    error = sys.exc_info()[1]
    while error is not None and not any(error is one for one in found):
        found.append(error)
        error = error.__context__
    return tuple(found)


def not_stored(place: Place, mode: str, error: Exception) -> Exception:
    """Returns the error of a file whose condition did not hold when it was closed."""
    if mode == "xb":
        return FileExistsError(errno.EEXIST, "there is an object by now; it stays", place.uri)
    if mode == "ab" and isinstance(error, PreconditionError):
        return expired(place, "has changed since it was opened, and nothing is appended", error)
    return error


class WriteFile(S3File):
    """An object being written; made by the file system's ``open``.

    With ``autocommit=False`` closing the file doesn't make the object: `commit` does.
    """

    def __init__(
        self,
        fs: Any,
        place: Place,
        mode: str,
        *,
        autocommit: bool,
        options: dict[str, Any],
        block_size: int | None = None,
        before: int = 0,
        before_version: str | None = None,
        prepend: Callable[[Writer], None] | None = None,
    ) -> None:
        self.fs, self.mode = fs, mode
        self._name(place)
        self.closed = False
        self.loc = before
        self.autocommit = autocommit
        self.blocksize = block_size or self.DEFAULT_BLOCK_SIZE
        self.forced = False
        self.kwargs: dict[str, Any] = {}
        self.acl = options.get("acl") or False
        self._options = options
        self._prepend, self._before_version = prepend, before_version
        self._writer: Writer | None = None
        self._stored = self._discarded = False
        self._failure: Exception | None = None
        # The text or the compression around it, which may still hold bytes.
        self._outer: weakref.ref[io.IOBase] | None = None
        self._handled = _being_handled()
        if prepend is None:
            self._begin()

    def wrapped_by(self, outer: io.IOBase) -> None:
        """Notes what is closed before this file is complete."""
        self._outer = weakref.ref(outer)

    def _begin(self) -> Writer:
        """The writer; made with the first byte where the object's old bytes come before it."""
        if self._writer is not None:
            return self._writer
        if self._failure is not None:
            raise self._failure
        at = self._place
        writer: Writer = self.fs.client.writer(at.key, bucket=at.bucket, **self._options)
        if self._prepend is not None:
            try:
                self._prepend(writer)
            except Exception as error:
                writer.abort()
                self._failure = not_stored(self._place, self.mode, error)
                if self._failure is error:
                    raise
                raise self._failure from error
            except BaseException:
                self._discarded = True
                writer.abort()
                raise
        self._writer = writer
        return writer

    def write(self, data: Any) -> int:
        """Takes a copy of the bytes; waits while too many are unsent. How many they were."""
        if self.closed:
            raise ValueError("I/O operation on a closed file")
        if self.forced:
            raise ValueError("the file has been force-flushed, and can only be closed")
        view = memoryview(data).cast("B")
        if len(view):
            self._begin().write(view)
            self.loc += len(view)
        return len(view)

    def flush(self, force: bool = False) -> None:
        """Does nothing: parts go out as they fill, and none is smaller than S3 allows. With
        ``force=True`` ends the writing and, unless ``autocommit=False``, makes the object.

        Raises:
            ValueError: the file is closed, or was force-flushed before.
        """
        if self.closed:
            raise ValueError("I/O operation on a closed file")
        if not force:
            return
        if self.forced:
            raise ValueError("a file can be force-flushed only once")
        self.forced = True
        if self.autocommit:
            self._store()

    def tell(self) -> int:
        """Bytes that the object has so far."""
        return self.loc

    @property
    def result(self) -> PutResult | None:
        """The server's answer when the object was made: its ``etag``, ``version_id`` and
        ``checksum``. ``None`` before, and where there was nothing to append."""
        return None if self._writer is None else self._writer.result

    def close(self) -> None:
        """Ends the writing and, unless ``autocommit=False``, makes the object; while an exception
        passes that came after the file was opened, throws it away (see the module). Closing again
        raises again what kept the object from being made.

        Raises:
            FileExistsError: in mode ``"xb"`` there is one by now; it stays as it is.
            FileExpired: in mode ``"ab"`` it has changed since it was opened; it stays as it is.
        """
        if self.closed:
            if self._failure is not None:
                raise self._failure
            return
        passing = sys.exc_info()[1]
        if (
            passing is not None
            and not self._stored
            and not isinstance(passing, _ENDS)
            and not any(passing is one for one in self._handled)
        ):
            logger.warning(
                "%s was closed while %s passed: nothing is stored",
                self.path,
                type(passing).__name__,
            )
            self.discard()
            return
        self.closed = True
        self._handled = ()
        if self.autocommit:
            self._store()

    def commit(self) -> None:
        """Makes the object, of all that has been written. After it was made, does nothing.

        Raises:
            RuntimeError: the file was discarded, or the text around it was dropped unclosed.
        """
        outer = None if self._outer is None or self.closed else self._outer()
        if outer is not None:
            outer.close()  # writes what it still holds
        elif self._outer is not None and not self.closed:
            self.discard()
        self.closed = True
        self._handled = ()
        self._store()

    def _store(self) -> None:
        """Makes the object, unless that was done or can't be done any more."""
        if self._stored:
            return
        if self._failure is not None:
            raise self._failure
        if self._discarded:
            raise RuntimeError(f"{self.path} was discarded, and can't be stored: write it anew")
        try:
            self._finish()
        except Exception as error:
            self._failure = error
            raise
        except BaseException:
            self._discarded = True  # by the writer, whose close was interrupted
            raise
        finally:
            self._details = None
            self.fs._forget([self.path])

    def _finish(self) -> None:
        version_id = self._before_version
        if self._writer is not None:
            try:
                self._writer.close()
            except (PreconditionError, ConflictError) as error:
                refused = not_stored(self._place, self.mode, error)
                if refused is error:
                    raise
                raise refused from error
            version_id = self._writer.result and self._writer.result.version_id
        self._stored = True
        if self.fs.version_aware:
            self.version_id = version_id

    def discard(self) -> None:
        """Throws away what was written, on the server too. An object that was made stays."""
        self.closed = True
        self._handled = ()
        if not (self._stored or self._discarded or self._failure):
            self._discarded = True
            if self._writer is not None:
                self._writer.abort()

    abort = discard

    def __exit__(self, kind: Any = None, *rest: Any) -> None:
        if kind is not None:
            self.discard()
        else:
            self.close()

    def __del__(self) -> None:
        # Whoever drops a file unclosed doesn't say that it is complete. Its writer, dropped with
        # it, removes the parts beside whatever goes on.
        if not getattr(self, "closed", True) and not self._stored:
            self._discarded = self.closed = True
            logger.warning("%s was dropped before it was closed: nothing is stored", self.path)

    def __reduce__(self) -> Any:
        raise TypeError("a file that is open for writing can't be pickled")


class CompressedFile(io.BufferedIOBase):
    """What compresses into a file, and closes that with itself; most codecs leave it open."""

    def __init__(self, codec: Any, target: WriteFile) -> None:
        self._codec, self._target = codec, target
        target.wrapped_by(self)

    def wrapped_by(self, outer: io.IOBase) -> None:
        """Notes what is closed before this file is complete."""
        self._target.wrapped_by(outer)

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Compresses the bytes; how many they were."""
        self._codec.write(data)
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Does nothing: the codec holds on to what compresses better with what follows."""

    def tell(self) -> int:
        """Bytes before compression, so far."""
        return self._codec.tell()

    def close(self) -> None:
        """Ends the compression, and makes the object."""
        if not self.closed:
            try:
                self._codec.close()
                self._target.close()
            except BaseException:
                self._target.discard()  # its end is missing
                raise
            finally:
                super().close()

    def discard(self) -> None:
        """Throws away what was written, on the server too."""
        self._target.discard()
        with contextlib.suppress(ValueError):
            self._codec.close()  # which has nowhere to write its end
        super().close()

    def __exit__(self, kind: Any = None, *rest: Any) -> None:
        if kind is not None:
            self.discard()
        else:
            self.close()

    def __del__(self) -> None:
        """Drops it, and what it compresses into; nothing is stored."""


class TextFile(io.TextIOWrapper):
    """Text being written, which a ``with`` block that ends in an exception throws away."""

    def __init__(self, target: Any, **how: Any) -> None:
        super().__init__(target, **how)
        self._target = target
        target.wrapped_by(self)

    def close(self) -> None:
        """Writes what is left, and makes the object; throws it away if that fails."""
        if not self.closed:
            try:
                self.flush()
            except BaseException:
                self._discard()
                raise
        super().close()

    def _discard(self) -> None:
        self._target.discard()
        with contextlib.suppress(ValueError):
            super().close()  # which has nowhere to write what is left

    def __exit__(self, kind: Any = None, *rest: Any) -> None:
        if kind is not None:
            self._discard()
        else:
            self.close()

    def __del__(self) -> None:
        """Drops it, and what it writes to; nothing is stored."""
