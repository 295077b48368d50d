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
import io
import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fsspec.spec import AbstractBufferedFile

from ..errors import ConflictError, PreconditionError
from .core import Place

if TYPE_CHECKING:
    from .._wirespeed import Writer

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


class WriteFile(AbstractBufferedFile):
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
        prepend: Callable[[Writer], None] | None = None,
    ) -> None:
        self.fs, self.path, self.mode = fs, place.path, mode
        self.closed = False
        self.loc = before
        self.autocommit = autocommit
        self.blocksize = block_size or self.DEFAULT_BLOCK_SIZE
        self.forced = False
        self.kwargs: dict[str, Any] = {}
        self._place, self._options = place, options
        self._prepend = prepend
        self._writer: Writer | None = None
        self._ended = False
        self._handled = _being_handled()
        if prepend is None:
            self._begin()

    def _begin(self) -> Writer:
        """The writer; made with the first byte where the object's old bytes come before it."""
        if self._writer is not None:
            return self._writer
        at = self._place
        writer: Writer = self.fs.client.writer(at.key, bucket=at.bucket, **self._options)
        if self._prepend is not None:
            try:
                self._prepend(writer)
            except BaseException:
                writer.abort()
                raise
        self._writer = writer
        return writer

    def write(self, data: Any) -> int:
        """Takes a copy of the bytes; waits while too many are unsent. How many they were."""
        if self.closed:
            raise ValueError("I/O operation on a closed file")
        view = memoryview(data).cast("B")
        if len(view):
            self._begin().write(view)
            self.loc += len(view)
        return len(view)

    def flush(self, force: bool = False) -> None:
        """Does nothing: parts go out as they fill, and none is smaller than S3 allows."""
        if self.closed:
            raise ValueError("I/O operation on a closed file")

    def tell(self) -> int:
        """Bytes that the object has so far."""
        return self.loc

    def close(self) -> None:
        """Ends the writing and, unless ``autocommit=False``, makes the object; while an exception
        passes that came after the file was opened, throws it away (see the module).

        Raises:
            FileExistsError: in mode ``"xb"`` there is one by now; it stays as it is.
        """
        if self.closed:
            return
        passing = sys.exc_info()[1]
        if (
            passing is not None
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
            self.commit()

    def commit(self) -> None:
        """Makes the object, of what has been written to a file that is closed."""
        if self._ended:
            return
        self.closed = True
        self._ended = True
        if self._writer is None:
            return  # nothing was appended
        try:
            self._writer.close()
        except (PreconditionError, ConflictError) as error:
            if self.mode != "xb":
                raise
            raise FileExistsError(f"there is an object {self._place.uri}") from error
        finally:
            self.fs._forget([self.path])

    def discard(self) -> None:
        """Throws away what was written, on the server too."""
        self.closed = True
        self._handled = ()
        if not self._ended:
            self._ended = True
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
        if not getattr(self, "closed", True) and not self._ended:
            self._ended = self.closed = True
            logger.warning("%s was dropped before it was closed: nothing is stored", self.path)

    def __reduce__(self) -> Any:
        raise TypeError("a file that is open for writing can't be pickled")


class CompressedFile(io.BufferedIOBase):
    """What compresses into a file, and closes that with itself; most codecs leave it open."""

    def __init__(self, codec: Any, target: WriteFile) -> None:
        self._codec, self._target = codec, target

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

    def __exit__(self, kind: Any = None, *rest: Any) -> None:
        if kind is not None:
            self._target.discard()
            with contextlib.suppress(ValueError):
                self.close()  # which has nowhere to write what is left
        else:
            self.close()

    def __del__(self) -> None:
        """Drops it, and what it writes to; nothing is stored."""
