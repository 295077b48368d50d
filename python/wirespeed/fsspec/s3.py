"""`S3FileSystem`: the file system with s3fs's signatures, defaults and attributes.

Its contract is the public API of s3fs, down to the order of positional arguments. This module has
only what differs from `WirespeedFileSystem`: `ls` returns names, `cat_file` takes the version
second, keywords that S3 does not have are ignored with one warning each.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import itertools
import mimetypes
import os
from collections.abc import Iterator
from typing import Any

from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.mapping import FSMap

from . import info as describe
from .constructor import Constructor
from .described import BUCKET_ACLS, OBJECT_ACLS
from .info import Info
from .steps import Call, Plan, both


class S3FileSystem(Constructor):
    """S3 as a file system, in the place of s3fs's class of this name; what `take_over_s3`
    registers for ``s3://`` and ``s3a://``.

    Methods, keywords, their order and their defaults are s3fs's. ``docs/python/from-s3fs.md`` lists
    each with what differs. The settings of `wirespeed.Client` are options as well.
    """

    protocol = ("s3", "s3a")

    # ------------------------------------------------------------------ listings

    def _plan_ls(
        self,
        path: str,
        detail: bool = False,
        refresh: bool = False,
        versions: bool = False,
        **kwargs: Any,
    ) -> Plan[Any]:
        """The names in a directory, sorted; with ``detail=True`` their entries. At the root the
        buckets; an anonymous file system has none."""
        if self.anon and not self._strip_protocol(path):
            return []
        return (yield from super()._plan_ls(path, detail, refresh, versions, **kwargs))

    ls, _ls = both(_plan_ls)

    def _plan_info(
        self,
        path: str,
        bucket: str | None = None,
        key: str | None = None,
        refresh: bool = False,
        version_id: str | None = None,
        **kwargs: Any,
    ) -> Plan[Info]:
        """Describes an object, a directory or a bucket. ``bucket`` and ``key`` are ignored,
        as by s3fs."""
        return (yield from super()._plan_info(path, refresh, version_id, **kwargs))

    info, _info = both(_plan_info)

    def _plan_find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool | None = None,
        detail: bool = False,
        prefix: str | None = "",
        **kwargs: Any,
    ) -> Plan[Any]:
        """All objects below a path, sorted. ``versions=True`` lists all versions, each with
        ``?versionId=`` in its name; ``max_items`` returns only the first."""
        limit = kwargs.pop("max_items", None)
        if kwargs.pop("versions", False):
            entries = yield from self._plan_find_versions(path, prefix or "")
            found: Any = entries if detail else list(entries)
        else:
            found = yield from super()._plan_find(
                path, maxdepth or None, bool(withdirs), detail, prefix, **kwargs
            )
        if limit is None:
            return found
        return dict(itertools.islice(found.items(), limit)) if detail else found[:limit]

    find, _find = both(_plan_find)

    def _plan_find_versions(self, path: str, prefix: str) -> Plan[dict[str, Info]]:
        if not self.version_aware:
            raise ValueError("versions need a file system made with version_aware=True")
        place = self._place(self._strip_protocol(path))
        base = f"{place.key}/" if place.key else ""
        listing = self._list(place.bucket, base + prefix, versions=True)
        page = yield Call(lambda client: listing(client).table())
        found: dict[str, Info] = {}
        for listed in page:
            if listed.is_delete_marker or listed.key.endswith("/"):
                continue
            entry = describe.of_listed(f"{place.bucket}/{listed.key}", listed, versions=True)
            if listed.version_id not in (None, "", "null"):
                entry["name"] += f"?versionId={listed.version_id}"
            found[entry["name"]] = entry
        return dict(sorted(found.items()))

    def walk(self, path: Any, maxdepth: int | None = None, **kwargs: Any) -> Iterator[Any]:
        """As `os.walk`: one listing for each directory that is visited."""
        return super().walk(path, maxdepth, **kwargs)

    def _plan_object_version_info(self, path: str, **kwargs: Any) -> Plan[list[Info]]:
        """All versions of an object, the newest first, with S3's names; ``Key`` is without the
        bucket."""
        entries = yield from super()._plan_object_version_info(path, **kwargs)
        key = self._object(path).key
        return [entry | {"Key": key} for entry in entries]

    object_version_info, _object_version_info = both(_plan_object_version_info)

    # ------------------------------------------------------------------ bytes and files

    def _plan_cat_file(
        self,
        path: str,
        version_id: str | None = None,
        start: int | None = None,
        end: int | None = None,
        chunksize: int | None = None,
        max_concurrency: int | None = None,
        **kwargs: Any,
    ) -> Plan[bytes]:
        """The bytes of an object, or a range of them."""
        return (yield from super()._plan_cat_file(path, start, end, version_id, **kwargs))

    cat_file, _cat_file = both(_plan_cat_file)

    def _plan_pipe_file(
        self,
        path: str,
        data: Any = None,
        chunksize: int | None = None,
        max_concurrency: int | None = None,
        mode: str = "overwrite",
        **kwargs: Any,
    ) -> Plan[Any]:
        """Makes the bytes an object; with ``mode="create"`` only where there is none. ``value`` is
        fsspec's name of ``data``."""
        data = kwargs.pop("value", None) if data is None else data
        return (yield from super()._plan_pipe_file(path, data, mode=mode, **kwargs))

    pipe_file, _pipe_file = both(_plan_pipe_file)

    def _plan_get_file(
        self,
        rpath: str,
        lpath: Any,
        callback: Any = DEFAULT_CALLBACK,
        version_id: str | None = None,
        chunksize: int | None = None,
        max_concurrency: int | None = None,
        outfile: Any = None,
        **kwargs: Any,
    ) -> Plan[None]:
        """Downloads an object to a file."""
        plan = super()._plan_get_file(rpath, lpath, callback, outfile, version_id, **kwargs)
        return (yield from plan)

    get_file, _get_file = both(_plan_get_file)

    def _plan_put_file(
        self,
        lpath: Any,
        rpath: str,
        callback: Any = DEFAULT_CALLBACK,
        chunksize: int | None = None,
        max_concurrency: int | None = None,
        mode: str = "overwrite",
        **kwargs: Any,
    ) -> Plan[None]:
        """Uploads a file; with ``mode="create"`` only where there is no object. The content type
        is guessed from the name of the file, not the key, unless ``ContentType`` is given."""
        guessed, _ = mimetypes.guess_type(os.fspath(lpath))
        if guessed is not None and not {"ContentType", "content_type"} & kwargs.keys():
            kwargs["ContentType"] = guessed
        return (yield from super()._plan_put_file(lpath, rpath, callback, mode, **kwargs))

    put_file, _put_file = both(_plan_put_file)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        acl: str | bool = False,
        version_id: str | None = None,
        fill_cache: bool | None = None,
        cache_type: str | None = None,
        autocommit: bool = True,
        size: int | None = None,
        requester_pays: bool | None = None,
        cache_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        if acl:
            if acl not in OBJECT_ACLS:
                raise ValueError(
                    f"acl must be one of {', '.join(sorted(OBJECT_ACLS))}, not {acl!r}"
                )
            if mode != "rb":
                kwargs["ACL"] = acl
        if requester_pays is not None:
            kwargs["requester_pays"] = requester_pays
        return super()._open(
            path,
            mode,
            block_size,
            autocommit,
            cache_options,
            cache_type,
            size,
            version_id,
            **kwargs,
        )

    # ------------------------------------------------------------------ buckets and copies

    def _plan_mkdir(
        self, path: str, acl: str | bool = False, create_parents: bool = True, **kwargs: Any
    ) -> Plan[None]:
        """Creates a bucket, with a canned ACL or in another region (``region_name``)."""
        region = kwargs.pop("region_name", None)
        if acl and acl not in BUCKET_ACLS:
            raise ValueError(f"acl must be one of {', '.join(sorted(BUCKET_ACLS))}, not {acl!r}")
        if not (acl or region):
            return (yield from super()._plan_mkdir(path, create_parents, **kwargs))
        bucket = self._place(path).bucket
        if bucket and (create_parents or not self._place(path).key):
            try:
                yield from self._plan_any(bucket, "")
            except FileNotFoundError:
                yield from self._plan_create_bucket(bucket, acl, region)
                return
        yield from super()._plan_mkdir(path, create_parents, **kwargs)

    mkdir, _mkdir = both(_plan_mkdir)

    def _plan_create_bucket(self, bucket: str, acl: str | bool, region: str | None) -> Plan[None]:
        parameters: dict[str, Any] = {"Bucket": bucket, "ACL": acl or None}
        region = region or self.client.settings.get("region")
        if region and region != "us-east-1":
            parameters["CreateBucketConfiguration"] = {"LocationConstraint": region}
        yield from self._plan_operation("create_bucket", parameters)
        self._forget_buckets()
        self._forget([bucket], below=True)


def S3Map(root: str, s3: Any = None, check: bool = False, create: bool = False) -> FSMap:
    """The objects below a path as a mutable mapping of names to bytes, as s3fs's function of this
    name; of the file system made last where none is given."""
    return (s3 or S3FileSystem.current()).get_mapper(root, check=check, create=create)
