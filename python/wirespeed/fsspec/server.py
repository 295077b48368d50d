"""What the server does without a byte coming here: copies, moves, what describes objects, URLs.

The engine copies one object at a time, by parts where it is large; of many, as many at once as
`steps.AT_ONCE` says.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false, reportAssignmentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fsspec.implementations.local import trailing_sep
from fsspec.utils import other_paths

from .core import Place, said_version
from .info import Info
from .objects import Objects, is_directory, raise_first
from .path_lists import is_one_path, paired
from .steps import Call, Plan, Together, both

# Headers of the answer to a presigned GET, by S3's names of them.
_RESPONSE = {
    "ResponseContentDisposition": "content-disposition",
    "ResponseContentEncoding": "content-encoding",
    "ResponseContentLanguage": "content-language",
    "ResponseCacheControl": "cache-control",
    "ResponseExpires": "expires",
}
# What is written anew where an object's metadata are replaced.
_DESCRIBES = (
    "ContentType",
    "ContentEncoding",
    "ContentDisposition",
    "ContentLanguage",
    "CacheControl",
)


class OnServer(Objects):
    """The operations that the server is asked to do."""

    # ------------------------------------------------------------------ copying on the server

    def _copying(
        self, source: Place, target: Place, given: Mapping[str, Any], confirm: bool = False
    ) -> Call:
        options = self.options.copying(given)
        options["confirm"] = confirm
        if source.version_id:
            options["source_version_id"] = source.version_id
        return Call(lambda client: client.copy(source.uri, target.uri, **options))

    def _plan_cp_file(self, path1: str, path2: str, **kwargs: Any) -> Plan[None]:
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
        out = yield from self._plan_copies(places, kwargs)
        if on_error == "ignore":
            out = [one for one in out if not _source_is_gone(one)]
        raise_first(out)

    copy, _copy = both(_plan_copy)

    def _plan_copies(
        self,
        places: Sequence[tuple[Place, Place]],
        given: Mapping[str, Any],
        confirm: bool = False,
    ) -> Plan[list[Any]]:
        """Copies each source to its target, with ``confirm`` only where the copy is proven; the
        outcomes, an exception where one failed."""
        if not places:
            return []
        try:
            return (yield Together([self._copying(*pair, given, confirm) for pair in places]))
        finally:
            self._forget([target.path for _, target in places])

    def _plan_pairs(
        self, path1: Any, path2: Any, recursive: bool, maxdepth: int | None
    ) -> Plan[list[tuple[str, str]]]:
        """What is to be copied where."""
        pairs = paired(path1, path2)
        if pairs is not None:
            return pairs
        expanded = yield from self._plan_expand(path1, recursive, maxdepth)
        one_given = is_one_path(path1)
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
            if not is_directory(expanded[source]) and not trailing_sep(target)
        ]

    def _plan_leads_to(self, name: str, expanded: Mapping[str, Info | None]) -> Plan[bool]:
        """Whether an expanded path is a directory."""
        entry = expanded[name]
        if entry is not None:
            return is_directory(entry)
        return (yield from self._plan_isdir(name))

    def _plan_mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> Plan[None]:
        """Copies, and then deletes exactly what was copied. Nothing is deleted unless all was
        copied. A bucket that was emptied so stays.

        Raises:
            ValueError: something would be moved onto itself, into itself, or onto something else
                that is moved.
        """
        one_to_one = isinstance(path1, str) and isinstance(path2, str)
        if one_to_one and self._place(path1)[:2] == self._place(path2)[:2]:
            raise ValueError(f"{path1} can't be moved onto itself")
        if (
            recursive
            and maxdepth is None
            and one_to_one
            and not self._has_magic(self._strip_protocol(path1))
            and self._place(path1).version_id is None
        ):
            places = yield from self._plan_moves(path1, path2)
        else:
            pairs = yield from self._plan_pairs(path1, path2, recursive, maxdepth)
            places = [(self._object(source), self._target(target)) for source, target in pairs]
        yield from self._plan_move(places, kwargs)

    mv, _mv = both(_plan_mv)

    def _plan_mv_file(self, path1: str, path2: str) -> Plan[None]:
        """Copies an object, and then deletes it.

        Raises:
            ValueError: both are the same object.
        """
        yield from self._plan_move([(self._object(path1), self._target(path2))], {})

    mv_file, _mv_file = both(_plan_mv_file)

    def _plan_move(
        self, places: Sequence[tuple[Place, Place]], given: Mapping[str, Any]
    ) -> Plan[None]:
        """Moves each source to its target."""
        sources = {source[:2] for source, _ in places}
        targets = {target[:2] for _, target in places}
        for target in sorted(targets & sources):
            raise ValueError(f"s3://{target[0]}/{target[1]} is moved, and can't be moved onto")
        if len(targets) < len(places):
            raise ValueError("several objects can't be moved onto one: name a target for each")
        raise_first((yield from self._plan_copies(places, given, confirm=True)))
        if places:
            yield from self._plan_delete([source for source, _ in places])

    def _plan_moves(self, path1: str, path2: str) -> Plan[list[tuple[Place, Place]]]:
        """Which keys go where when a directory or a bucket is moved: all below it, those that
        stand for directories too, and unless the path ends in a slash the object of its own
        name."""
        source, target = self._place(path1), self._place(path2)
        if not target.bucket or target.version_id:
            raise ValueError(f"{path2!r} is nothing to be moved to")
        base = source.key.rstrip("/")
        into = trailing_sep(path2) or (yield from self._plan_isdir(path2))
        root = target.key.rstrip("/")
        if into and base and not trailing_sep(path1):
            root = "/".join(filter(None, (root, base.rpartition("/")[2])))
        if source.bucket == target.bucket and f"{root}/".startswith(f"{base}/" if base else ""):
            raise ValueError(f"{path1} can't be moved into itself")
        places: list[tuple[Place, Place]] = []
        for found in (yield from self._plan_below(path1, source, None)):
            if found.key == base:
                if trailing_sep(path1):
                    continue  # what is in the directory is meant, and this is beside it
                key = root
            else:
                rest = found.key[len(base) + 1 :] if base else found.key
                key = f"{root}/{rest}" if root else rest
            if key:  # what stands for the directory itself has no place at the top of a bucket
                places.append((found, Place(target.bucket, key)))
        if not places:
            raise FileNotFoundError(f"nothing is there of {path1}")
        return places

    # ------------------------------------------------------------------ what describes them

    def _plan_metadata(
        self, path: str, refresh: bool = False, **kwargs: Any
    ) -> Plan[dict[str, str]]:
        """The metadata that an object was written with, by lower-case names without
        ``x-amz-meta-``."""
        place = self._object(path, said_version(kwargs))
        return dict((yield from self._plan_head(place))["Metadata"])

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
        options = self.options.copying(
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
        place = self._object(path, said_version(kwargs))
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
        if "ResponseContentType" in kwargs:
            options["content_type"] = kwargs.pop("ResponseContentType")
        response = {
            header: kwargs.pop(name) for name, header in _RESPONSE.items() if name in kwargs
        }
        if response:
            options["response"] = response
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


def _source_is_gone(outcome: Any) -> bool:
    """Whether a copy failed because its source is not there; a missing bucket is another
    thing."""
    code = getattr(outcome, "code", None)
    return isinstance(outcome, FileNotFoundError) and code != "NoSuchBucket"
