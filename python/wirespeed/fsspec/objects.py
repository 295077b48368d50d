"""Whole objects and ranges of them in memory: cat, pipe, touch; and how they are removed.

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
import errno
from collections.abc import Iterable, Mapping, Sequence
from glob import has_magic
from typing import TYPE_CHECKING, Any

from ..errors import ConflictError, PreconditionError, WirespeedError
from .buckets import Buckets
from .core import Place, said_version
from .info import Info, of_written
from .path_lists import each_path, is_one_path
from .steps import Call, Plan, Together, both

if TYPE_CHECKING:
    from .._wirespeed import DeleteFailure, PutResult

_RANGE_NOT_SATISFIABLE = 416
_NAMED = 10


class DeletionError(OSError):
    """Objects that could not be deleted; the others of the call are deleted."""

    failed: list[tuple[str, str]]
    """The path of each, and why."""
    _number = errno.EIO

    def __init__(self, failed: list[tuple[str, str]], asked: int) -> None:
        shown = [(path if path.isprintable() else ascii(path)[1:-1], why) for path, why in failed]
        named = "; ".join(f"{path}: {why}" for path, why in shown[:_NAMED])
        more = len(failed) - _NAMED
        rest = f"; and {more} more, all in the exception's failed" if more > 0 else ""
        super().__init__(
            self._number, f"{len(failed)} of {asked} objects could not be deleted: {named}{rest}"
        )
        self.failed, self._asked = failed, asked

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.failed, self._asked)


class DeletionDeniedError(DeletionError, PermissionError):
    """Objects that may not be deleted."""

    _number = errno.EACCES


class Objects(Buckets):
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
            options = self._reading_of(version_id, given)
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
            options = self._reading_of(at.version_id, given)
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
        # Of a range that counts from the end, a refusal says nothing about where that is.
        return [
            b""
            if (start or 0) > 0 and getattr(one, "status", None) == _RANGE_NOT_SATISFIABLE
            else one
            for (_, start, _), one in zip(wanted, out, strict=True)
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
        place = self._object(path, said_version(kwargs, version_id))
        (got,) = yield from self._plan_ranges([(place, start, end)], None, kwargs)
        if isinstance(got, BaseException):
            raise got
        return got

    cat_file, _cat_file = both(_plan_cat_file)

    def _plan_cat_ranges(
        self,
        paths: Any,
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
        version_id = said_version(kwargs)
        places = {path: self._object(path, version_id) for path in set(paths)}
        wanted = [
            (places[path], _whole(start), _whole(end))
            for path, start, end in zip(paths, starts, ends, strict=True)
        ]
        out = yield from self._plan_ranges(wanted, max_gap, kwargs)
        if on_error != "return":
            raise_first(out)
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
        version_id = said_version(kwargs)
        expanded = yield from self._plan_expand(path, recursive)
        paths = [name for name, entry in expanded.items() if not is_directory(entry)]
        wanted = [(self._object(one, version_id), None, None) for one in paths]
        out = yield from self._plan_ranges(wanted, None, kwargs)
        if on_error == "raise":
            raise_first(out)
        if len(paths) == 1 and is_one_path(path) and paths[0] == self._strip_protocol(path):
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
    ) -> Plan[Info]:
        """Makes the bytes an object; with ``mode="create"`` only where there is none.

        Keywords say what it is written with, as s3fs's (``ContentType``, ``StorageClass``, ...)
        or as `wirespeed.Client.put`'s. Returns the server's answer: ``ETag``, and ``VersionId``
        where the bucket keeps versions.

        Raises:
            FileExistsError: ``mode="create"``, and there is one.
        """
        place = self._target(path)
        options = self.options.writing(kwargs) | _condition(mode)
        try:
            result: PutResult = yield Call(
                lambda client: client.put(place.key, value, bucket=place.bucket, **options)
            )
        except (PreconditionError, ConflictError) as error:
            raise _exists(mode, error) from error
        finally:
            self._forget([place.path])
        return of_written(result)

    pipe_file, _pipe_file = both(_plan_pipe_file)

    def _plan_pipe(
        self, path: Any, value: Any = None, batch_size: int | None = None, **kwargs: Any
    ) -> Plan[list[Info]]:
        """As `pipe_file`, or for many objects at once with a mapping of paths to bytes. One call.
        Returns a list of what `pipe_file` returns, in the order of the paths."""
        if isinstance(path, str):
            return [(yield from self._plan_pipe_file(path, value, **kwargs))]
        if not isinstance(path, Mapping):
            raise ValueError("path is a str, or a mapping of paths to bytes")
        mode = kwargs.pop("mode", "overwrite")
        options = self.options.writing(kwargs) | _condition(mode)
        places = [self._target(one) for one in path]
        items = [(at.uri, body) for at, body in zip(places, path.values(), strict=True)]
        if not items:
            return []
        try:
            results: list[PutResult] = yield Call(lambda client: client.put_many(items, **options))
        except (PreconditionError, ConflictError) as error:
            raise _exists(mode, error) from error
        finally:
            self._forget([at.path for at in places])
        return [of_written(one) for one in results]

    pipe, _pipe = both(_plan_pipe)

    def _plan_touch(
        self, path: str, truncate: bool = True, data: Any = None, **kwargs: Any
    ) -> Plan[Info]:
        """Makes an empty object, and returns what `pipe_file` returns. S3 can't change an object's
        time alone: ``truncate=False`` is an error where there is one."""
        if not truncate and (yield from self._plan_exists(path, refresh=True)):
            raise ValueError(f"{path} exists, and S3 can't set its time without writing it anew")
        return (yield from self._plan_pipe_file(path, b"" if data is None else data, **kwargs))

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
            denied = all(one.code == "AccessDenied" for one in failed)
            kind = DeletionDeniedError if denied else DeletionError
            raise kind([_undeleted(one) for one in failed], len(items))

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
    ) -> Plan[list[str]]:
        """Deletes objects: one, a list, what a pattern matches; with ``recursive`` directories
        with all in them, and buckets. One listing for a directory, and one call that deletes.
        Returns the paths of the objects, with those that were not there.

        As in S3, deleting an object or a directory that is not there is no error; a bucket that
        is not there is, and so is a pattern that matches nothing.
        """
        found: dict[Place, None] = {}
        buckets: list[str] = []
        trees: list[str] = []
        for one in each_path(path):
            stripped = self._strip_protocol(one)
            if not stripped or has_magic(self._place(stripped).bucket):
                raise ValueError("deleting many buckets is not supported: name one")
        for one in each_path(path):
            stripped = self._strip_protocol(one)
            if self._has_magic(stripped):
                expanded = yield from self._plan_expand(stripped, False)
                names: list[str] = []
                for name, entry in expanded.items():
                    if not is_directory(entry):
                        found[self._place(name)] = None
                    elif recursive:
                        names.append(name)
            else:
                names = [stripped]
            for name in names:
                place = self._place(one if len(names) == 1 and name == stripped else name)
                if not place.key:
                    buckets.append(place.bucket)
                    if recursive and maxdepth is None:
                        yield from self._plan_refuse_versions(place.bucket)
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
        return [_spelled(at) for at in found]

    rm, _rm = both(_plan_rm)

    def _plan_refuse_versions(self, bucket: str) -> Plan[None]:
        """An error where deleting the objects of a bucket would leave their versions in it."""
        listing = self._list(bucket, "", versions=True)
        try:
            page = yield Call(lambda client: listing(client).table())
        except WirespeedError as error:
            if error.status not in (400, 403, 405, 501):
                raise
            return  # who can't see versions finds out when the bucket is deleted
        for one in page:
            if one.is_delete_marker or one.version_id not in (None, "", "null"):
                raise OSError(
                    f"bucket {bucket} keeps versions, and can't be removed while it has any; "
                    "nothing was deleted. Delete what client.list(versions=True) gives by "
                    "client.delete_many([(uri, version_id), ...]), and then the bucket"
                )

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


def raise_first(outcomes: Iterable[Any]) -> None:
    for one in outcomes:
        if isinstance(one, BaseException):
            raise one


def is_directory(entry: Info | None) -> bool:
    return entry is not None and entry["type"] == "directory"


def _condition(mode: str) -> dict[str, Any]:
    if mode == "create":
        return {"if_none_match": "*"}
    if mode != "overwrite":
        raise ValueError(f"mode is 'overwrite' or 'create', not {mode!r}")
    return {}


def _exists(mode: str, error: WirespeedError) -> Exception:
    """What a refused write means: with ``mode="create"``, that there is an object."""
    if mode != "create":
        return error
    uri = f"s3://{error.bucket}/{error.key}"
    return FileExistsError(errno.EEXIST, "there is an object, and it was not overwritten", uri)


def _spelled(place: Place) -> str:
    return f"{place.path}?versionId={place.version_id}" if place.version_id else place.path


def _undeleted(failure: DeleteFailure) -> tuple[str, str]:
    place = Place(failure.bucket, failure.key, failure.version_id)
    return _spelled(place), f"{failure.code}: {failure.message}"
