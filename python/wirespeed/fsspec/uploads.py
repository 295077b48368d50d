"""Multipart uploads that are under way or left behind, and objects made of others' parts.

S3 keeps the parts of an upload that was never completed, and charges for them, until it is aborted.
`list_multipart_uploads` shows such uploads, `clear_multipart_uploads` aborts them.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import WirespeedError
from .core import Place
from .objects import raise_first
from .operations import needed
from .options import DESCRIBES
from .requests import Requests
from .steps import Plan, both

# S3's bounds of a multipart upload.
_PART_LEAST = 5 << 20
_PART_MOST = 5 << 30
_PARTS_MOST = 10_000
# Parameters of an answer to HEAD that describe an object, and go with a copy of it.
_DESCRIBES = tuple(name for name in DESCRIBES if name != "Tagging")


class Uploads(Requests):
    """The operations on multipart uploads."""

    def _plan_list_multipart_uploads(self, bucket: str) -> Plan[list[dict[str, Any]]]:
        """All multipart uploads of a bucket that are neither complete nor aborted: ``Key``,
        ``UploadId`` and ``Initiated`` of each."""
        parameters = {"Bucket": self._place(bucket).bucket}
        out: list[dict[str, Any]] = []
        while True:
            page = yield from self._plan_operation("list_multipart_uploads", parameters)
            out += page.get("Uploads", ())
            markers = (page.get("NextKeyMarker"), page.get("NextUploadIdMarker"))
            before = (parameters.get("KeyMarker"), parameters.get("UploadIdMarker"))
            if not page.get("IsTruncated"):
                return out
            if not any(markers) or markers == before:
                raise OSError(
                    f"listing the uploads of {parameters['Bucket']} made no progress: the server "
                    "keeps returning the same page"
                )
            parameters = {"Bucket": parameters["Bucket"]}
            for name, marker in zip(("KeyMarker", "UploadIdMarker"), markers, strict=True):
                if marker:
                    parameters[name] = marker

    list_multipart_uploads, _list_multipart_uploads = both(_plan_list_multipart_uploads)

    def _plan_abort_mpu(self, bucket: str, key: str, mpu: str) -> Plan[None]:
        """Aborts a multipart upload and deletes its parts."""
        parameters = {"Bucket": bucket, "Key": key, "UploadId": mpu}
        yield from self._plan_operation("abort_multipart_upload", parameters)

    abort_mpu, _abort_mpu = both(_plan_abort_mpu)

    def _plan_clear_multipart_uploads(self, bucket: str) -> Plan[None]:
        """Aborts all multipart uploads of a bucket, those of other programs too."""
        name = self._place(bucket).bucket
        uploads = yield from self._plan_list_multipart_uploads(bucket)
        aborted = yield from self._plan_operations(
            "abort_multipart_upload",
            [{"Bucket": name, "Key": one["Key"], "UploadId": one["UploadId"]} for one in uploads],
        )
        # An upload that ended meanwhile needs no aborting.
        raise_first(one for one in aborted if not isinstance(one, FileNotFoundError))

    clear_multipart_uploads, _clear_multipart_uploads = both(_plan_clear_multipart_uploads)

    # ------------------------------------------------------------------ objects of parts

    def _plan_merge(self, path: str, filelist: Sequence[str], **kwargs: Any) -> Plan[None]:
        """Makes one object of others, in the order given, on the server. The sources stay.

        S3 needs at least 5 MiB in every source but the last. Keywords describe the new object, as
        S3 calls them (``ContentType``, ``StorageClass``, ...).

        Raises:
            FileNotFoundError: a source is missing; nothing is written.
        """
        target = self._target(path)
        if isinstance(filelist, str) or not filelist:
            raise ValueError("merge needs a list of paths, at least one")
        sources = [self._object(one) for one in filelist]
        heads = yield from self._plan_operations("head_object", [self._source(s) for s in sources])
        raise_first(heads)
        pieces: list[tuple[dict[str, Any], int, int]] = []
        for source, head in zip(sources, heads, strict=True):
            assert isinstance(head, dict)
            copied = _copied(source, head)
            size = head["ContentLength"]
            for start in range(0, size, _PART_MOST):
                pieces.append((copied, start, min(size, start + _PART_MOST)))
        if not pieces:
            yield from self._plan_pipe_file(target.path, b"", **kwargs)
            return
        try:
            yield from self._plan_assemble(target, pieces, kwargs)
        except WirespeedError as error:
            if error.code != "EntityTooSmall":
                raise
            small = next(
                (s for s, h in zip(sources[:-1], heads, strict=False) if _size(h) < _PART_LEAST),
                sources[0],
            )
            raise OSError(
                f"{target.uri} cannot be merged: every source but the last needs at least 5 MiB, "
                f"and {small.uri} has less; concatenate small objects by cat and pipe"
            ) from error

    merge, _merge = both(_plan_merge)

    def _source(self, source: Place) -> dict[str, Any]:
        parameters: dict[str, Any] = {"Bucket": source.bucket, "Key": source.key}
        if source.version_id:
            parameters["VersionId"] = source.version_id
        return self._beside("head_object", parameters)

    def _plan_assemble(
        self,
        target: Place,
        pieces: Sequence[tuple[dict[str, Any], int, int]],
        described: Mapping[str, Any],
    ) -> Plan[None]:
        """Writes an object of ranges of others, as one multipart upload; aborts it on an error."""
        if len(pieces) > _PARTS_MOST:
            raise ValueError(
                f"{target.uri} would need {len(pieces)} parts; S3 allows {_PARTS_MOST}"
            )
        where = {"Bucket": target.bucket, "Key": target.key}
        begun = yield from self._plan_operation(
            "create_multipart_upload",
            self._beside("create_multipart_upload", _without_none(described), where),
        )
        upload = where | {
            "UploadId": needed(f"create_multipart_upload {target.uri}", begun, "UploadId")
        }
        try:
            parts = yield from self._plan_operations(
                "upload_part_copy",
                [
                    self._beside(
                        "upload_part_copy",
                        upload,
                        copied,
                        {"PartNumber": number, "CopySourceRange": f"bytes={start}-{stop - 1}"},
                    )
                    for number, (copied, start, stop) in enumerate(pieces, 1)
                ],
            )
            raise_first(parts)
            numbered = [
                {
                    "PartNumber": number,
                    "ETag": needed(
                        f"upload_part_copy {target.uri}", part, "CopyPartResult", "ETag"
                    ),
                }
                for number, part in enumerate(parts, 1)
                if isinstance(part, dict)
            ]
            done = yield from self._plan_operation(
                "complete_multipart_upload", upload | {"MultipartUpload": {"Parts": numbered}}
            )
            needed(f"complete_multipart_upload {target.uri}", done, "ETag")
        except Exception:
            with contextlib.suppress(WirespeedError):
                yield from self._plan_operation("abort_multipart_upload", upload)
            raise
        finally:
            self._forget([target.path])

    def _plan_cp_file(
        self, path1: str, path2: str, preserve_etag: bool | None = None, **kwargs: Any
    ) -> Plan[None]:
        """Copies an object on the server, to another bucket too; none of its bytes come here. With
        ``preserve_etag`` it is copied by the parts that it was uploaded in, so that the copy has
        the same ETag."""
        if not preserve_etag:
            return (yield from super()._plan_cp_file(path1, path2, **kwargs))
        yield from self._plan_copy_with_etag(self._object(path1), self._target(path2), kwargs)

    cp_file, _cp_file = both(_plan_cp_file)

    def _plan_copies(
        self,
        places: Sequence[tuple[Place, Place]],
        given: Mapping[str, Any],
        confirm: bool = False,
    ) -> Plan[list[Any]]:
        kept = {name: value for name, value in given.items() if name != "preserve_etag"}
        if not given.get("preserve_etag"):
            return (yield from super()._plan_copies(places, kept, confirm))
        out: list[Any] = []
        for source, target in places:
            try:
                yield from self._plan_copy_with_etag(source, target, kept)
                if confirm:
                    yield from self._plan_confirm(source, target)
                out.append(None)
            except Exception as error:
                out.append(error)
        return out

    def _plan_confirm(self, source: Place, target: Place) -> Plan[None]:
        """Compares a copy with its source by size and ETag.

        Raises:
            OSError: they differ.
        """
        wanted, found = (yield from self._plan_head(source)), (yield from self._plan_head(target))
        if (wanted["size"], wanted["ETag"]) != (found["size"], found["ETag"]):
            raise OSError(
                f"{target.uri} differs from {source.uri} after the copy; compare the two, then "
                "copy again without preserve_etag"
            )

    def _plan_copy_with_etag(
        self, source: Place, target: Place, given: Mapping[str, Any]
    ) -> Plan[None]:
        """Copies an object so that its ETag stays: by the parts that it was uploaded in.

        Raises:
            OSError: the server does not report the parts.
        """
        asked = self._source(source)
        head = yield from self._plan_operation("head_object", asked)
        copied = _copied(source, head)
        _, _, count = head.get("ETag", "").strip('"').partition("-")
        if not count:
            where = {"Bucket": target.bucket, "Key": target.key}
            try:
                done = yield from self._plan_operation(
                    "copy_object", self._beside("copy_object", dict(given), copied, where)
                )
                needed(f"copy_object {target.uri}", done, "CopyObjectResult", "ETag")
            finally:
                self._forget([target.path])
            return
        heads = yield from self._plan_operations(
            "head_object", [asked | {"PartNumber": number} for number in range(1, int(count) + 1)]
        )
        raise_first(heads)
        pieces: list[tuple[dict[str, Any], int, int]] = []
        at = 0
        for part in heads:
            pieces.append((copied, at, at + _size(part)))
            at += _size(part)
        if at != head["ContentLength"]:
            raise OSError(
                f"{source.uri}: the server does not report the sizes of its parts, so that a copy "
                "would have another ETag; leave preserve_etag out"
            )
        described = {name: head[name] for name in _DESCRIBES if head.get(name)} | dict(given)
        yield from self._plan_assemble(target, pieces, described)


def _copied(source: Place, head: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that name the source of a copy, which must not change meanwhile."""
    where: dict[str, Any] = {"Bucket": source.bucket, "Key": source.key}
    if source.version_id:
        where["VersionId"] = source.version_id
    copied: dict[str, Any] = {"CopySource": where}
    if head.get("ETag"):
        copied["CopySourceIfMatch"] = head["ETag"]
    return copied


def _size(head: Any) -> int:
    return head["ContentLength"]


def _without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
