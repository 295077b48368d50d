"""Presigned URLs, as a client without credentials uses them."""

from __future__ import annotations

import urllib.error
import urllib.request
from urllib.parse import parse_qs, urlsplit

import pytest

import wirespeed


def send(url, method="GET", body=None, **headers):
    request = urllib.request.Request(url, data=body, method=method, headers=headers)
    with urllib.request.urlopen(request) as answer:
        return answer.headers, answer.read()


@pytest.mark.every_store
def test_a_url_reads_and_writes_and_deletes(verbs, bucket, client):
    where = f"s3://{bucket}/a+b %2F/ü?"
    send(verbs.presign(where, method="PUT"), "PUT", b"body")
    assert bytes(client.get(where)) == b"body"
    assert send(verbs.presign(where))[1] == b"body"
    headers, _ = send(verbs.presign("a+b %2F/ü?", bucket=bucket, method="HEAD"), "HEAD")
    assert headers["Content-Length"] == "4"
    send(verbs.presign(where, method="DELETE"), "DELETE")
    assert not client.exists(where)


def test_a_url_is_for_one_method_and_one_object(client, bucket):
    client.put(f"s3://{bucket}/k", b"body")
    url = client.presign(f"s3://{bucket}/k")
    for other, method in ((url.replace("/k?", "/l?"), "GET"), (url, "DELETE")):
        with pytest.raises(urllib.error.HTTPError) as caught:
            send(other, method)
        assert caught.value.code == 403


def test_the_content_type_is_demanded_of_an_upload_and_said_of_a_download(verbs, bucket):
    where = f"s3://{bucket}/k"
    upload = verbs.presign(where, method="PUT", content_type="text/x")
    with pytest.raises(urllib.error.HTTPError):
        send(upload, "PUT", b"x", **{"Content-Type": "text/y"})
    send(upload, "PUT", b"x", **{"Content-Type": "text/x"})
    assert send(verbs.presign(where))[0]["Content-Type"] == "text/x"
    said = send(verbs.presign(where, content_type="text/z"))[0]
    assert said["Content-Type"] == "text/z"


def test_a_version_is_named(verbs, versioned_bucket, s3):
    at = {"Bucket": versioned_bucket, "Key": "k"}
    first = s3.put_object(**at, Body=b"first")["VersionId"]
    s3.put_object(**at, Body=b"second")
    assert send(verbs.presign("k", bucket=versioned_bucket, version_id=first))[1] == b"first"


def test_a_url_tells_when_it_expires_and_no_secret(verbs, store, stats):
    before = stats()["requests_total"]
    url = verbs.presign("s3://bucket/k", expires_in=60)
    query = parse_qs(urlsplit(url).query)
    assert query["X-Amz-Expires"] == ["60"]
    assert parse_qs(urlsplit(verbs.presign("s3://bucket/k")).query)["X-Amz-Expires"] == ["3600"]
    assert store.secret_key not in url
    assert stats()["requests_total"] == before


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"where": "s3://bucket"}, ValueError, "no object"),
        ({"where": b"s3://bucket/k"}, TypeError, "decode it"),
        ({"where": "s3://bucket/k", "method": "POST"}, ValueError, '"GET", "PUT"'),
        ({"where": "s3://bucket/k", "method": "get"}, ValueError, '"GET", "PUT"'),
        ({"where": "s3://bucket/k", "expires_in": 0}, ValueError, "7 days"),
        ({"where": "s3://bucket/k", "expires_in": -1}, ValueError, "7 days"),
        ({"where": "s3://bucket/k", "expires_in": 604801}, ValueError, "7 days"),
        ({"where": "s3://bucket/k", "expires_in": float("nan")}, ValueError, "7 days"),
        ({"where": "s3://bucket/k", "expires_in": float("inf")}, ValueError, "7 days"),
        ({"where": "s3://bucket/k", "expires_in": "1h"}, TypeError, "expires_in"),
        (
            {"where": "s3://bucket/k", "method": "DELETE", "content_type": "text/x"},
            ValueError,
            "no content",
        ),
    ],
)
def test_what_cannot_be_presigned_is_refused(verbs, arguments, error, says):
    with pytest.raises(error, match=says):
        verbs.presign(**arguments)


def test_an_anonymous_client_signs_nothing(store):
    client = wirespeed.Client(endpoint_url=store.endpoint, region="us-east-1", anonymous=True)
    with pytest.raises(wirespeed.ConfigError):
        client.presign("s3://bucket/k")
