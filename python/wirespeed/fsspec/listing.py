"""What is there: info, ls, find, glob, du, walk, and what paths stand for.

A directory is what keys have in common up to a slash; there is none without a key in it, but for
one that a key ending in a slash stands for. A tree is one listing without a delimiter, whatever
its depth: `find`, `glob` and `du` are one call into the engine, and entries are made of what
matched only. One level (``maxdepth=1``, ``glob("dir/*.csv")``, `ls`) is one listing with a
delimiter.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false, reportAssignmentType=false

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from glob import has_magic
from typing import Any

from fsspec.spec import AbstractFileSystem
from fsspec.utils import glob_translate, tokenize

from . import info as describe
from .core import Core, Place, said_version
from .info import Info
from .path_lists import each_path
from .steps import Call, Plan, Together, both

_FILE: Info = {"type": "file"}
_DIRECTORY: Info = {"type": "directory"}


class Tree:
    """What a listing without a delimiter found below a directory, its entries not made yet."""

    __slots__ = ("_base", "_bucket", "_page", "_versions", "directories", "files")

    def __init__(self, bucket: str, base: str, page: Any, *, versions: bool) -> None:
        self._bucket, self._base, self._page, self._versions = bucket, base, page, versions
        self.files: dict[str, int] = {}
        """Paths of objects, each with its place in the page."""
        self.directories: set[str] = set()
        """Paths of directories below the one listed."""
        keys = page.keys()
        current: list[bool] | None = None
        if versions:
            current = [one.is_latest and not one.is_delete_marker for one in page]
        root = f"{bucket}/{base}".rstrip("/")
        for place, key in enumerate(keys):
            if current is not None and not current[place]:
                continue
            path = f"{bucket}/{key}"
            if not path.endswith("/"):
                self.files[path] = place
            parent = path.rpartition("/")[0]
            while len(parent) > len(root) and parent not in self.directories:
                self.directories.add(parent)
                parent = parent.rpartition("/")[0]

    def __bool__(self) -> bool:
        return bool(self.files or self.directories)

    def info(self, path: str) -> Info:
        """The entry of one of its paths."""
        place = self.files.get(path)
        if place is None:
            return describe.of_directory(path)
        return describe.of_listed(path, self._page[place], versions=self._versions)

    def kind(self, path: str) -> Info:
        """Of an entry its type alone."""
        return _FILE if path in self.files else _DIRECTORY

    def sizes(self) -> dict[str, int]:
        """Bytes of each object."""
        sizes = self._page.sizes()
        return {path: sizes[place] for path, place in self.files.items()}

    def paths(self, maxdepth: int | None, *, withdirs: bool) -> list[str]:
        """Its paths, sorted, at most so many levels below the directory listed."""
        found = [*self.files, *(self.directories if withdirs else ())]
        if maxdepth is not None:
            start = len(f"{self._bucket}/{self._base}")
            found = [path for path in found if path.count("/", start) < maxdepth]
        return sorted(found)


class Listing(Core):
    """The operations that look and change nothing."""

    # ------------------------------------------------------------------ listings

    def _list(
        self, bucket: str, prefix: str, *, versions: bool = False, **how: Any
    ) -> Callable[[Any], Any]:
        """What makes the listing, given a client."""
        access = self.options.access()
        return lambda client: client.list(prefix, bucket=bucket, versions=versions, **access, **how)

    def _plan_tree(self, bucket: str, base: str, stem: str = "") -> Plan[Tree]:
        """All below ``base``, which is empty or ends in a slash, whose rest begins with
        ``stem``."""
        listing = self._list(bucket, base + stem, versions=self.version_aware)
        page = yield Call(lambda client: listing(client).table())
        self._buckets.add(bucket)
        return Tree(bucket, base, page, versions=self.version_aware)

    def _plan_level(
        self, bucket: str, base: str, stem: str = "", *, versions: bool = False
    ) -> Plan[list[Info]]:
        """One level below ``base``, sorted by name."""
        listing = self._list(
            bucket, base + stem, delimiter="/", versions=versions or self.version_aware
        )
        page = yield Call(lambda client: listing(client).table())
        self._buckets.add(bucket)
        entries = [describe.of_directory(f"{bucket}/{p[:-1]}") for p in page.prefixes if p != "/"]
        for listed in page:
            if listed.key == base or listed.key.endswith("/"):
                continue  # it stands for the directory itself
            if self.version_aware and (
                listed.is_delete_marker or not (versions or listed.is_latest)
            ):
                continue
            path = f"{bucket}/{listed.key}"
            entry = describe.of_listed(path, listed, versions=self.version_aware)
            if versions and listed.version_id not in (None, "null"):
                entry["name"] = f"{path}?versionId={listed.version_id}"
            entries.append(entry)
        return sorted(entries, key=lambda entry: entry["name"])

    def _plan_any(self, bucket: str, prefix: str) -> Plan[bool]:
        """Whether any key begins so. One request; finding out that there is no bucket is an
        error."""
        listing = self._list(bucket, prefix, page_size=1)
        page = yield Call(lambda client: listing(client).first_page())
        self._buckets.add(bucket)
        return len(page) > 0

    def _plan_list_buckets(self, refresh: bool = False) -> Plan[list[Info]]:
        known = None if refresh else self._known("")
        if known is not None:
            return known
        since = self._writes
        found = yield Call(lambda client: client.list_buckets())
        entries = sorted((describe.of_bucket(one) for one in found), key=lambda one: one["name"])
        self._remember("", entries, since)
        return entries

    def _plan_entries(self, path: str, refresh: bool, versions: bool) -> Plan[list[Info]]:
        if not path:
            return (yield from self._plan_list_buckets(refresh))
        place = self._place(path)
        known = None if refresh or versions else self._known(path)
        if known is not None:
            return known
        since = self._writes
        base = f"{place.key}/" if place.key else ""
        entries = yield from self._plan_level(place.bucket, base, versions=versions)
        if entries or not place.key:
            if not versions:
                self._remember(path, entries, since)
            return entries
        try:
            return [(yield from self._plan_head(place))]
        except FileNotFoundError:
            # A key that stands for the directory, and nothing in it.
            if (yield from self._plan_any(place.bucket, base)):
                return []
            raise

    def _plan_ls(
        self,
        path: str,
        detail: bool = True,
        refresh: bool = False,
        versions: bool = False,
        **kwargs: Any,
    ) -> Plan[Any]:
        """What is in a directory; the object itself where the path is one; buckets at the root.

        ``refresh=True`` asks the server even if the listing is in the cache; ``versions=True``
        (needs ``version_aware``) lists all versions, each with ``?versionId=`` in its name.

        Raises:
            FileNotFoundError: there is nothing of that name.
        """
        if versions and not self.version_aware:
            raise ValueError("versions need a file system made with version_aware=True")
        path = self._strip_protocol(path)
        entries = yield from self._plan_entries(path, refresh, versions)
        return list(entries) if detail else sorted(entry["name"] for entry in entries)

    ls, _ls = both(_plan_ls)

    # ------------------------------------------------------------------ one entry

    def _reading_of(self, version_id: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
        """Keywords of a verb that reads this version."""
        said = {} if version_id is None else {"version_id": version_id}
        return self.options.reading({**given, **said})

    def _plan_head(self, place: Place, given: Mapping[str, Any] | None = None) -> Plan[Info]:
        options = self._reading_of(place.version_id, given or {})
        found = yield Call(lambda client: client.head(place.key, bucket=place.bucket, **options))
        self._buckets.add(place.bucket)
        return describe.of_object(place.path, found)

    def _plan_info(
        self, path: str, refresh: bool = False, version_id: str | None = None, **kwargs: Any
    ) -> Plan[Info]:
        """What is known of an object, a directory or a bucket (see the module `info`).

        A HEAD, unless a listing in the cache has it; where there is no object, a listing of one
        key tells whether it is a directory. ``refresh=True`` always asks.

        Raises:
            FileNotFoundError: there is nothing of that name.
        """
        path = self._strip_protocol(path)
        if not path:
            return describe.of_directory(path)
        place = self._place(path, said_version(kwargs, version_id))
        if not refresh and place.key:
            known = self._in_cache(place.path)
            if known is not None and place.version_id in (None, known.get("VersionId")):
                return dict(known)
        if not place.key:
            yield from self._plan_any(place.bucket, "")
            return describe.of_directory(place.bucket)
        try:
            return (yield from self._plan_head(place))
        except FileNotFoundError:
            if place.version_id or not (yield from self._plan_any(place.bucket, place.key + "/")):
                raise FileNotFoundError(f"there is no object and no directory {path}") from None
            return describe.of_directory(place.path)

    info, _info = both(_plan_info)

    def _plan_exists(self, path: str, refresh: bool = False, **kwargs: Any) -> Plan[bool]:
        """Whether there is an object, a directory or a bucket of that name. That there is none is
        never answered from the cache."""
        try:
            yield from self._plan_info(path, refresh=refresh, **kwargs)
        except FileNotFoundError:
            return False
        return True

    exists, _exists = both(_plan_exists)

    def _plan_isfile(self, path: str, **kwargs: Any) -> Plan[bool]:
        """Whether there is an object of that name: one HEAD, or none."""
        path = self._strip_protocol(path)
        place = self._place(path, said_version(kwargs))
        if not place.key:
            return False
        known = self._in_cache(place.path)
        if known is not None and place.version_id in (None, known.get("VersionId")):
            return known["type"] == "file"
        try:
            yield from self._plan_head(place)
        except FileNotFoundError:
            return False
        return True

    isfile, _isfile = both(_plan_isfile)

    def _plan_isdir(self, path: str, **kwargs: Any) -> Plan[bool]:
        """Whether there is a bucket, or any key below that name: one listing of one key, or
        none."""
        path = self._strip_protocol(path)
        if not path:
            return True
        place = self._place(path)
        if place.version_id:
            return False
        if place.key:
            listed = self._known(path)
            if listed:
                return any(entry["name"] != path for entry in listed)
            known = self._in_cache(path)
            if known is not None:
                return known["type"] == "directory"
        try:
            found = yield from self._plan_any(place.bucket, f"{place.key}/" if place.key else "")
        except FileNotFoundError:
            return False
        return found or not place.key

    isdir, _isdir = both(_plan_isdir)

    def _plan_size(self, path: str) -> Plan[int]:
        """Bytes of an object; 0 of a directory."""
        return (yield from self._plan_info(path))["size"]

    size, _size = both(_plan_size)

    def _plan_sizes(self, paths: list[str], batch_size: int | None = None) -> Plan[list[int]]:
        """Bytes of each object."""
        places = [self._object(path) for path in paths]
        asked: list[Any] = []
        for place in places:
            options = self.options.reading({"version_id": place.version_id})
            asked.append(
                Call(
                    lambda client, at=place, how=options: client.head(
                        at.key, bucket=at.bucket, **how
                    )
                )
            )
        found: list[Any] = yield Together(asked)
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return [one.size for one in found]

    sizes, _sizes = both(_plan_sizes)

    def _plan_checksum(self, path: str, refresh: bool = False) -> Plan[int]:
        """A number that changes with the object: of its ETag."""
        info = yield from self._plan_info(path, refresh=refresh)
        digits = info.get("ETag", "").strip('"').partition("-")[0]
        if info["type"] == "file" and re.fullmatch(r"[0-9a-fA-F]+", digits):
            return int(digits, 16)
        return int(tokenize(info), 16)

    checksum, _checksum = both(_plan_checksum)

    def _plan_modified(
        self, path: str, version_id: str | None = None, refresh: bool = False
    ) -> Plan[Any]:
        """When the object was written, as an aware datetime."""
        info = yield from self._plan_info(path, version_id=version_id, refresh=refresh)
        if info["type"] != "file":
            raise IsADirectoryError(f"{path} is a directory, which has no time of modification")
        return info["LastModified"]

    modified, _modified = both(_plan_modified)

    def _plan_created(self, path: str) -> Plan[Any]:
        """When the object was written (objects are never changed, only replaced), or the bucket
        created."""
        place = self._place(path)
        if place.bucket and not place.key:
            for entry in (yield from self._plan_list_buckets()):
                if entry["name"] == place.bucket:
                    return entry["CreationDate"]
        return (yield from self._plan_modified(path))

    created, _created = both(_plan_created)

    def _plan_object_version_info(self, path: str, **kwargs: Any) -> Plan[list[Info]]:
        """All versions of an object, the newest first: Key, VersionId, IsLatest, Size, ETag,
        LastModified, StorageClass of each. Delete markers are left out."""
        if not self.version_aware:
            raise ValueError("versions need a file system made with version_aware=True")
        place = self._object(path)
        listing = self._list(place.bucket, place.key, versions=True)
        page = yield Call(lambda client: listing(client).table())
        return [
            describe.of_listed(place.path, listed, versions=True)
            for listed in page
            if listed.key == place.key and not listed.is_delete_marker
        ]

    object_version_info, _object_version_info = both(_plan_object_version_info)

    # ------------------------------------------------------------------ trees

    def _plan_find_entries(
        self, path: str, maxdepth: int | None, withdirs: bool, prefix: str, detail: bool
    ) -> Plan[dict[str, Info]]:
        """By path; with ``detail=False`` the entries may have their type only."""
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        if not path:
            if maxdepth != 1:
                raise ValueError("looking through all buckets is not supported: name one")
            buckets = yield from self._plan_list_buckets()
            names = [one for one in buckets if withdirs and one["name"].startswith(prefix)]
            return {one["name"]: one for one in names}
        place = self._place(path)
        if place.version_id:
            return {path: (yield from self._plan_info(path))}
        base = f"{place.key}/" if place.key else ""
        since = self._writes
        if maxdepth == 1:
            level = yield from self._plan_level(place.bucket, base, prefix)
            if not prefix:
                self._remember(path, level, since)
            found = {one["name"]: one for one in level if withdirs or one["type"] == "file"}
            anything = bool(level)
        else:
            tree = yield from self._plan_tree(place.bucket, base, prefix)
            paths = tree.paths(maxdepth, withdirs=withdirs)
            found = {one: tree.info(one) if detail else tree.kind(one) for one in paths}
            anything = bool(tree)
            if detail and maxdepth is None and not prefix:
                self._keep(path, tree, found, since)
        if not prefix:
            if anything and withdirs:
                return {path: describe.of_directory(path), **found}
            if not anything and place.key:
                try:
                    entry = yield from self._plan_info(path, refresh=True)
                except FileNotFoundError:
                    return {}
                return {path: entry} if withdirs or entry["type"] == "file" else {}
        return found

    def _keep(self, path: str, tree: Tree, found: dict[str, Info], since: int) -> None:
        """Puts a whole tree into the cache, as listings of each directory in it."""
        if not self.dircache.use_listings_cache:
            return
        levels: dict[str, list[Info]] = {path: []}
        for directory in tree.directories:
            levels[directory] = []
        for directory in tree.directories:
            levels[directory.rpartition("/")[0]].append(describe.of_directory(directory))
        for name in tree.files:
            levels[name.rpartition("/")[0]].append(found[name])
        for name, level in levels.items():
            self._remember(name, sorted(level, key=lambda entry: entry["name"]), since)

    def _plan_find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        prefix: str | None = "",
        **kwargs: Any,
    ) -> Plan[Any]:
        """All objects below a path, sorted; the object itself where the path is one.

        ``withdirs`` adds the directories, the path's own too. ``prefix`` is what the rest of the
        path must begin with, which the server sees to. One call into the engine; always asked of
        the server.
        """
        path = self._strip_protocol(path)
        found = yield from self._plan_find_entries(path, maxdepth, withdirs, prefix or "", detail)
        return found if detail else list(found)

    find, _find = both(_plan_find)

    def _plan_du(
        self,
        path: str,
        total: bool = True,
        maxdepth: int | None = None,
        withdirs: bool = False,
        **kwargs: Any,
    ) -> Plan[Any]:
        """Bytes of all objects below a path, or with ``total=False`` of each by its path. One
        call."""
        path = self._strip_protocol(path)
        place = self._place(path)
        if maxdepth is None and not withdirs and place.bucket and not place.version_id:
            tree = yield from self._plan_tree(place.bucket, f"{place.key}/" if place.key else "")
            if tree or not place.key:
                sizes = tree.sizes()
                return sum(sizes.values()) if total else sizes
        found = yield from self._plan_find_entries(path, maxdepth, withdirs, "", True)
        sizes = {name: entry["size"] for name, entry in found.items()}
        return sum(sizes.values()) if total else sizes

    du, _du = both(_plan_du)

    def _plan_glob(self, path: str, maxdepth: int | None = None, **kwargs: Any) -> Plan[Any]:
        """Paths that match a pattern (``*``, ``?``, ``[...]``, ``**``), sorted. One call.

        What stands before the first magic character is left to the server.
        """
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        detail = kwargs.pop("detail", False)
        withdirs = kwargs.pop("withdirs", True)
        only_directories = path.endswith("/")
        path = self._strip_protocol(path)
        if not self._has_magic(path):
            try:
                found = {path: (yield from self._plan_info(path))}
            except FileNotFoundError:
                found = {}
            return found if detail else list(found)
        fixed = re.split(r"[*?\[]", path, maxsplit=1)[0]
        root, _, stem = fixed.rpartition("/")
        depth = path.count("/", len(root) + 1 if root else 0) + 1
        if "**" in path:
            if maxdepth is None:
                depth = None
            else:
                depth += maxdepth - (path[path.find("**") :].count("/") + 1)
        found = yield from self._plan_find_entries(root, depth, withdirs, stem, detail)
        pattern = re.compile(glob_translate(path + ("/" if only_directories else "")))
        slash = only_directories or path.endswith("/**")
        matched: dict[str, Info] = {}
        for name, entry in found.items():
            directory = slash and entry["type"] == "directory"
            if pattern.match(name + "/" if directory else name):
                matched[name] = entry
        return matched if detail else list(matched)

    glob, _glob = both(_plan_glob)

    def _has_magic(self, path: str) -> bool:
        return has_magic(self._place(path).path)

    # ------------------------------------------------------------------ what paths stand for

    def _plan_expand(
        self,
        path: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        assume_literal: bool = False,
    ) -> Plan[dict[str, Info | None]]:
        """The paths that a path, a pattern or a list of them stand for, sorted; the entry of each
        where it became known.

        Raises:
            FileNotFoundError: they stand for nothing.
        """
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        given = [self._strip_protocol(one) for one in each_path(path)]
        out: dict[str, Info | None] = {}
        for one in given:
            if not assume_literal and self._has_magic(one):
                matched: dict[str, Info] = yield from self._plan_glob(
                    one, maxdepth=maxdepth, detail=True
                )
                out |= matched
                if recursive and (maxdepth is None or maxdepth > 1):
                    for name, entry in matched.items():
                        if entry["type"] == "directory":
                            deeper = None if maxdepth is None else maxdepth - 1
                            out |= yield from self._plan_find_entries(name, deeper, True, "", True)
                continue
            if recursive:
                out |= yield from self._plan_find_entries(one, maxdepth, True, "", True)
            elif one not in out:
                out[one] = None
        if not out:
            raise FileNotFoundError(f"nothing is there of {path}")
        return dict(sorted(out.items()))

    def _plan_expand_path(
        self,
        path: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        assume_literal: bool = False,
        **kwargs: Any,
    ) -> Plan[list[str]]:
        """The paths that a path, a pattern or a list of them stand for, sorted."""
        return list((yield from self._plan_expand(path, recursive, maxdepth, assume_literal)))

    expand_path, _expand_path = both(_plan_expand_path)

    def walk(self, path: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """As `os.walk`: one listing for each directory that is come to."""
        return AbstractFileSystem.walk(self, path, *args, **kwargs)

    def _walk(self, path: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        return super()._walk(path, *args, **kwargs)
