"""To and from local files: get and put, of one or of many in one call into the engine.

What goes where is decided by fsspec's rules, so that ``cp -r`` means the same as with its other
file systems. A file appears under its name when all of it is there. An object is written with the
content type that the name of its file suggests, unless ``ContentType`` says another.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false, reportAssignmentType=false

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from glob import has_magic
from typing import TYPE_CHECKING, Any

from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.implementations.local import LocalFileSystem, make_path_posix, trailing_sep
from fsspec.utils import isfilelike, other_paths

from ..errors import ConflictError, PreconditionError
from .core import Place, said_version
from .path_lists import is_one_path, paired
from .server import OnServer
from .steps import Call, Plan, StreamTo, both

if TYPE_CHECKING:
    from .._wirespeed import Progress


class Transfers(OnServer):
    """The operations between objects and local files."""

    def _plan_get_file(
        self,
        rpath: str,
        lpath: Any = None,
        callback: Any = DEFAULT_CALLBACK,
        outfile: Any = None,
        version_id: str | None = None,
        **kwargs: Any,
    ) -> Plan[None]:
        """Downloads an object to a file, or writes it to ``outfile`` (something with ``write``).

        ``callback`` is told the bytes.
        """
        if outfile is None and isfilelike(lpath):
            outfile, lpath = lpath, ""
        place = self._object(rpath, said_version(kwargs, version_id))
        options = self._reading_of(place.version_id, kwargs)
        report = _report(callback, "bytes")
        if outfile is not None:
            written = _Written(outfile, callback)
            yield StreamTo(
                lambda client: client.stream(place.key, bucket=place.bucket, **options), written
            )
            return
        if os.path.isdir(lpath):
            return
        target = os.fspath(lpath)
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        # A version or an ETag is of one object, and the engine takes neither for a list.
        one = "version_id" in options or "if_match" in options
        what = (place.uri, target) if one else ([(place.uri, target)],)
        yield Call(lambda client: client.download(*what, progress=report, **options))

    get_file, _get_file = both(_plan_get_file)

    def _plan_get(
        self,
        rpath: Any,
        lpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        maxdepth: int | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Plan[None]:
        """Downloads what a path, a pattern, a list or, with ``recursive``, a directory stands for.
        One call. ``callback`` is told the files, for a single one the bytes to its branch."""
        pairs = paired(rpath, lpath)
        if pairs is not None:
            pairs = [(source, os.fspath(target)) for source, target in pairs]
        else:
            lpath = os.fspath(lpath) if is_one_path(lpath) else list(lpath)
            pairs = yield from self._plan_downloads(rpath, lpath, recursive, maxdepth)
        _refuse_files_as_folders(pairs)
        version_id = said_version(kwargs)
        items: list[tuple[Place, str]] = []
        for source, target in pairs:
            if trailing_sep(source):
                os.makedirs(target, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
            items.append((self._object(source, version_id), target))
        callback.set_size(len(items))
        if len(items) == 1 or any(place.version_id for place, _ in items):
            for place, target in items:
                path = (
                    place.path
                    if place.version_id is None
                    else f"{place.path}?versionId={place.version_id}"
                )
                with callback.branched(path, target) as child:
                    yield from self._plan_get_file(path, target, callback=child, **kwargs)
                callback.relative_update(1)
        elif items:
            options = self.options.reading(kwargs)
            files = [(place.uri, target) for place, target in items]
            report = _report(callback, "objects")
            yield Call(lambda client: client.download(files, progress=report, **options))

    get, _get = both(_plan_get)

    def _plan_downloads(
        self, rpath: Any, lpath: Any, recursive: bool, maxdepth: int | None
    ) -> Plan[list[tuple[str, str]]]:
        """What is to be downloaded where; directories with a slash at their end."""
        one_given = is_one_path(rpath)
        ends_in_slash = one_given and trailing_sep(rpath)
        rpath = self._strip_protocol(rpath) if one_given else list(rpath)
        expanded = yield from self._plan_expand(rpath, recursive, maxdepth)
        sources = list(expanded)
        if one_given and (not recursive or maxdepth is not None):
            sources = []
            for name in expanded:
                if not (trailing_sep(name) or (yield from self._plan_leads_to(name, expanded))):
                    sources.append(name)
        if not sources:
            return []
        lpath = make_path_posix(lpath)
        into = isinstance(lpath, str) and (trailing_sep(lpath) or os.path.isdir(lpath))
        magic = one_given and self._has_magic(rpath)
        exists = one_given and (
            (magic and len(sources) == 1) or (not magic and into and not ends_in_slash)
        )
        targets = other_paths(sources, lpath, exists=exists, flatten=not one_given)
        if isinstance(lpath, str):
            _stay_below(lpath, targets)
        pairs: list[tuple[str, str]] = []
        for source, target in zip(sources, targets, strict=True):
            entry = expanded[source]
            directory = entry is not None and entry["type"] == "directory"
            pairs.append((source + "/" if directory else source, target))
        return pairs

    def _plan_put_file(
        self,
        lpath: Any,
        rpath: str,
        callback: Any = DEFAULT_CALLBACK,
        mode: str = "overwrite",
        **kwargs: Any,
    ) -> Plan[None]:
        """Uploads a file; with ``mode="create"`` only where there is no object.

        Keywords as of `pipe_file`. ``callback`` is told the bytes.

        Raises:
            FileExistsError: ``mode="create"``, and there is one.
        """
        source = os.fspath(lpath)
        if os.path.isdir(source):
            yield from self._plan_makedirs(rpath, exist_ok=True)
            return
        place = self._target(rpath)
        options = self.options.writing(kwargs)
        if mode == "create":
            options["if_none_match"] = "*"
        callback.set_size(os.path.getsize(source))
        report = _report(callback, "bytes")
        try:
            items = [(source, place.uri)]
            yield Call(lambda client: client.upload(items, progress=report, **options))
        except (PreconditionError, ConflictError) as error:
            if mode != "create":
                raise
            raise FileExistsError(f"there is an object {place.uri}") from error
        finally:
            self._forget([place.path])

    put_file, _put_file = both(_plan_put_file)

    def _plan_put(
        self,
        lpath: Any,
        rpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        batch_size: int | None = None,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> Plan[None]:
        """Uploads what a local path, a pattern, a list or, with ``recursive``, a directory stands
        for. One call. ``callback`` is told the files, for a single one the bytes to its
        branch."""
        pairs = paired(lpath, rpath)
        if pairs is None:
            pairs = yield from self._plan_uploads(lpath, rpath, recursive, maxdepth)
        files: list[tuple[str, Place]] = []
        for source, target in pairs:
            if not os.path.isdir(source):
                files.append((os.fspath(source), self._target(target)))
            elif not self._place(target).key:
                yield from self._plan_makedirs(target, exist_ok=True)
        callback.set_size(len(files))
        if len(files) == 1:
            source, place = files[0]
            with callback.branched(source, place.path) as child:
                yield from self._plan_put_file(source, place.path, callback=child, **kwargs)
            callback.relative_update(1)
            return
        mode = kwargs.pop("mode", "overwrite")
        options = self.options.writing(kwargs) | (
            {"if_none_match": "*"} if mode == "create" else {}
        )
        if not files:
            return
        items = [(source, place.uri) for source, place in files]
        report = _report(callback, "objects")
        try:
            yield Call(lambda client: client.upload(items, progress=report, **options))
        except (PreconditionError, ConflictError) as error:
            if mode != "create":
                raise
            raise FileExistsError("one of the objects exists; it was not overwritten") from error
        finally:
            self._forget([place.path for _, place in files])

    put, _put = both(_plan_put)

    def _plan_uploads(
        self, lpath: Any, rpath: Any, recursive: bool, maxdepth: int | None
    ) -> Plan[list[tuple[str, str]]]:
        """What is to be uploaded where."""
        local = LocalFileSystem()
        one_given = is_one_path(lpath)
        lpath = make_path_posix(lpath) if one_given else list(lpath)
        sources = local.expand_path(lpath, recursive=recursive, maxdepth=maxdepth)
        if one_given and (not recursive or maxdepth is not None):
            sources = [one for one in sources if not (trailing_sep(one) or local.isdir(one))]
        if not sources:
            return []
        into = isinstance(rpath, str) and (
            trailing_sep(rpath) or (yield from self._plan_isdir(rpath))
        )
        rpath = self._strip_protocol(rpath)
        magic = one_given and has_magic(lpath)
        exists = one_given and (
            (magic and len(sources) == 1) or (not magic and into and not trailing_sep(lpath))
        )
        targets = other_paths(sources, rpath, exists=exists, flatten=not one_given)
        return list(zip(sources, targets, strict=True))


def _stay_below(folder: str, targets: list[str]) -> None:
    """Refuses names that would lead out of the folder: keys are what their writer chose."""
    root = os.path.abspath(folder)
    for target in targets:
        if os.path.commonpath([root, os.path.abspath(target)]) != root:
            raise ValueError(f"{target!r} would be outside {folder!r}: name a file for that key")


def _refuse_files_as_folders(pairs: Sequence[tuple[str, str]]) -> None:
    """Refuses a download in which one key's file would have to be another key's folder, before
    anything is written."""
    files = {
        os.path.normpath(target): source for source, target in pairs if not trailing_sep(source)
    }
    seen: set[str] = set()
    for source, target in pairs:
        folder = os.path.dirname(os.path.normpath(target))
        while folder and folder not in seen:
            seen.add(folder)
            if folder in files:
                raise NotADirectoryError(
                    errno.ENOTDIR,
                    f"the keys {files[folder]} and {source} cannot both be downloaded: {folder} "
                    "would be a file and a folder; nothing was downloaded. Get one of them apart",
                )
            folder = os.path.dirname(folder) if os.path.dirname(folder) != folder else ""


class _Written:
    """Writes the parts of a stream to something that has ``write``, and says how far it is."""

    def __init__(self, target: Any, callback: Any) -> None:
        self._target, self._callback = target, callback

    def __call__(self, part: Any) -> None:
        rest = memoryview(part)
        while len(rest):
            written = self._target.write(rest)
            rest = rest[len(rest) if written is None else written :]
        self._callback.relative_update(len(part))


def _report(callback: Any, counted: str) -> Callable[[Progress], None] | None:
    """What tells fsspec's callback of an operation's progress: its ``bytes`` or its
    ``objects``."""
    if callback is DEFAULT_CALLBACK:
        return None
    told = 0

    def report(progress: Progress) -> None:
        nonlocal told
        now: int = getattr(progress, counted)
        if counted == "bytes" and callback.size != progress.expected and progress.expected:
            callback.set_size(progress.expected)
        if now > told:
            callback.relative_update(now - told)
            told = now

    return report
