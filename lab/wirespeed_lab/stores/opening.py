"""Which store a name means."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from ..places import MissingProgram
from ..server import ServerFailed
from .embedded import EmbeddedStore
from .foreign import ForeignStore
from .preset import load_preset
from .real import MinioStore, VersitygwStore
from .store import Store, StoreFailed

KINDS = ("origin", "minio", "versitygw")


def open_store(
    kind: str,
    *,
    cpus: Sequence[int],
    preset: str | Path | None = None,
    tls: bool = False,
    write_to: str | None = None,
) -> Store:
    """Starts the embedded server (``origin``), MinIO or versitygw on these cores, or takes the
    store at a URL. ``preset`` is the name or the file of what the embedded server is to be like.
    At a URL a bucket of the lab's own is made, or ``write_to`` names one that may be written to.
    Raises StoreFailed, and BadPreset for a preset that cannot be understood."""
    is_url = kind.startswith(("http://", "https://"))
    if kind not in KINDS and not is_url:
        raise StoreFailed(
            f"there is no store {kind!r}: there are {', '.join(KINDS)}, and URLs that begin with "
            "http:// or https://"
        )
    if preset is not None and kind != "origin":
        raise StoreFailed(f"{kind} takes no preset: only the embedded server (origin) has a model")
    if write_to is not None and not is_url:
        raise StoreFailed(f"{kind} is the lab's own: write_to names a bucket at a URL")
    if is_url:
        if tls and kind.startswith("http://"):
            raise StoreFailed(f"{kind} is not TLS: give a URL that begins with https://")
        return ForeignStore(kind, write_to)
    if tls and kind != "origin":
        raise StoreFailed(f"{kind} is started without TLS here: use origin, or a URL of https://")
    with _failures(kind):
        if kind == "origin":
            model = load_preset(preset) if preset is not None else None
            return EmbeddedStore(tuple(cpus), model, tls)
        if kind == "minio":
            return MinioStore(tuple(cpus))
        return VersitygwStore(tuple(cpus))


@contextlib.contextmanager
def _failures(kind: str):
    try:
        yield
    except (ServerFailed, MissingProgram) as error:
        raise StoreFailed(f"{kind} cannot be started: {error}") from None
