"""S3's operations under their names in boto3: `call_s3` and ``.s3``, as s3fs has them.

Each is one request of the engine's, signed and retried like its verbs. They are for what the file
system has no method for: versioning, policies, lifecycle rules, encryption. Bodies are held whole,
up to 16 MiB in an answer, but that of ``get_object``, which is streamed.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from .. import Client
from ..errors import ConfigError
from . import info as describe
from . import operations
from .steps import Call, Plan, Together, both, made
from .transfers import Transfers

# S3's names of what `wirespeed.Client` calls otherwise.
_ALIASES = {"acl": "ACL", "content_type": "ContentType", "metadata": "Metadata"}
_NOT_IMPLEMENTED = 501
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


class Body:
    """The bytes of an object, as aiobotocore returns them: to be read with ``await``."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def read(self, amt: int | None = None) -> bytes:
        """Up to ``amt`` bytes, or all that are left."""
        size = -1 if amt is None else amt
        read = self._stream.read
        if hasattr(self._stream, "__anext__"):
            return await read(size)
        return await asyncio.to_thread(read, size)

    def close(self) -> None:
        """Stops the download."""
        self._stream.close()

    async def __aenter__(self) -> Body:
        return self

    async def __aexit__(self, *_: object) -> None:
        closed = self._stream.close()
        if closed is not None:
            await closed


class S3:
    """The counterpart of the aiobotocore client that s3fs has as ``fs.s3``: each operation of S3 is
    a coroutine function, ``await fs.s3.get_bucket_policy(Bucket="b")``."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs

    def __getattr__(self, name: str) -> Callable[..., Awaitable[dict[str, Any]]]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ("get_paginator", "get_waiter", "meta", "exceptions"):
            raise NotImplementedError(
                f"fs.s3.{name} belongs to botocore: use fs.find, fs.ls or fs.client.list for all "
                "pages of a listing, and wirespeed.errors for exceptions"
            )
        if name != "get_object":
            operations.parameters(name)  # raises for what S3 does not have

        async def operation(**parameters: Any) -> dict[str, Any]:
            return await self._fs._operation(name, parameters)

        operation.__name__ = name
        return operation

    async def generate_presigned_url(
        self, ClientMethod: str, Params: Mapping[str, Any], ExpiresIn: float = 3600
    ) -> str:
        """A URL that lets its holder send one request until it expires."""
        given = dict(Params)
        path = f"{given.pop('Bucket')}/{given.pop('Key')}"
        return await self._fs._url(path, expires=ExpiresIn, client_method=ClientMethod, **given)

    async def close(self) -> None:
        """Lets go of the file system's connections. It stays usable and makes new ones."""
        self._fs._renew()

    def __repr__(self) -> str:
        return f"<S3 of {self._fs!r}>"


class Requests(Transfers):
    """S3's operations by name, and the session that sends them."""

    @property
    def s3(self) -> S3:
        """S3's operations as coroutine functions."""
        return S3(self)

    async def get_s3(self, bucket: str | None = None) -> S3:
        """As ``s3``: one client serves the buckets of every region."""
        return self.s3

    def _renew(self) -> None:
        """Puts a new client in the place of the old, whose connections close when its last
        operation has ended."""
        if type(self.client) is Client:
            self.client = Client(**self.options.client)

    async def set_session(
        self, refresh: bool = False, kwargs: Mapping[str, Any] | None = None
    ) -> S3:
        """Returns the session, to be closed later with ``await session.close()``. Nothing is sent:
        connections are made when they are needed. ``refresh=True`` reads credentials anew."""
        return self.connect(refresh)

    _connect = set_session

    def connect(self, refresh: bool = False, kwargs: Mapping[str, Any] | None = None) -> S3:
        """As `set_session`, without ``await``."""
        if refresh:
            self._renew()
        return self.s3

    # ------------------------------------------------------------------ operations

    def _asked(self, name: str, parameters: Mapping[str, Any]) -> Call:
        """The request of an operation, as a step."""
        method, bucket, key, query, headers, body = operations.request(name, parameters)
        return Call(
            lambda client: client.raw(
                method, bucket, key, query=query, headers=headers, body=body or None
            )
        )

    def _plan_operation(self, name: str, parameters: Mapping[str, Any]) -> Plan[dict[str, Any]]:
        """One operation with exactly these parameters."""
        if name == "get_object":
            return (yield from self._plan_get_object(dict(parameters)))
        try:
            answer = yield self._asked(name, parameters)
        except ConfigError as error:
            raise _not_implemented(error) from error
        return operations.result(name, answer, parameters)

    _operation = both(_plan_operation)[1]

    def _plan_operations(
        self, name: str, many: list[dict[str, Any]]
    ) -> Plan[list[dict[str, Any] | BaseException]]:
        """An operation many times, at once: the answers in order, an exception where one failed."""
        answers = yield Together([self._asked(name, one) for one in many])
        out: list[dict[str, Any] | BaseException] = []
        for one, parameters in zip(answers, many, strict=True):
            try:
                if isinstance(one, ConfigError):
                    raise _not_implemented(one) from one
                if isinstance(one, BaseException):
                    raise one
                out.append(operations.result(name, one, parameters))
            except Exception as error:
                out.append(error)
        return out

    def _beside(self, name: str, *given: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters of an operation: ``s3_additional_kwargs`` and who pays, then what a method was
        given. Parameters that the operation does not have are left out."""
        known = operations.parameters(name)
        extra = {_ALIASES.get(one, one): value for one, value in self.options.extra.items()}
        if self.options.requester_pays:
            extra["RequestPayer"] = "requester"
        out = {one: value for one, value in extra.items() if one in known}
        for mapping in given:
            for one, value in mapping.items():
                if one in known:
                    out[one] = value
                elif not (self.options.drops_unknown and one in operations.s3_parameters()):
                    self.options.unknown(one, known)
        return out

    def _plan_call_s3(
        self, method: str, *akwarglist: Mapping[str, Any], **kwargs: Any
    ) -> Plan[dict[str, Any]]:
        """Calls an operation of S3 by its name in boto3: ``fs.call_s3("put_bucket_versioning",
        Bucket="b", VersioningConfiguration={"Status": "Enabled"})``.

        Later mappings win over earlier ones, and keywords over both. The answer is the dictionary
        that boto3 returns; the ``Body`` of ``get_object`` is to be read with ``await``.

        Raises:
            AttributeError: S3 has no operation of that name.
            NotImplementedError: it has, and it cannot be called from here.
        """
        of = "head_object" if method == "get_object" else method
        parameters = self._beside(of, *akwarglist, kwargs)
        return (yield from self._plan_operation(method, parameters))

    call_s3, _call_s3 = both(_plan_call_s3)

    def _plan_get_object(self, parameters: dict[str, Any]) -> Plan[dict[str, Any]]:
        bucket, key = parameters.pop("Bucket"), parameters.pop("Key")
        wanted = parameters.pop("Range", None)
        version_id = parameters.pop("VersionId", None)
        options = self._reading_of(version_id, parameters)
        if wanted is not None:
            options["range"] = _range(wanted)
        stream = yield _Opened(lambda client: client.stream(key, bucket=bucket, **options))
        entry = describe.of_object(key, stream.info)
        for ours in ("name", "size", "type", "Key", "Size"):
            del entry[ours]
        return entry | {
            "Body": Body(stream),
            "ContentLength": stream.length,
            "ResponseMetadata": {
                "HTTPStatusCode": 200 if wanted is None else 206,
                "HTTPHeaders": {"content-length": str(stream.length)},
            },
        }


class _Opened(Call):
    """A stream, made."""

    async def wait(self, client: Any) -> Any:
        return await made(self._call(client))


def _not_implemented(error: ConfigError) -> Exception:
    """The error of a server that does not have an operation, as the OSError of s3fs."""
    return OSError(errno.ENOSYS, str(error)) if error.status == _NOT_IMPLEMENTED else error


def _range(text: str) -> tuple[int, int | None]:
    found = _RANGE.fullmatch(text)
    first, last = found.groups() if found else ("", "")
    if not (first or last):
        raise ValueError(f"Range must be 'bytes=first-last', not {text!r}")
    if not first:
        return -int(last), None
    return int(first), int(last) + 1 if last else None
