"""Secrets among the options: kept out of representations, pickles and JSON.

fsspec keeps the options that an instance was made with, shows them and pickles them. What is a
secret in them becomes a `Secret`: the same text to all that use it, and a fingerprint to all that
show it.

A pickle holds a reference in a secret's place. The process that was given the secret, and those
forked from it later, find it again by the reference, so dask can tokenize a file system and
schedule it on threads. Elsewhere the reference leads to an `Absent` secret; a file system with one
has a `ClientWithoutSecret`, and the first use of that is an error. (An error while unpickling
would kill the workers of multiprocessing's pools and leave their callers waiting.)
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any, NoReturn

from ..errors import ConfigError

_NAMES = frozenset(
    {
        "secret",
        "token",
        "password",
        "secret_access_key",
        "session_token",
        "aws_secret_access_key",
        "aws_session_token",
        "sse_customer_key",
        "SSECustomerKey",
    }
)
# Objects that hold secrets: sessions of botocore and the like.
_OBJECTS = frozenset({"session"})
# What may hold a user's name and password before its host.
_URLS = frozenset({"endpoint_url", "https_proxy", "http", "https"})
# So that a fingerprint tells nothing outside this process and those forked from it.
_SALT = os.urandom(16)


class Secret(str):
    """Text that does not show itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _fingerprint(self.encode())

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _recalled, (_reference(self),)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: Any) -> Secret:
        return self


class SecretBytes(bytes):
    """Bytes that do not show themselves."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _fingerprint(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _recalled, (_reference(self),)

    def __copy__(self) -> SecretBytes:
        return self

    def __deepcopy__(self, memo: Any) -> SecretBytes:
        return self


class Absent(Secret):
    """A secret that stayed in the process that was given it; its text is the reference."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<secret {str.__str__(self)} of another process>"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _recalled, (str.__str__(self),)


class Held:
    """Stands in a pickle for an object that holds secrets."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return _recalled, (_reference_of(self._value),)


class ClientWithoutSecret:
    """Takes the place of a file system's client where a secret is `Absent`."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ConfigError(
            "this file system was unpickled in another process than the one that was given its "
            f"secret, and a pickle holds no secret: {_WAYS}"
        )


# The secrets that this process was given, and the objects that hold some, by their references.
_known: dict[str, Any] = {}
_WAYS = (
    "let the worker find the credentials itself (AWS_ACCESS_KEY_ID and the like, or profile=...), "
    "or say pickle_secrets=True"
)


def _fingerprint(secret: bytes) -> str:
    return f"<secret {hashlib.blake2b(secret, key=_SALT, digest_size=6).hexdigest()}>"


def _reference(secret: str | bytes) -> str:
    kind, text = (b"str", secret.encode()) if isinstance(secret, str) else (b"bytes", secret)
    return hashlib.blake2b(text, key=_SALT, digest_size=16, person=kind).hexdigest()


def _reference_of(value: object) -> str:
    # `_known` keeps the object, so that no other gets its address.
    return _reference(b"object %x" % id(value))


def _recalled(reference: str) -> Any:
    return _known[reference] if reference in _known else Absent(reference)


def refuse() -> NoReturn:
    """Refuses to hand a secret on."""
    raise ConfigError(
        "this file system was given a secret, which is not put into a pickle or JSON: " + _WAYS
    )


def veiled(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with their secrets, at any depth, as `Secret`."""

    def one(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return veiled(value)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, Absent):
            return value
        if name in _OBJECTS and value is not None:
            _known[_reference_of(value)] = value
            return value
        if isinstance(value, (str, bytes, bytearray)) and _is_secret(name, value):
            secret = Secret(value) if isinstance(value, str) else SecretBytes(value)
            _known[_reference(secret)] = secret
            return secret
        return value

    return {name: one(name, value) for name, value in options.items()}


def _is_secret(name: str, value: str | bytes | bytearray) -> bool:
    if name in _URLS:
        return isinstance(value, str) and "@" in value
    return name in _NAMES and len(value) > 0


def any_secret(options: Mapping[str, Any]) -> bool:
    """Whether a secret stands among the options, at any depth."""
    return any(
        any_secret(value)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, Mapping)
        else isinstance(value, (str, bytes, bytearray)) and _is_secret(name, value)
        for name, value in options.items()
    )


def referenced(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options to be pickled, without an object in them that holds secrets."""
    return {
        name: Held(value)
        if name in _OBJECTS and value is not None and not isinstance(value, Absent)
        else value
        for name, value in options.items()
    }


def any_absent(options: Mapping[str, Any]) -> bool:
    """Returns whether a secret among the options, at any depth, is `Absent`."""
    return any(
        any_absent(value)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, Mapping)
        else isinstance(value, Absent)
        for value in options.values()
    )


def plain(options: Mapping[str, Any], *, keep: bool) -> dict[str, Any]:
    """The options with their secrets as plain text, or without them."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            found[name] = plain(value, keep=keep)  # pyright: ignore[reportUnknownArgumentType]
        elif name in _OBJECTS and not keep:
            continue
        elif isinstance(value, Secret):
            if keep:
                found[name] = value if isinstance(value, Absent) else str.__str__(value)
        elif isinstance(value, SecretBytes):
            if keep:
                found[name] = bytes(value)
        else:
            found[name] = value
    return found
