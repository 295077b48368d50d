"""S3's operations by name: requests and answers, without a server."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import botocore.parsers
import botocore.session
import pytest
from botocore.awsrequest import HeadersDict

from wirespeed.errors import ProtocolError, ServerError
from wirespeed.fsspec import operations


@dataclass
class Answer:
    """The result of `wirespeed.Client.raw`."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


LIFECYCLE = {
    "Rules": [
        {
            "ID": "x & <y>",
            "Status": "Enabled",
            "Filter": {
                "And": {
                    "Prefix": "tmp/",
                    "Tags": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}],
                }
            },
            "Transitions": [{"Days": 30, "StorageClass": "GLACIER"}],
            "Expiration": {"Date": datetime(2027, 1, 2, tzinfo=UTC)},
        },
        {"ID": "z", "Status": "Disabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}},
    ]
}
GIVEN: list[tuple[str, dict[str, Any]]] = [
    ("put_bucket_versioning", {"VersioningConfiguration": {"Status": "Enabled"}}),
    ("put_object_tagging", {"Key": "k", "Tagging": {"TagSet": [{"Key": "a", "Value": "ü"}]}}),
    ("put_bucket_lifecycle_configuration", {"LifecycleConfiguration": LIFECYCLE}),
    ("put_bucket_policy", {"Policy": '{"Version": "2012-10-17"}'}),
    (
        "put_bucket_acl",
        {
            "AccessControlPolicy": {
                "Owner": {"ID": "o"},
                "Grants": [{"Grantee": {"Type": "CanonicalUser", "ID": "i"}, "Permission": "READ"}],
            }
        },
    ),
    (
        "put_bucket_cors",
        {
            "CORSConfiguration": {
                "CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}]
            }
        },
    ),
    (
        "complete_multipart_upload",
        {
            "Key": "k",
            "UploadId": "u",
            "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": '"e"'}]},
        },
    ),
    ("delete_objects", {"Delete": {"Objects": [{"Key": "a&b"}, {"Key": "c"}], "Quiet": True}}),
    ("put_object", {"Key": "k", "Body": b"x", "Metadata": {"Some": "thing"}, "ACL": "private"}),
    (
        "head_object",
        {"Key": "k", "PartNumber": 2, "IfModifiedSince": datetime(2027, 1, 2, tzinfo=UTC)},
    ),
    ("copy_object", {"Key": "k", "CopySource": {"Bucket": "b", "Key": "a ü+", "VersionId": "v"}}),
    ("upload_part_copy", {"Key": "k", "UploadId": "u", "PartNumber": 1, "CopySource": "b/a ü+"}),
    ("get_object_attributes", {"Key": "k", "ObjectAttributes": ["ETag", "ObjectSize"]}),
    ("restore_object", {"Key": "k", "RestoreRequest": {"Days": 3}}),
    ("list_object_versions", {"Prefix": "a b"}),
]


@pytest.mark.parametrize(("name", "given"), GIVEN)
def test_a_request_is_what_boto3_sends(name: str, given: dict[str, Any]) -> None:
    session = botocore.session.get_session()
    s3 = session.create_client(
        "s3",
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        endpoint_url="http://localhost:1",
    )
    sent: dict[str, Any] = {}

    class Sent(Exception):
        pass

    def keep(request: Any, **_: Any) -> None:
        sent.update(url=request.url, headers=dict(request.headers), body=request.body or b"")
        raise Sent

    s3.meta.events.register("before-send.s3", keep)
    with pytest.raises(Sent):
        getattr(s3, name)(Bucket="b", **given)
    method, bucket, key, query, headers, body = operations.request(name, {"Bucket": "b", **given})
    path, _, theirs = sent["url"].partition("?")
    assert path == f"http://localhost:1/{bucket}" + (f"/{key}" if key else "")
    from urllib.parse import parse_qs

    assert {k: [v] for k, v in query.items()} == parse_qs(theirs, keep_blank_values=True)
    expected = {
        k.lower(): v.decode() if isinstance(v, bytes) else v for k, v in sent["headers"].items()
    }
    for header, value in headers.items():
        if header != "content-md5":  # boto3 sends a CRC in its place, where one is needed
            assert expected[header] == value, header
    meant = {k for k in expected if k.startswith(("x-amz-", "if-", "range", "content-type"))}
    added = ("x-amz-date", "x-amz-content-sha256", "x-amz-checksum", "x-amz-sdk", "x-amz-trailer")
    assert {k for k in meant if not k.startswith(added)} - {"content-type"} <= headers.keys()
    body_sent = sent["body"]
    body_sent = body_sent.read() if hasattr(body_sent, "read") else body_sent
    body_sent = body_sent.encode() if isinstance(body_sent, str) else body_sent
    if body_sent.startswith(b"<"):
        from xml.etree import ElementTree as ET

        assert ET.canonicalize(body_sent) == ET.canonicalize(body)
    elif name != "put_object":
        assert body_sent == body
    model = session.get_service_model("s3")
    operation = next(one for one in model.operation_names if botocore.xform_name(one) == name)
    needs = (model.operation_model(operation).http_checksum or {}).get("requestChecksumRequired")
    assert bool(needs) == ("content-md5" in headers)
    assert method in ("GET", "PUT", "POST", "HEAD")


ANSWERS: list[tuple[str, bytes, dict[str, str]]] = [
    (
        "list_objects_v2",
        b"<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><Name>b</Name>"
        b"<IsTruncated>true</IsTruncated><KeyCount>1</KeyCount><EncodingType>url</EncodingType>"
        b"<Contents><Key>a+b%2Bc%C3%BC</Key><Size>3</Size><ETag>&quot;e&quot;</ETag>"
        b"<LastModified>2027-01-02T03:04:05.000Z</LastModified></Contents>"
        b"<CommonPrefixes><Prefix>d%2F</Prefix></CommonPrefixes></ListBucketResult>",
        {},
    ),
    (
        "get_bucket_acl",
        b"<AccessControlPolicy><Owner><ID>o</ID></Owner><AccessControlList><Grant><Grantee "
        b"xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:type='CanonicalUser'><ID>i</ID>"
        b"</Grantee><Permission>READ</Permission></Grant></AccessControlList></AccessControlPolicy>",
        {},
    ),
    ("get_bucket_location", b"<LocationConstraint>eu-west-1</LocationConstraint>", {}),
    ("get_bucket_location", b"<LocationConstraint/>", {}),
    ("get_bucket_versioning", b"<VersioningConfiguration/>", {}),
    ("get_bucket_policy", b'{"a": 1}', {}),
    (
        "head_object",
        b"",
        {
            "content-length": "5",
            "last-modified": "Sat, 02 Jan 2027 03:04:05 GMT",
            "x-amz-meta-some": "thing",
            "x-amz-delete-marker": "true",
            "etag": '"e"',
            "x-amz-version-id": "v",
        },
    ),
    (
        "get_bucket_lifecycle_configuration",
        b"<LifecycleConfiguration><Rule><ID>x</ID><Filter><And><Prefix>p</Prefix><Tag><Key>a</Key>"
        b"<Value>1</Value></Tag><Tag><Key>b</Key><Value>2</Value></Tag></And></Filter>"
        b"<Status>Enabled</Status><Expiration><Days>3</Days></Expiration></Rule>"
        b"</LifecycleConfiguration>",
        {},
    ),
]


@pytest.mark.parametrize(("name", "body", "headers"), ANSWERS)
def test_an_answer_is_what_boto3_returns(name: str, body: bytes, headers: dict[str, str]) -> None:
    model = botocore.session.get_session().get_service_model("s3")
    shape = next(
        model.operation_model(one).output_shape
        for one in model.operation_names
        if botocore.xform_name(one) == name
    )
    expected = botocore.parsers.create_parser("rest-xml").parse(
        {"status_code": 200, "headers": HeadersDict(headers), "body": body}, shape
    )
    del expected["ResponseMetadata"]
    expected.pop("Metadata", None) if name != "head_object" else None
    found = operations.result(name, Answer(body, headers=headers), {})  # type: ignore[arg-type]
    assert found.pop("ResponseMetadata")["HTTPStatusCode"] == 200
    if name == "get_bucket_location":  # boto3 reads it by a handler of its own
        assert found["LocationConstraint"] == ("eu-west-1" if b"eu-west-1" in body else None)
        return
    if name == "list_objects_v2":  # as above: what was encoded for the way
        expected["Contents"][0]["Key"] = "a b+cü"
        expected["CommonPrefixes"][0]["Prefix"] = "d/"
    assert found == expected


@pytest.mark.parametrize(
    ("name", "body", "kind"),
    [
        ("complete_multipart_upload", b"<Error><Code>InternalError</Code></Error>", ServerError),
        ("upload_part_copy", b"<Error><Code>SlowDown</Code></Error>", ServerError),
        ("put_bucket_tagging", b"<Error><Code>InternalError</Code></Error>", ServerError),
        ("get_bucket_tagging", b"<html><p>hello", ProtocolError),
        ("get_bucket_tagging", b"hello", ProtocolError),
        ("get_bucket_tagging", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', ProtocolError),
    ],
)
def test_an_answer_that_is_no_success_is_an_error(name: str, body: bytes, kind: type) -> None:
    with pytest.raises(kind, match=f"{name} s3://b/k"):
        operations.result(name, Answer(body), {"Bucket": "b", "Key": "k"})  # type: ignore[arg-type]


def test_what_s3_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(AttributeError, match="put_bucket_versioning"):
        operations.request("put_bucket_versionin", {})
    with pytest.raises(NotImplementedError, match="boto3"):
        operations.request("select_object_content", {})
    with pytest.raises(TypeError, match="Nonsense"):
        operations.request("head_object", {"Bucket": "b", "Key": "k", "Nonsense": 1})
    with pytest.raises(TypeError, match="Key"):
        operations.request("head_object", {"Bucket": "b"})
    with pytest.raises(TypeError, match="State"):
        operations.request(
            "put_bucket_versioning", {"Bucket": "b", "VersioningConfiguration": {"State": "x"}}
        )


def test_a_customers_key_is_sent_with_its_digest() -> None:
    headers = operations.request(
        "head_object", {"Bucket": "b", "Key": "k", "SSECustomerKey": b"k" * 32}
    ).headers
    assert headers["x-amz-server-side-encryption-customer-algorithm"] == "AES256"
    assert headers["x-amz-server-side-encryption-customer-key"].startswith("a2tra2tr")
    assert headers["x-amz-server-side-encryption-customer-key-md5"]
