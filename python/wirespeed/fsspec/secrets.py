"""Secrets among the options: kept out of representations, pickles and JSON.

fsspec keeps the options that an instance was made with, shows them and pickles them. What is a
secret in them becomes a `Secret`: the same text to all that use it, and a fingerprint to all that
show it.
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
# What may hold a user's name and password before its host.
_URLS = frozenset({"endpoint_url", "https_proxy", "http", "https"})
# So that a fingerprint tells nothing outside this process and those forked from it.
_SALT = os.urandom(16)


class Secret(str):
    """Text that does not show itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _fingerprint(self.encode())

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        refuse()

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: Any) -> Secret:
        return self


class SecretBytes(bytes):
    """Bytes that do not show themselves."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _fingerprint(self)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        refuse()

    def __copy__(self) -> SecretBytes:
        return self

    def __deepcopy__(self, memo: Any) -> SecretBytes:
        return self


def _fingerprint(secret: bytes) -> str:
    return f"<secret {hashlib.blake2b(secret, key=_SALT, digest_size=6).hexdigest()}>"


def refuse() -> NoReturn:
    """Refuses to hand a secret on."""
    raise ConfigError(
        "this file system was given a secret, which is not put into a pickle or JSON: let the "
        "worker find the credentials itself (AWS_ACCESS_KEY_ID and the like, or profile=...), or "
        "say pickle_secrets=True"
    )


def veiled(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with their secrets, at any depth, as `Secret`."""

    def one(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return veiled(value)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, (str, bytes, bytearray)) and _is_secret(name, value):
            return Secret(value) if isinstance(value, str) else SecretBytes(value)
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


def plain(options: Mapping[str, Any], *, keep: bool) -> dict[str, Any]:
    """The options with their secrets as plain text, or without them."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            found[name] = plain(value, keep=keep)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, Secret):
            if keep:
                found[name] = str.__str__(value)
        elif isinstance(value, SecretBytes):
            if keep:
                found[name] = bytes(value)
        else:
            found[name] = value
    return found
