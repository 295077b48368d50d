"""What can go wrong, as exceptions: one tree, each branch also the builtin a person would catch.

Every exception says in one line what was being done to what, what happened, how often it was tried
and what to try next; the attributes are for programs. None carries a credential.
"""

from __future__ import annotations

import errno as _errno
from collections.abc import Callable
from typing import Any, ClassVar

__all__ = [
    "BrokenConnectionError",
    "CancelledError",
    "ConfigError",
    "ConflictError",
    "DeniedError",
    "IntegrityError",
    "LocalFileNotFoundError",
    "LocalIOError",
    "NotFoundError",
    "PreconditionError",
    "ProtocolError",
    "ServerError",
    "ThrottledError",
    "TimedOutError",
    "WirespeedError",
]


class WirespeedError(Exception):
    """Every error of this package."""

    kind: ClassVar[str] = "error"
    """The kind in one lower-case word."""

    _errno: ClassVar[int | None] = None

    operation: str | None
    """The verb that failed: ``get``, ``put``, ``list``, …"""
    bucket: str | None
    key: str | None
    status: int | None
    """The HTTP status, where the server answered."""
    code: str | None
    """The server's error code, such as ``NoSuchKey``."""
    request_id: str | None
    """The server's id of the request, for its operator."""
    attempts: int
    """How many requests were made for the part that failed."""
    elapsed: float
    """Seconds spent on the part that failed, waiting between attempts included."""
    upload_id: str | None
    """A multipart upload that may still be stored because aborting it failed too."""

    def __init__(
        self,
        message: str = "",
        *,
        operation: str | None = None,
        bucket: str | None = None,
        key: str | None = None,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        attempts: int = 0,
        elapsed: float = 0.0,
        upload_id: str | None = None,
        errno: int | None = None,
    ) -> None:
        super().__init__(message)
        self.operation = operation
        self.bucket = bucket
        self.key = key
        self.status = status
        self.code = code
        self.request_id = request_id
        self.attempts = attempts
        self.elapsed = elapsed
        self.upload_id = upload_id
        if isinstance(self, OSError):
            self.errno = errno if errno is not None else self._errno
            if bucket is not None:
                self.filename = f"s3://{bucket}/{key or ''}"

    def __str__(self) -> str:
        # An OSError that knows a number and a file name would say them in the place of the message.
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Callable[..., WirespeedError], tuple[Any, ...]]:
        fields = {
            name: getattr(self, name)
            for name in (
                "operation",
                "bucket",
                "key",
                "status",
                "code",
                "request_id",
                "attempts",
                "elapsed",
                "upload_id",
            )
        }
        if isinstance(self, OSError):
            fields["errno"] = self.errno
        return _rebuild, (type(self), str(self), fields)


def _rebuild(kind: type[WirespeedError], message: str, fields: dict[str, Any]) -> WirespeedError:
    return kind(message, **fields)


class NotFoundError(WirespeedError, FileNotFoundError):
    """The bucket, key, version or upload does not exist."""

    kind = "not_found"
    _errno = _errno.ENOENT


class PreconditionError(WirespeedError):
    """A condition did not hold: the object changed while it was read, or ``if_match`` failed."""

    kind = "precondition"


class ConflictError(WirespeedError, FileExistsError):
    """The request contradicts the state of the bucket, such as making one that exists."""

    kind = "conflict"
    _errno = _errno.EEXIST


class DeniedError(WirespeedError, PermissionError):
    """The credentials are absent, wrong, expired or not allowed to do this."""

    kind = "denied"
    _errno = _errno.EACCES


class ThrottledError(WirespeedError, OSError):
    """The server asked for fewer requests until the attempts or the retry quota ran out."""

    kind = "throttled"
    _errno = _errno.EBUSY


class TimedOutError(WirespeedError, TimeoutError):
    """A connect, first-byte or stall timeout passed on the last attempt."""

    kind = "timeout"
    _errno = _errno.ETIMEDOUT


class BrokenConnectionError(WirespeedError, ConnectionError):
    """The endpoint could not be reached, or the connection broke on the last attempt."""

    kind = "connection"
    _errno = _errno.ECONNRESET


class IntegrityError(WirespeedError, OSError):
    """The bytes are not those that were promised: wrong checksum, range, length or version."""

    kind = "integrity"
    _errno = _errno.EIO


class ConfigError(WirespeedError, ValueError):
    """The request or the settings are unusable."""

    kind = "config"


class CancelledError(WirespeedError):
    """The work was stopped before it finished."""

    kind = "cancelled"


class LocalIOError(WirespeedError, OSError):
    """A local file or folder could not be read or written, or memory could not be had."""

    kind = "io"
    _errno = _errno.EIO


class LocalFileNotFoundError(LocalIOError, FileNotFoundError):
    """A local file or folder does not exist."""

    _errno = _errno.ENOENT


class ProtocolError(WirespeedError, OSError):
    """The server said something that is not HTTP/1.1 or not S3."""

    kind = "protocol"
    _errno = _errno.EPROTO


class ServerError(WirespeedError, OSError):
    """The server failed on its side."""

    kind = "server"
    _errno = _errno.EIO
