"""The guide for users of boto3, compared with the boto3 that is installed: no argument of its
transfers is missing, and those that have a counterpart do the same."""

from __future__ import annotations

import base64
import io
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest
from boto3.s3.transfer import S3Transfer, TransferConfig
from s3transfer.manager import TransferManager

import wirespeed

GUIDE = Path(__file__).parents[2] / "docs" / "python" / "from-boto3.md"
ROW = re.compile(r"^\| (`.+?) \| (.+?) \|", re.MULTILINE)
NAME = re.compile(r"`(\w+)`")
KEYWORD = re.compile(r"`(\w+)=`")
LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
CUSTOMER_KEY = bytes(range(32))


def rows(section: str) -> dict[str, str]:
    """What the guide says of each name in the first column of a section's table."""
    text = GUIDE.read_text().partition(f"## {section}\n")[2].partition("\n## ")[0]
    found: dict[str, str] = {}
    for row in ROW.finditer(text):
        for name in NAME.findall(row.group(1)):
            assert name not in found, name
            found[name] = row.group(2)
    return found


def test_every_argument_of_a_transfer_is_in_the_guide() -> None:
    allowed = {
        *S3Transfer.ALLOWED_DOWNLOAD_ARGS,
        *S3Transfer.ALLOWED_UPLOAD_ARGS,
        *S3Transfer.ALLOWED_COPY_ARGS,
        *TransferManager.ALLOWED_DELETE_ARGS,
    }
    assert set(rows("ExtraArgs")) == allowed


def test_every_attribute_of_a_transfer_configuration_is_in_the_guide() -> None:
    attributes = {name for name in vars(TransferConfig()) if not name.startswith("_")}
    # Names of its base class that mean the same as boto3's, or that its constructor doesn't take.
    of_base = {
        "max_request_concurrency",
        "max_io_queue_size",
        "max_submission_concurrency",
        "max_request_queue_size",
        "max_submission_queue_size",
        "max_in_memory_upload_chunks",
        "max_in_memory_download_chunks",
    }
    assert set(rows("TransferConfig")) == attributes - of_base


def test_every_keyword_that_the_guide_names_is_one(client: wirespeed.Client) -> None:
    reads = {"version_id", "sse_customer_key", "request_payer", "expected_bucket_owner", "verify"}
    of_copies = {
        "source_if_match",
        "source_if_none_match",
        "source_if_modified_since",
        "source_if_unmodified_since",
        "source_sse_customer_key",
        "metadata_directive",
        "tagging_directive",
    }
    named = set(KEYWORD.findall("".join(rows("ExtraArgs").values())))
    # A keyword that is none is a TypeError; a value of the wrong kind is named.
    for keyword in named - {"verify"}:
        call = client.copy if keyword in of_copies else client.put
        if keyword == "version_id":
            call = client.head
        arguments = (
            ("s3://bucket/k", "s3://bucket/l") if call == client.copy else ("s3://bucket/k",)
        )
        if call == client.put:
            arguments += (b"",)
        with pytest.raises(Exception) as raised:  # noqa: PT011
            call(*arguments, **{keyword: object()})
        assert "there is no option" not in str(raised.value), keyword
    assert named >= reads | of_copies


# An argument of an upload, and our keyword with the value that means the same.
UPLOADS: dict[str, tuple[Any, dict[str, Any]]] = {
    "ContentType": ("text/x", {"content_type": "text/x"}),
    "ContentEncoding": ("gzip", {"content_encoding": "gzip"}),
    "ContentDisposition": ("inline", {"content_disposition": "inline"}),
    "ContentLanguage": ("en", {"content_language": "en"}),
    "CacheControl": ("no-cache", {"cache_control": "no-cache"}),
    "Expires": (LATER, {"expires": LATER}),
    "Metadata": ({"a": "b", "c": "d"}, {"metadata": {"a": "b", "c": "d"}}),
    "StorageClass": ("REDUCED_REDUNDANCY", {"storage_class": "REDUCED_REDUNDANCY"}),
    "Tagging": ("a=b&c=d%20e", {"tags": {"a": "b", "c": "d e"}}),
    "ServerSideEncryption": ("AES256", {"sse": "AES256"}),
    "ChecksumAlgorithm": ("SHA256", {"checksum": "SHA256"}),
    "WebsiteRedirectLocation": ("/other", {"website_redirect": "/other"}),
}


@pytest.mark.parametrize("name", UPLOADS)
def test_an_upload_says_the_same(
    name: str, client: wirespeed.Client, s3: Any, bucket: str, tmp_path: Path
) -> None:
    value, ours = UPLOADS[name]
    (tmp_path / "f.bin").write_bytes(b"body")
    s3.upload_file(str(tmp_path / "f.bin"), bucket, "theirs", ExtraArgs={name: value})
    client.upload(tmp_path / "f.bin", f"s3://{bucket}/ours", **ours)

    def described(key: str) -> dict[str, Any]:
        found = s3.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")
        found["Tags"] = s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]
        if name != "ChecksumAlgorithm":  # each has a default of its own
            found = {k: v for k, v in found.items() if not k.startswith("Checksum")}
        if name != "ContentType":  # ours is by the file's name
            found.pop("ContentType")
        return {k: v for k, v in found.items() if k not in ("ResponseMetadata", "LastModified")}

    assert described("ours") == described("theirs")


SENT = {
    "GrantFullControl": ('id="a"', {"grant_full_control": 'id="a"'}),
    "GrantRead": ('id="a"', {"grant_read": 'id="a"'}),
    "GrantReadACP": ('id="a"', {"grant_read_acp": 'id="a"'}),
    "GrantWriteACP": ('id="a"', {"grant_write_acp": 'id="a"'}),
    "ACL": ("private", {"acl": "private"}),
    "ObjectLockLegalHoldStatus": ("ON", {"object_lock_legal_hold": True}),
    "ObjectLockMode": ("GOVERNANCE", {"object_lock_mode": "GOVERNANCE"}),
    "ObjectLockRetainUntilDate": (LATER, {"object_lock_retain_until": LATER}),
    "SSEKMSKeyId": ("alias/a", {"sse": "aws:kms", "sse_kms_key_id": "alias/a"}),
    "SSEKMSEncryptionContext": (
        base64.b64encode(b'{"a":"b"}').decode(),
        {"sse": "aws:kms", "sse_kms_context": '{"a":"b"}'},
    ),
    "ExpectedBucketOwner": ("123456789012", {"expected_bucket_owner": "123456789012"}),
    "RequestPayer": ("requester", {"request_payer": True}),
}


class Listening(NamedTuple):
    """A server that takes whatever is put to it, and the headers of each PUT."""

    endpoint: str
    requests: list[dict[str, str]]


@pytest.fixture
def listening() -> Iterator[Listening]:
    """The server, on a port of its own."""
    requests: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            requests.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(200)
            self.send_header("ETag", '"841a2d689ad86bd1611447453c22c6fc"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Listening(f"http://127.0.0.1:{server.server_address[1]}", requests)
        server.shutdown()


@pytest.mark.parametrize("name", SENT)
def test_an_upload_sends_the_same_header(name: str, listening: Listening) -> None:
    """What the test server does not keep is compared as it is sent."""
    value, keywords = SENT[name]
    extra = {name: value} | ({"ServerSideEncryption": "aws:kms"} if "sse" in keywords else {})
    theirs = boto3.client(
        "s3",
        endpoint_url=listening.endpoint,
        region_name="us-east-1",
        aws_access_key_id="id",
        aws_secret_access_key="secret",
    )
    theirs.upload_fileobj(io.BytesIO(b"body"), "bucket", "k", ExtraArgs=extra)
    ours = wirespeed.Client(
        endpoint_url=listening.endpoint,
        region="us-east-1",
        access_key_id="id",
        secret_access_key="secret",
    )
    with ours:
        ours.put("s3://bucket/k", b"body", **keywords)
    about = ("acl", "grant-", "object-lock-", "server-side-", "expected-", "request-payer")
    sent = [
        {k: v for k, v in one.items() if k.removeprefix("x-amz-").startswith(about)}
        for one in listening.requests
    ]
    assert len(sent) == 2
    assert sent[0] == sent[1] != {}


def test_a_copy_says_the_same(client: wirespeed.Client, s3: Any, bucket: str) -> None:
    at = {"Bucket": bucket, "Key": "source"}
    etag = s3.put_object(**at, Body=b"body", ContentType="text/x", Tagging="a=b")["ETag"]
    source = f"s3://{bucket}/source"
    for name, value, ours in (
        ("CopySourceIfMatch", etag, {"source_if_match": etag}),
        ("CopySourceIfNoneMatch", '"e"', {"source_if_none_match": '"e"'}),
        ("CopySourceIfModifiedSince", LONG_AGO, {"source_if_modified_since": LONG_AGO}),
        ("CopySourceIfUnmodifiedSince", LATER, {"source_if_unmodified_since": LATER}),
        ("TaggingDirective", "REPLACE", {"tagging_directive": "REPLACE"}),
        ("MetadataDirective", "COPY", {"metadata_directive": "COPY"}),
        (
            "ContentType",
            "text/y",
            {"content_type": "text/y"},
        ),
    ):
        directive = {"MetadataDirective": "REPLACE"} if name == "ContentType" else {}
        s3.copy(at, bucket, "theirs", ExtraArgs={name: value} | directive)
        client.copy(source, f"s3://{bucket}/ours", **ours)
        found = [s3.head_object(Bucket=bucket, Key=key) for key in ("theirs", "ours")]
        tags = [s3.get_object_tagging(Bucket=bucket, Key=key) for key in ("theirs", "ours")]
        assert found[0]["ContentType"] == found[1]["ContentType"], name
        assert tags[0]["TagSet"] == tags[1]["TagSet"], name
    for refused in (
        {"source_if_match": '"e"'},
        {"source_if_none_match": etag},
        {"source_if_modified_since": LATER},
        {"source_if_unmodified_since": LONG_AGO},
    ):
        with pytest.raises(wirespeed.PreconditionError):
            client.copy(source, f"s3://{bucket}/refused", **refused)
    for wrong in ({"metadata_directive": "KEEP"}, {"tagging_directive": "copy"}):
        with pytest.raises(wirespeed.ConfigError, match="COPY"):
            client.copy(source, f"s3://{bucket}/refused", **wrong)
    assert not client.exists(f"s3://{bucket}/refused")


def test_a_copy_of_what_a_customers_key_encrypts(
    client: wirespeed.Client, s3: Any, bucket: str
) -> None:
    source, target = f"s3://{bucket}/source", f"s3://{bucket}/target"
    client.put(source, b"body", sse_customer_key=CUSTOMER_KEY)
    with pytest.raises(wirespeed.WirespeedError):
        client.copy(source, target)
    other = CUSTOMER_KEY[::-1]
    client.copy(source, target, source_sse_customer_key=CUSTOMER_KEY, sse_customer_key=other)
    assert client.get(target, sse_customer_key=other, as_bytes=True) == b"body"
    theirs = {"SSECustomerKey": other, "SSECustomerAlgorithm": "AES256"}
    out = io.BytesIO()
    s3.download_fileobj(bucket, "target", out, ExtraArgs=theirs)
    assert out.getvalue() == b"body"


def test_a_download_says_the_same(
    client: wirespeed.Client, s3: Any, versioned_bucket: str, tmp_path: Path
) -> None:
    at = {"Bucket": versioned_bucket, "Key": "k"}
    first = s3.put_object(**at, Body=b"first")["VersionId"]
    s3.put_object(**at, Body=b"second")
    s3.download_file(
        *at.values(),
        str(tmp_path / "theirs"),
        ExtraArgs={"VersionId": first, "ChecksumMode": "ENABLED"},
    )
    client.download(f"s3://{versioned_bucket}/k", tmp_path / "ours", version_id=first)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes() == b"first"


def test_a_callback_is_told_as_much(
    client: wirespeed.Client, s3: Any, bucket: str, tmp_path: Path
) -> None:
    """boto3 tells how many bytes have come since, a `Progress` how many in all."""
    (tmp_path / "f").write_bytes(bytes(9 << 20))
    told: list[int] = []
    s3.upload_file(str(tmp_path / "f"), bucket, "k", Callback=told.append)
    progress: list[wirespeed.Progress] = []
    client.upload(tmp_path / "f", f"s3://{bucket}/k", progress=progress.append)
    assert progress[-1].bytes == progress[-1].expected == sum(told) == 9 << 20
