"""The module's verbs, to be awaited: ``await wirespeed.aio.get("s3://bucket/key")``."""

from __future__ import annotations

from typing import Any

from . import _VERBS, default_client  # pyright: ignore[reportPrivateUsage]


def __getattr__(name: str) -> Any:
    if name in _VERBS:
        return getattr(default_client().aio, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_VERBS})
