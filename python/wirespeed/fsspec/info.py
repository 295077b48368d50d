"""What is known of an entry, as the dictionaries that s3fs gives.

Names are ``bucket/key``. Every entry has ``name``, ``type`` (``"file"`` or ``"directory"``),
``size`` in bytes, and s3fs's ``Key``, ``Size`` and ``StorageClass``; a file also ``ETag`` (as the
server sent it, with its quotes), ``LastModified`` (an aware datetime) and ``VersionId``; one that
was asked for by itself also ``ContentType``, ``Metadata`` and what else the server says of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from .._wirespeed import BucketInfo, ListedObject, ObjectInfo, PutResult

Info: TypeAlias = dict[str, Any]

_HEADERS = {
    "ContentEncoding": "content_encoding",
    "ContentDisposition": "content_disposition",
    "ContentLanguage": "content_language",
    "CacheControl": "cache_control",
    "Expires": "expires",
    "ServerSideEncryption": "server_side_encryption",
    "SSEKMSKeyId": "kms_key_id",
    "TagCount": "tag_count",
}


def _file(name: str, size: int) -> Info:
    return {"Key": name, "Size": size, "name": name, "size": size, "type": "file"}


def of_object(name: str, found: ObjectInfo) -> Info:
    """Of an object that was asked for by itself."""
    info = _file(name, found.size) | {
        "ETag": found.etag or "",
        "LastModified": found.last_modified,
        "StorageClass": found.storage_class or "STANDARD",
        "VersionId": found.version_id,
        "ContentType": found.content_type,
        "Metadata": found.metadata,
    }
    for name_there, ours in _HEADERS.items():
        value = getattr(found, ours)
        if value is not None:
            info[name_there] = value
    return info


def of_written(result: PutResult) -> Info:
    """Of an object that was just written, by S3's names: ``ETag``, ``VersionId`` where the bucket
    keeps versions, and the checksum that went with it (``ChecksumCRC64NVME``)."""
    info: Info = {"ETag": result.etag or ""}
    if result.version_id is not None:
        info["VersionId"] = result.version_id
    if result.checksum is not None:
        algorithm, _, value = result.checksum.partition(":")
        info[f"Checksum{algorithm}"] = value
    return info


def of_listed(name: str, listed: ListedObject, *, versions: bool = False) -> Info:
    """Of an object in a listing."""
    info = _file(name, listed.size) | {
        "ETag": listed.etag or "",
        "LastModified": listed.last_modified,
        "StorageClass": listed.storage_class or "STANDARD",
    }
    if versions:
        info["VersionId"] = listed.version_id
        info["IsLatest"] = listed.is_latest
    return info


def of_directory(name: str) -> Info:
    """Of what keys begin with, up to a slash."""
    return {
        "Key": name,
        "Size": 0,
        "name": name,
        "size": 0,
        "StorageClass": "DIRECTORY",
        "type": "directory",
    }


def of_bucket(bucket: BucketInfo) -> Info:
    """Of a bucket."""
    return of_directory(bucket.name) | {
        "StorageClass": "BUCKET",
        "CreationDate": bucket.created,
    }
