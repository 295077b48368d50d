"""Tags, access control and versioning: what S3 keeps beside the bytes of an object or a bucket."""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .core import Place
from .objects import raise_first
from .steps import Plan, both
from .uploads import Uploads

OBJECT_ACLS = frozenset(
    {
        "private",
        "public-read",
        "public-read-write",
        "authenticated-read",
        "aws-exec-read",
        "bucket-owner-read",
        "bucket-owner-full-control",
    }
)
BUCKET_ACLS = frozenset({"private", "public-read", "public-read-write", "authenticated-read"})


class Described(Uploads):
    """The operations on tags, ACLs and versioning."""

    def _named(self, place: Place) -> dict[str, Any]:
        named = {"Bucket": place.bucket, "Key": place.key}
        return named | ({"VersionId": place.version_id} if place.version_id else {})

    def _plan_get_tags(self, path: str) -> Plan[dict[str, str]]:
        """The tags of an object."""
        named = self._named(self._object(path))
        answer = yield from self._plan_call_s3("get_object_tagging", named)
        return {one["Key"]: one["Value"] for one in answer.get("TagSet", ())}

    get_tags, _get_tags = both(_plan_get_tags)

    def _plan_put_tags(self, path: str, tags: Mapping[str, str], mode: str = "o") -> Plan[None]:
        """Tags an object: with mode ``"o"`` in the place of its tags, with ``"m"`` beside them, a
        tag of the same name replaced."""
        if mode not in ("o", "m"):
            raise ValueError(f"mode must be 'o' (replace) or 'm' (merge), not {mode!r}")
        merged = dict(tags)
        if mode == "m":
            merged = (yield from self._plan_get_tags(path)) | merged
        tagging = {"TagSet": [{"Key": name, "Value": value} for name, value in merged.items()]}
        named = self._named(self._object(path))
        yield from self._plan_call_s3("put_object_tagging", named, Tagging=tagging)

    put_tags, _put_tags = both(_plan_put_tags)

    def _plan_chmod(
        self, path: str, acl: str, recursive: bool = False, **kwargs: Any
    ) -> Plan[None]:
        """Sets a canned ACL of an object or a bucket; with ``recursive``, of all objects below a
        path, and of the bucket where the path is one.

        Raises:
            ValueError: there is no ACL of that name; nothing is changed.
        """
        place = self._place(path)
        allowed = OBJECT_ACLS if place.key else BUCKET_ACLS
        if acl not in allowed:
            raise ValueError(f"acl must be one of {', '.join(sorted(allowed))}, not {acl!r}")
        if recursive:
            found = yield from self._plan_find_entries(
                self._strip_protocol(path), None, False, "", False
            )
            many = [self._named(self._place(one)) for one in found]
        else:
            many = [self._named(place)] if place.key else []
        given = self._beside("put_object_acl", kwargs, {"ACL": acl})
        raise_first(
            (yield from self._plan_operations("put_object_acl", [given | one for one in many]))
        )
        if not place.key:
            parameters = self._beside("put_bucket_acl", kwargs, {"ACL": acl})
            yield from self._plan_operation("put_bucket_acl", parameters | {"Bucket": place.bucket})

    chmod, _chmod = both(_plan_chmod)

    def _plan_is_bucket_versioned(self, bucket: str) -> Plan[bool]:
        """Returns whether a bucket keeps versions of objects written from now on."""
        parameters = {"Bucket": self._place(bucket).bucket}
        answer = yield from self._plan_operation("get_bucket_versioning", parameters)
        return answer.get("Status") == "Enabled"

    is_bucket_versioned, _is_bucket_versioned = both(_plan_is_bucket_versioned)

    def _plan_make_bucket_versioned(
        self, bucket: str, versioned: bool = True
    ) -> Plan[dict[str, Any]]:
        """Makes a bucket keep versions, or keep no new ones."""
        status = {"Status": "Enabled" if versioned else "Suspended"}
        parameters = {"Bucket": self._place(bucket).bucket, "VersioningConfiguration": status}
        return (yield from self._plan_operation("put_bucket_versioning", parameters))

    make_bucket_versioned, _make_bucket_versioned = both(_plan_make_bucket_versioned)
