"""What every operation of the file system stands on: options, the client, paths, the cache of
listings.

Paths are ``bucket/key``, with or without ``wirespeed://``, ``s3://`` or ``s3a://`` before them. An
access point's ARN stands in the bucket's place, and its slash belongs to it.
Keys are literal: nothing is percent-decoded. With ``version_aware`` a path may end in
``?versionId=ID``.

The cache holds whole listings of directories, for a minute unless ``listings_expiry_time`` says
otherwise. Whatever this file system writes or deletes takes the listings concerned out of it. It
only ever answers that something is there: that something is *not* there is always asked of the
server. ``refresh=True`` and `invalidate_cache` look again; ``use_listings_cache=False`` keeps
nothing.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

from fsspec.asyn import AsyncFileSystem, get_loop
from fsspec.json import FilesystemJSONEncoder
from fsspec.utils import stringify_path

from .. import Client
from .._wirespeed import _split_bucket  # pyright: ignore[reportPrivateUsage]
from ..errors import ConfigError
from . import options as option_names
from .info import Info
from .secrets import ClientWithoutSecret, any_absent, plain, referenced, refuse, veiled

LISTINGS_EXPIRY_SECONDS = 60.0
_SCHEMES = ("wirespeed", "s3", "s3a")
_VERSION = "?versionId="


# Around every use of a cache of listings, which by itself does not bear many threads. Held over a
# fork, so that no child finds it taken.
_CACHES = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_CACHES.acquire, after_in_parent=_CACHES.release, after_in_child=_CACHES.release
    )


class Place(NamedTuple):
    """What a path names."""

    bucket: str
    key: str
    version_id: str | None = None

    @property
    def uri(self) -> str:
        """As the verbs of a client take it."""
        return f"s3://{self.bucket}/{self.key}"

    @property
    def path(self) -> str:
        """As fsspec writes it, without the version."""
        return f"{self.bucket}/{self.key}" if self.key else self.bucket


def said_version(given: dict[str, Any], version_id: str | None = None) -> str | None:
    """Takes the version out of what a method was given, by s3fs's name and by S3's.

    Raises:
        ValueError: they name different ones.
    """
    for name in ("version_id", "VersionId"):
        said = given.pop(name, None)
        if said is not None and version_id not in (None, said):
            raise ValueError(f"two versions are asked for: {version_id!r} and {said!r}")
        version_id = version_id if said is None else said
    return version_id


class Core(AsyncFileSystem):
    """An instance: its options and its client. Nothing is sent, and no thread started, by making
    one."""

    protocol = "wirespeed"
    root_marker = ""
    _drops_unknown = False

    def __init__(
        self,
        *,
        asynchronous: bool = False,
        loop: asyncio.AbstractEventLoop | None = None,
        batch_size: int | None = None,
        use_listings_cache: bool = True,
        listings_expiry_time: float | None = LISTINGS_EXPIRY_SECONDS,
        max_paths: int | None = None,
        **given: Any,
    ) -> None:
        if "fo" in given:
            raise ConfigError(
                "fsspec reads '::' in a URL as a chain of file systems, and this one takes no "
                f"other behind it ({given['fo']!r}): for a key with '::' use the methods of a file "
                "system, such as fs.open(path); in place of the ARN of a multi-region access point "
                "or of a bucket, name the access point of one region or the bucket"
            )
        if self._cached:
            return
        self.options = option_names.parse(given, drops_unknown=self._drops_unknown)
        # As if asynchronous: the base class would start fsspec's IO thread at once.
        super().__init__(
            asynchronous=True,
            batch_size=batch_size,
            use_listings_cache=option_names.flag("use_listings_cache", use_listings_cache),
            listings_expiry_time=None
            if listings_expiry_time is None
            else float(listings_expiry_time),
            max_paths=None if max_paths is None else int(max_paths),
        )
        self.asynchronous = option_names.flag("asynchronous", asynchronous)
        self._loop_given = loop
        self.version_aware = self.options.version_aware
        self.client: Client = (
            ClientWithoutSecret()  # pyright: ignore[reportAttributeAccessIssue]
            if any_absent(given)
            else Client(**self.options.client)
        )
        self._buckets: set[str] = set()
        # How often something was written, or forgotten.
        self._writes = 0

    # ------------------------------------------------------------------ what fsspec keeps of us

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop on which fsspec runs what it has no blocking form of; made when it is needed,
        and made anew in a child of a fork."""
        return None if self.asynchronous else self._loop_given or get_loop()

    @property
    def storage_options(self) -> dict[str, Any]:
        """The options as given; a secret among them doesn't show itself."""
        return self._storage_options

    @storage_options.setter
    def storage_options(self, given: dict[str, Any]) -> None:
        self._storage_options = veiled(given)

    def _handed_on(self, options: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in options.items() if name != "loop"}

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.storage_options
        keep = self.options.pickle_secrets
        given = plain(given, keep=True) if keep else referenced(given)
        return _remade, (type(self), self._handed_on(given))

    def __dask_tokenize__(self) -> tuple[str, ...]:
        """What dask names its tasks by: fingerprints of secrets, which only hold in this process,
        and unlike fsspec's token not the thread."""
        given = sorted(self._handed_on(self.storage_options).items())
        return (f"{type(self).__module__}.{type(self).__qualname__}", repr(given))

    def to_dict(self, *, include_password: bool = True) -> dict[str, Any]:
        """As fsspec's, refusing to write secrets unless ``pickle_secrets=True``;
        ``include_password=False`` leaves them out."""
        if include_password and self.options.explicit_secret and not self.options.pickle_secrets:
            refuse()
        handed = self._handed_on(plain(self.storage_options, keep=include_password))
        return {
            "cls": f"{type(self).__module__}:{type(self).__name__}",
            "protocol": self.protocol if isinstance(self.protocol, str) else self.protocol[0],
            "args": [],
            **FilesystemJSONEncoder().make_serializable(handed),
        }

    def __repr__(self) -> str:
        where = str(self.options.client.get("endpoint_url") or "AWS")
        if "@" in where:
            where = where.rpartition("@")[2]
        return f"<{type(self).__name__} of {where}>"

    # ------------------------------------------------------------------ paths

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = stringify_path(path)
        for scheme in _SCHEMES:
            for mark in ("://", "::"):
                if path.startswith(scheme + mark):
                    path = path[len(scheme) + len(mark) :]
                    break
            else:
                continue
            break
        return path.strip("/") or cls.root_marker

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        return {"version_aware": True} if _VERSION in path else {}

    @classmethod
    def _parent(cls, path: Any) -> str:
        """The directory that a path is in; of a bucket, the root."""
        path = cls._strip_protocol(path)
        return path.rpartition("/")[0] if _split_bucket(path)[1] else cls.root_marker

    def split_path(self, path: Any) -> tuple[str, str, str | None]:
        """``(bucket, key, version_id)`` of a path; a slash at its end belongs to the key."""
        return self._place(path)

    def _place(self, path: Any, version_id: str | None = None) -> Place:
        text = stringify_path(path)
        stripped = self._strip_protocol(text)
        bucket, key = _split_bucket(stripped)
        if self.version_aware and _VERSION in key:
            key, _, said = key.partition(_VERSION)
            if version_id is not None and version_id != said:
                raise ValueError(f"{text} names one version and version_id={version_id!r} another")
            version_id = said
        elif key and text.endswith("/"):
            key += text[len(text.rstrip("/")) :]
        if version_id is not None and not self.version_aware:
            raise ValueError("a version_id needs a file system made with version_aware=True")
        return Place(bucket, key, version_id or None)

    def _object(self, path: Any, version_id: str | None = None) -> Place:
        place = self._place(path, version_id)
        if not place.key:
            raise IsADirectoryError(f"{path!r} is a bucket, not an object")
        return place

    def _target(self, path: Any) -> Place:
        place = self._object(path)
        if place.version_id:
            raise ValueError(f"{path!r} names a version, which can't be written")
        return place

    # ------------------------------------------------------------------ listings kept

    def invalidate_cache(self, path: str | None = None) -> None:
        """Forgets what is known at, above and below ``path``; of everything without one. What is
        asked for next comes from the server."""
        if path is None:
            with _CACHES:
                self._writes += 1
                self.dircache.clear()
                self._buckets.clear()
        else:
            self._forget([self._strip_protocol(path)], below=True)
        super().invalidate_cache(path)

    def _forget(self, paths: Iterable[str], *, below: bool = False) -> None:
        """Takes out of the cache the listings that a write at one of the paths can have changed:
        at and above each, and those below where a whole directory is concerned."""
        with _CACHES:
            self._writes += 1
            if not len(self.dircache):
                return
            stale: set[str] = set()
            for path in paths:
                path = path.rstrip("/")
                if below:
                    stale.update(known for known in self.dircache if known.startswith(path + "/"))
                while path and path not in stale:
                    stale.add(path)
                    path = path.rpartition("/")[0]
            for path in stale:
                self.dircache.pop(path, None)

    def _forget_buckets(self) -> None:
        """Takes the listing of buckets out of the cache."""
        with _CACHES:
            self._writes += 1
            self.dircache.pop("", None)

    def _remember(self, path: str, entries: list[Info], since: int) -> None:
        """Keeps a listing, unless something was written (`_writes`) since it began. An empty one
        would say that something is not there, and is not kept."""
        with _CACHES:
            if entries and self._writes == since:
                self.dircache[path] = entries

    def _known(self, path: str) -> list[Info] | None:
        """The listing of a directory, where it is kept."""
        with _CACHES:
            try:
                return self.dircache[path]
            except KeyError:
                return None

    def _in_cache(self, path: str) -> Info | None:
        """The entry, where a listing that is kept has it; of an object and a directory of the
        same name the object's."""
        found: Info | None = None
        for entry in self._known(path.rpartition("/")[0]) or ():
            if entry["name"].rstrip("/") == path:
                if entry["type"] == "file":
                    return entry
                found = entry
        return found


def _remade(cls: type[Core], options: dict[str, Any]) -> Core:
    # As plain text, so that the instance cache recognises the options.
    return cls(**plain(options, keep=True))
