"""Whole objects and ranges of them in memory: cat, pipe, copy, remove; and what describes them.

Each bulk operation is one call into the engine, which knows how many requests to have in flight
and which ranges of a key to join.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false, reportAssignmentType=false

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fsspec.implementations.local import trailing_sep
from fsspec.utils import other_paths

from ..errors import ConflictError, PreconditionError
from .core import Place
from .info import Info
from .listing import Listing
from .steps import Call, Plan, Together, both

_RANGE_NOT_SATISFIABLE = 416


class Objects(Listing):
    """The operations on objects in memory, and on the server."""

    # ------------------------------------------------------------------ reading

    def _plan_ranges(
        self,
        wanted: Sequence[tuple[Place, int | None, int | None]],
        max_gap: int | None,
        given: Mapping[str, Any],
    ) -> Plan[list[Any]]:
        """The bytes of each range, or the exception that came of it.

        A range that counts from the end of an object whose size is not known is asked for from its
        beginning to the end of the object, and cut when the answer says how long that is.
        """
        out: list[Any] = [b""] * len(wanted)
        as_they_are: list[int] = []
        to_be_cut: list[int] = []
        for place, (_, start, end) in enumerate(wanted):
            first = start or 0
            if end is None or (0 <= first < end):
                as_they_are.append(place)
            elif end < 0 or first < 0:
                to_be_cut.append(place)
        versions: dict[str | None, list[int]] = {}
        for place in as_they_are:
            versions.setdefault(wanted[place][0].version_id, []).append(place)
        for version_id, places in versions.items():
            options = self.options.reading({**given, "version_id": version_id})
            if max_gap is not None:
                options["max_gap"] = max_gap
            items = [_item(*wanted[place]) for place in places]
            got = yield Call(
                lambda client, items=items, how=options: client.get_many(
                    items, as_bytes=True, errors="return", **how
                )
            )
            for place, one in zip(places, got, strict=True):
                out[place] = one
        for place in to_be_cut:
            at, start, end = wanted[place]
            options = self.options.reading({**given, "version_id": at.version_id})
            got = yield Together(
                [
                    Call(
                        lambda client, at=at, first=start or 0, how=options: client.get(
                            at.key, bucket=at.bucket, range=(first, None), **how
                        )
                    )
                ]
            )
            out[place] = _cut(got[0], start or 0, end)
        return [
            b"" if getattr(one, "status", None) == _RANGE_NOT_SATISFIABLE else one for one in out
        ]

    def _plan_cat_file(
        self,
        path: str,
        start: int | None = None,
        end: int | None = None,
        version_id: str | None = None,
        **kwargs: Any,
    ) -> Plan[bytes]:
        """The bytes of an object from ``start`` to before ``end``, which count from its end where
        they are negative; beyond its end there are none."""
        place = self._object(path, version_id)
        (got,) = yield from self._plan_ranges([(place, start, end)], None, kwargs)
        if isinstance(got, BaseException):
            raise got
        return got

    cat_file, _cat_file = both(_plan_cat_file)

    def _plan_cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        batch_size: int | None = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> Plan[list[Any]]:
        """The bytes of many ranges of many objects, in the order asked for. One call.

        Ranges of one object at most ``max_gap`` bytes apart share a request. ``on_error="return"``
        puts what failed into the list as its exception, ``"raise"`` raises the first.
        """
        if not isinstance(paths, list):
            raise TypeError("paths is a list")
        starts = list(starts) if isinstance(starts, Iterable) else [starts] * len(paths)
        ends = list(ends) if isinstance(ends, Iterable) else [ends] * len(paths)
        if not len(paths) == len(starts) == len(ends):
            raise ValueError("paths, starts and ends are of different lengths")
        wanted = [
            (self._object(path), _whole(start), _whole(end))
            for path, start, end in zip(paths, starts, ends, strict=True)
        ]
        out = yield from self._plan_ranges(wanted, max_gap, kwargs)
        if on_error != "return":
            _raise_first(out)
        return out

    cat_ranges, _cat_ranges = both(_plan_cat_ranges)

    def _plan_cat(
        self,
        path: Any,
        recursive: bool = False,
        on_error: str = "raise",
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Plan[Any]:
        """The bytes of an object, or by path those of all that a pattern, a list or, with
        ``recursive``, a directory stands for. One call.

        ``on_error``: ``"raise"`` the first, ``"omit"`` what failed, ``"return"`` its exception.
        """
        expanded = yield from self._plan_expand(path, recursive)
        paths = [name for name, entry in expanded.items() if not _is_directory(entry)]
        wanted = [(self._object(one), None, None) for one in paths]
        out = yield from self._plan_ranges(wanted, None, kwargs)
        if on_error == "raise":
            _raise_first(out)
        if (
            len(paths) == 1
            and not isinstance(path, list)
            and paths[0] == self._strip_protocol(path)
        ):
            return out[0]
        return {
            name: one
            for name, one in zip(paths, out, strict=True)
            if on_error != "omit" or not isinstance(one, BaseException)
        }

    cat, _cat = both(_plan_cat)

    # ------------------------------------------------------------------ writing

    def _plan_pipe_file(
        self, path: str, value: Any, mode: str = "overwrite", **kwargs: Any
    ) -> Plan[None]:
        """Makes the bytes an object; with ``mode="create"`` only where there is none.

        Keywords say what it is written with, as s3fs's (``ContentType``, ``StorageClass``, ...)
        or as `wirespeed.Client.put`'s.

        Raises:
            FileExistsError: ``mode="create"``, and there is one.
        """
        place = self._target(path)
        options = self.options.writing(kwargs) | _condition(mode)
        try:
            yield Call(lambda client: client.put(place.key, value, bucket=place.bucket, **options))
        except (PreconditionError, ConflictError) as error:
            raise _exists(place, mode, error) from error
        finally:
            self._forget([place.path])

    pipe_file, _pipe_file = both(_plan_pipe_file)

    def _plan_pipe(
        self, path: Any, value: Any = None, batch_size: int | None = None, **kwargs: Any
    ) -> Plan[None]:
        """As `pipe_file`, or for many objects at once with a mapping of paths to bytes. One
        call."""
        if isinstance(path, str):
            return (yield from self._plan_pipe_file(path, value, **kwargs))
        if not isinstance(path, Mapping):
            raise ValueError("path is a str, or a mapping of paths to bytes")
        mode = kwargs.pop("mode", "overwrite")
        options = self.options.writing(kwargs) | _condition(mode)
        places = [self._target(one) for one in path]
        items = [(at.uri, body) for at, body in zip(places, path.values(), strict=True)]
        if not items:
            return None
        try:
            yield Call(lambda client: client.put_many(items, **options))
        except (PreconditionError, ConflictError) as error:
            raise _exists(places[0], mode, error) from error
        finally:
            self._forget([at.path for at in places])

    pipe, _pipe = both(_plan_pipe)

    def _plan_touch(
        self, path: str, truncate: bool = True, data: Any = None, **kwargs: Any
    ) -> Plan[None]:
        """Makes an empty object. S3 can't change an object's time alone: ``truncate=False`` is an
        error where there is one."""
        if not truncate and (yield from self._plan_exists(path, refresh=True)):
            raise ValueError(f"{path} exists, and S3 can't set its time without writing it anew")
        yield from self._plan_pipe_file(path, b"" if data is None else data, **kwargs)

    touch, _touch = both(_plan_touch)

    # ------------------------------------------------------------------ removing

    def _plan_delete(self, places: Sequence[Place]) -> Plan[None]:
        items = [(at.uri, at.version_id) if at.version_id else at.uri for at in places]
        access = self.options.access()
        try:
            failed = yield Call(lambda client: client.delete_many(items, **access))
        finally:
            self._forget([at.path for at in places])
        if failed:
            first = failed[0]
            kind = PermissionError if first.code == "AccessDenied" else OSError
            raise kind(
                f"{len(failed)} of {len(items)} objects could not be deleted; the first is "
                f"s3://{first.bucket}/{first.key}: {first.code}: {first.message}"
            )

    def _plan_rm_file(self, path: str, **kwargs: Any) -> Plan[None]:
        """Deletes an object. S3 doesn't say whether there was one."""
        yield from self._plan_delete([self._object(path)])

    rm_file, _rm_file = both(_plan_rm_file)

    def _plan_rm(
        self,
        path: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Plan[None]:
        """Deletes objects: one, a list, what a pattern matches; with ``recursive`` directories
        with all in them, and buckets. One listing for a directory, and one call that deletes.

        As in S3, deleting an object or a directory that is not there is no error; a bucket that
        is not there is, and so is a pattern that matches nothing.
        """
        found: dict[Place, None] = {}
        buckets: list[str] = []
        trees: list[str] = []
        for one in path if isinstance(path, list) else [path]:
            stripped = self._strip_protocol(one)
            if not stripped:
                raise ValueError("deleting all buckets is not supported: name one")
            if self._has_magic(stripped):
                expanded = yield from self._plan_expand(stripped, False)
                names = [
                    name
                    for name, entry in expanded.items()
                    if recursive or not _is_directory(entry)
                ]
            else:
                names = [stripped]
            for name in names:
                place = self._place(one if len(names) == 1 and name == stripped else name)
                if not place.key:
                    buckets.append(place.bucket)
                if recursive and not place.version_id:
                    trees.append(name)
                    below = yield from self._plan_below(name, place, maxdepth)
                    found |= dict.fromkeys(below)
                elif place.key:
                    found[place] = None
        if found:
            yield from self._plan_delete(list(found))
        self._forget(trees, below=True)
        for bucket in buckets:
            if maxdepth is None:
                yield from self._plan_rmdir(bucket)

    rm, _rm = both(_plan_rm)

    def _plan_below(self, name: str, place: Place, maxdepth: int | None) -> Plan[list[Place]]:
        """The objects that go with a path, those that only stand for a directory among them."""
        bucket, key, _ = place
        key = key.rstrip("/")
        if maxdepth is not None:
            entries = yield from self._plan_find_entries(name, maxdepth, False, "", False)
            return [self._place(one) for one in entries]
        listing = self._list(bucket, f"{key}/" if key else "")
        keys: list[str] = yield Call(lambda client: listing(client).keys())
        places = [Place(bucket, one) for one in keys]
        if key:
            with contextlib.suppress(FileNotFoundError):
                yield from self._plan_head(Place(bucket, key))
                places.append(Place(bucket, key))
        return places

    # ------------------------------------------------------------------ copying on the server

    def _copying(self, source: Place, target: Place, given: Mapping[str, Any]) -> Call:
        options = self.options.writing(given)
        if source.version_id:
            options["source_version_id"] = source.version_id
        return Call(lambda client: client.copy(source.uri, target.uri, **options))

    def _plan_cp_file(
        self, path1: str, path2: str, preserve_etag: bool | None = None, **kwargs: Any
    ) -> Plan[None]:
        """Copies an object on the server, to another bucket too; none of its bytes come here."""
        target = self._target(path2)
        try:
            yield self._copying(self._object(path1), target, kwargs)
        finally:
            self._forget([target.path])

    cp_file, _cp_file = both(_plan_cp_file)

    def _plan_copy(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        on_error: str | None = None,
        maxdepth: int | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Plan[None]:
        """Copies objects on the server, by fsspec's rules of what goes where, many at once.

        ``on_error="ignore"`` (where ``recursive``, if nothing is said) leaves out what is not
        there any more.
        """
        on_error = on_error or ("ignore" if recursive else "raise")
        pairs = yield from self._plan_pairs(path1, path2, recursive, maxdepth)
        places = [(self._object(source), self._target(target)) for source, target in pairs]
        if not places:
            return
        try:
            out = yield Together([self._copying(*pair, kwargs) for pair in places])
        finally:
            self._forget([target.path for _, target in places])
        if on_error == "ignore":
            out = [one for one in out if not isinstance(one, FileNotFoundError)]
        _raise_first(out)

    copy, _copy = both(_plan_copy)

    def _plan_pairs(
        self, path1: Any, path2: Any, recursive: bool, maxdepth: int | None
    ) -> Plan[list[tuple[str, str]]]:
        """What is to be copied where."""
        if isinstance(path1, list) and isinstance(path2, list):
            return list(zip(path1, path2, strict=True))
        expanded = yield from self._plan_expand(path1, recursive, maxdepth)
        one_given = isinstance(path1, str)
        sources = list(expanded)
        if one_given and (not recursive or maxdepth is not None):
            sources = []
            for name in expanded:
                if not (trailing_sep(name) or (yield from self._plan_leads_to(name, expanded))):
                    sources.append(name)
        if not sources:
            return []
        into = isinstance(path2, str) and (
            trailing_sep(path2) or (yield from self._plan_isdir(path2))
        )
        magic = one_given and self._has_magic(self._strip_protocol(path1))
        exists = one_given and (
            (magic and len(sources) == 1) or (not magic and into and not trailing_sep(path1))
        )
        target = self._strip_protocol(path2)
        targets = other_paths(sources, target, exists=exists, flatten=not one_given)
        return [
            (source, target)
            for source, target in zip(sources, targets, strict=True)
            if not _is_directory(expanded[source]) and not trailing_sep(target)
        ]

    def _plan_leads_to(self, name: str, expanded: Mapping[str, Info | None]) -> Plan[bool]:
        """Whether an expanded path is a directory."""
        entry = expanded[name]
        if entry is not None:
            return _is_directory(entry)
        return (yield from self._plan_isdir(name))

    def _plan_mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> Plan[None]:
        """Copies, and then deletes what was copied. Nothing is deleted unless all was copied."""
        if path1 == path2:
            return
        pairs = yield from self._plan_pairs(path1, path2, recursive, maxdepth)
        sources = [source for source, _ in pairs]
        targets = [target for _, target in pairs]
        if not pairs:
            return
        yield from self._plan_copy(sources, targets, on_error="raise", **kwargs)
        if recursive and maxdepth is None:
            yield from self._plan_rm(path1, recursive=True)
        else:
            yield from self._plan_delete([self._object(source) for source in sources])

    mv, _mv = both(_plan_mv)

    def _plan_mv_file(self, path1: str, path2: str) -> Plan[None]:
        """Copies an object, and then deletes it."""
        yield from self._plan_cp_file(path1, path2)
        yield from self._plan_rm_file(path1)

    mv_file, _mv_file = both(_plan_mv_file)

    # ------------------------------------------------------------------ what describes them

    def _plan_metadata(
        self, path: str, refresh: bool = False, **kwargs: Any
    ) -> Plan[dict[str, str]]:
        """The metadata that an object was written with, by lower-case names without
        ``x-amz-meta-``."""
        return dict((yield from self._plan_head(self._object(path)))["Metadata"])

    metadata, _metadata = both(_plan_metadata)

    def _plan_getxattr(self, path: str, attr_name: str, **kwargs: Any) -> Plan[str | None]:
        """One of an object's metadata; ``None`` where it has none of that name."""
        found = yield from self._plan_metadata(path)
        return found.get(attr_name, found.get(attr_name.replace("_", "-")))

    getxattr, _getxattr = both(_plan_getxattr)

    def _plan_setxattr(
        self, path: str, copy_kwargs: Mapping[str, Any] | None = None, **kw_args: Any
    ) -> Plan[None]:
        """Sets metadata (an underscore in a name stands for a dash, as with s3fs); ``None`` takes
        a name out. The object is copied onto itself, which must not change meanwhile."""
        place = self._target(path)
        info = yield from self._plan_head(place)
        metadata = dict(info["Metadata"])
        for name, value in kw_args.items():
            name = name.replace("_", "-")
            if value is None:
                metadata.pop(name, None)
            else:
                metadata[name] = value
        options = self.options.writing(
            {name: info[name] for name in _DESCRIBES if info.get(name)}
            | dict(copy_kwargs or {})
            | {"metadata": metadata}
        )
        options["source_if_match"] = info["ETag"] or None
        try:
            yield Call(lambda client: client.copy(place.uri, place.uri, **options))
        finally:
            self._forget([place.path])

    setxattr, _setxattr = both(_plan_setxattr)

    def _plan_url(
        self, path: str, expires: float = 3600, client_method: str = "get_object", **kwargs: Any
    ) -> Plan[str]:
        """A URL by which anybody may do one thing with the object, for so many seconds."""
        place = self._object(path)
        methods = {
            "get_object": "GET",
            "head_object": "HEAD",
            "put_object": "PUT",
            "delete_object": "DELETE",
        }
        if client_method not in methods:
            raise ValueError(f"client_method is one of {', '.join(methods)}, not {client_method!r}")
        options: dict[str, Any] = {"method": methods[client_method], "expires_in": expires}
        if place.version_id:
            options["version_id"] = place.version_id
        if "ContentType" in kwargs:
            options["content_type"] = kwargs.pop("ContentType")
        if kwargs:
            raise TypeError(f"not known to url: {', '.join(sorted(kwargs))}")
        return (
            yield Call(lambda client: client.presign(place.key, bucket=place.bucket, **options))
        )

    url, _url = both(_plan_url)

    def _plan_sign(self, path: str, expiration: float = 100, **kwargs: Any) -> Plan[str]:
        """As `url`."""
        return (yield from self._plan_url(path, expires=expiration, **kwargs))

    sign, _sign = both(_plan_sign)

    # ------------------------------------------------------------------ buckets

    def _plan_mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> Plan[None]:
        """Creates a bucket; a directory in one needs no making, but its bucket is created unless
        it is there or ``create_parents=False``.

        Raises:
            FileExistsError: there is a bucket of that name.
        """
        place = self._place(path)
        if not place.bucket:
            raise ValueError("the root is there already")
        if place.key and place.bucket in self._buckets:
            return
        try:
            yield from self._plan_any(place.bucket, "")
        except FileNotFoundError:
            if place.key and not create_parents:
                raise
        else:
            if place.key:
                return
            raise FileExistsError(f"there is a bucket {place.bucket}")
        yield Call(lambda client: client.create_bucket(place.bucket))
        self.dircache.pop("", None)
        self._forget([place.bucket], below=True)

    mkdir, _mkdir = both(_plan_mkdir)

    def _plan_makedirs(self, path: str, exist_ok: bool = False) -> Plan[None]:
        """As `mkdir`; with ``exist_ok`` a bucket that is there is no error."""
        try:
            yield from self._plan_mkdir(path)
        except FileExistsError:
            if not exist_ok:
                raise

    makedirs, _makedirs = both(_plan_makedirs)

    def _plan_rmdir(self, path: str) -> Plan[None]:
        """Deletes an empty bucket. A directory with something in it is not deleted so, and one
        with nothing in it is not there."""
        place = self._place(path)
        if place.key:
            if (yield from self._plan_exists(path, refresh=True)):
                raise OSError(f"{path} is not empty; rm(path, recursive=True) deletes all in it")
            raise FileNotFoundError(f"nothing is there of {path}")
        yield Call(lambda client: client.delete_bucket(place.bucket))
        self._buckets.discard(place.bucket)
        self.dircache.pop("", None)
        self._forget([place.bucket], below=True)

    rmdir, _rmdir = both(_plan_rmdir)


# What is written anew where an object's metadata are replaced.
_DESCRIBES = (
    "ContentType",
    "ContentEncoding",
    "ContentDisposition",
    "ContentLanguage",
    "CacheControl",
)


def _item(place: Place, start: int | None, end: int | None) -> Any:
    if not start and end is None:
        return place.uri
    return (place.uri, (start or 0, end))


def _whole(number: Any) -> int | None:
    """numpy's integers are not Python's."""
    return None if number is None else int(number)


def _cut(got: Any, start: int, end: int | None) -> Any:
    """What of the bytes from ``start`` to the end of an object lies before ``end``."""
    if isinstance(got, BaseException):
        return got
    size = got.info.size if got.info is not None else len(got)
    first = max(0, size + start) if start < 0 else start
    last = size if end is None else size + end if end < 0 else end
    return bytes(got[: max(0, last - first)])


def _raise_first(outcomes: Iterable[Any]) -> None:
    for one in outcomes:
        if isinstance(one, BaseException):
            raise one


def _is_directory(entry: Info | None) -> bool:
    return entry is not None and entry["type"] == "directory"


def _condition(mode: str) -> dict[str, Any]:
    if mode == "create":
        return {"if_none_match": "*"}
    if mode != "overwrite":
        raise ValueError(f"mode is 'overwrite' or 'create', not {mode!r}")
    return {}


def _exists(place: Place, mode: str, error: Exception) -> Exception:
    """What a refused write means: with ``mode="create"``, that there is an object."""
    if mode != "create":
        return error
    return FileExistsError(f"there is an object {place.uri}, and it was not overwritten")
