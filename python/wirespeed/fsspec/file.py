"""The part that files open for reading and for writing share: s3fs's names for the object.

`FileExpired` is the error of a file whose object was replaced or cut meanwhile.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUntypedBaseClass=false

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

from fsspec.spec import AbstractBufferedFile

from ..errors import PreconditionError, WirespeedError
from .core import Place

RANGE_NOT_SATISFIABLE = 416


class FileExpired(PreconditionError, OSError):
    """The object is no longer the one that was opened: it was replaced or cut meanwhile.

    As s3fs's error of that name, an `OSError` with ``errno.EBUSY``.
    """

    _errno = errno.EBUSY


def expired(place: Place, what: str, error: WirespeedError | None = None) -> FileExpired:
    """Returns the error that says what happened to the object, with the context of ``error``."""
    context: dict[str, Any] = {"bucket": place.bucket, "key": place.key}
    if error is not None:
        context |= {name: value for name, value in vars(error).items() if name != "__notes__"}
    return FileExpired(f"{place.uri} {what}: open it again", **context)


class S3File(AbstractBufferedFile):
    """An open object, for reading (`ReadFile`) or writing (`WriteFile`)."""

    fs: Any
    path: str
    acl: str | bool = False
    """The canned ACL that the object is written with; ``False`` is the bucket's default."""
    version_id: str | None = None
    """The version that is read, or the one that closing the file has written. As with s3fs only
    where the file system is made with ``version_aware=True``."""

    def _name(self, place: Place) -> None:
        """Keeps the names of the object."""
        self._place = place
        self.path, self.bucket, self.key = place.path, place.bucket, place.key

    @property
    def s3(self) -> Any:
        """The file system, by s3fs's name."""
        return self.fs

    def metadata(self, refresh: bool = False, **kwargs: Any) -> dict[str, str]:
        """Returns the object's metadata, as the file system's ``metadata``."""
        return self.fs.metadata(self.path, refresh=refresh, **kwargs)

    def getxattr(self, xattr_name: str, **kwargs: Any) -> str | None:
        """Returns one of the object's metadata; ``None`` if it has none of that name."""
        found = self.metadata(**kwargs)
        return found.get(xattr_name, found.get(xattr_name.replace("_", "-")))

    def setxattr(self, copy_kwargs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """Sets metadata by a copy of the object onto itself, as the file system's ``setxattr``.

        Raises:
            NotImplementedError: the file is being written. Give ``Metadata={...}`` to ``open``.
        """
        if self.writable():
            raise NotImplementedError(
                f"metadata of {self.path} can't be set while it is written: "
                "give Metadata={...} to open(), or set them after close()"
            )
        self.fs.setxattr(self.path, copy_kwargs=copy_kwargs, **kwargs)

    def url(self, **kwargs: Any) -> str:
        """Returns a presigned URL of the object, as the file system's ``url``."""
        return self.fs.url(self.path, **kwargs)
