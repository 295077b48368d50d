"""Buckets: made, and removed when they are empty.

Directories are not made: one is there as long as a key in it is. `mkdir` of one sees that there is
its bucket, and asks for that only once.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false, reportAssignmentType=false

from __future__ import annotations

import errno
from typing import Any

from ..errors import ConflictError
from .listing import Listing
from .steps import Call, Plan, both

_NOT_EMPTY = "it is not empty; rm(path, recursive=True) deletes it with all in it"


class Buckets(Listing):
    """The operations on buckets."""

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
        except PermissionError:
            # It is there, if not to be listed; whoever may write below it finds out by writing.
            if place.key:
                return
            raise
        else:
            if place.key:
                return
            raise FileExistsError(errno.EEXIST, "there is a bucket", place.bucket)
        yield Call(lambda client: client.create_bucket(place.bucket))
        self._forget_buckets()
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
        with nothing in it is not there.

        Raises:
            OSError: something is in it (``errno.ENOTEMPTY``).
        """
        place = self._place(path)
        if place.key:
            if (yield from self._plan_exists(path, refresh=True)):
                raise FileExistsError(errno.ENOTEMPTY, _NOT_EMPTY, place.path)
            raise FileNotFoundError(errno.ENOENT, "there is no such directory", place.path)
        try:
            yield Call(lambda client: client.delete_bucket(place.bucket))
        except ConflictError as error:
            if error.code != "BucketNotEmpty":
                raise
            raise OSError(errno.ENOTEMPTY, _NOT_EMPTY, place.bucket) from error
        self._buckets.discard(place.bucket)
        self._forget_buckets()
        self._forget([place.bucket], below=True)

    rmdir, _rmdir = both(_plan_rmdir)
