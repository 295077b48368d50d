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
        "https_proxy",  # may hold a password
    }
)
# So that a fingerprint tells nothing outside this process and those forked from it.
_SALT = os.urandom(16)


class Secret(str):
    """Text that does not show itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        digest = hashlib.blake2b(self.encode(), key=_SALT, digest_size=6).hexdigest()
        return f"<secret {digest}>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        refuse()

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: Any) -> Secret:
        return self


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
        if name in _NAMES and isinstance(value, str):
            return Secret(value)
        return value

    return {name: one(name, value) for name, value in options.items()}


def plain(options: Mapping[str, Any], *, keep: bool) -> dict[str, Any]:
    """The options with their secrets as plain text, or without them."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            found[name] = plain(value, keep=keep)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, Secret):
            if keep:
                found[name] = str.__str__(value)
        else:
            found[name] = value
    return found
