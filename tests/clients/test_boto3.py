"""boto3, with its defaults, does its ordinary work against the embedded server."""

from __future__ import annotations

import hashlib
import io

import boto3.s3.transfer
import pytest
import servers
from botocore.exceptions import ClientError

MIB = 1 << 20
# Each must come back byte for byte: these are what clients and servers trip over.
AWKWARD = [
    "a//b", "c/./d", "e/../f", "../g", "/lead", "trail/", "two  spaces", "pl+us", "per%cent",
    "%2F", "que?ry=1&x", "ha#sh", "quo\"te'", "<angle>&amp;", "b\\slash", "til~de",
    "ümläut", "日本語", "🚀/🚀", "." * 200 + "long",
]  # fmt: skip


def code_of(caught: pytest.ExceptionInfo[ClientError]) -> tuple[int, str]:
    answer = caught.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


@pytest.fixture
def s3(origin):
    return origin.boto3()


def test_a_small_object_and_its_head(s3, origin_bucket):
    put = s3.put_object(
        Bucket=origin_bucket,
        Key="k",
        Body=b"hello",
        ContentType="text/x-greeting",
        Metadata={"colour": "blue"},
    )
    head = s3.head_object(Bucket=origin_bucket, Key="k")
    got = s3.get_object(Bucket=origin_bucket, Key="k")
    assert got["Body"].read() == b"hello"
    assert head["ETag"] == got["ETag"] == put["ETag"] == f'"{hashlib.md5(b"hello").hexdigest()}"'
    assert head["ContentLength"] == 5
    assert head["ContentType"] == "text/x-greeting"
    assert head["Metadata"] == {"colour": "blue"}


def test_an_empty_object(s3, origin_bucket):
    s3.put_object(Bucket=origin_bucket, Key="empty")
    assert s3.get_object(Bucket=origin_bucket, Key="empty")["Body"].read() == b""
    with pytest.raises(ClientError) as caught:
        s3.get_object(Bucket=origin_bucket, Key="empty", Range="bytes=0-9")
    assert code_of(caught) == (416, "InvalidRange")


def test_a_multipart_upload_comes_back_whole(s3, origin_bucket, payload, tmp_path):
    parts = boto3.s3.transfer.TransferConfig(
        multipart_threshold=8 * MIB, multipart_chunksize=8 * MIB
    )
    s3.upload_fileobj(io.BytesIO(payload), origin_bucket, "big", Config=parts)
    head = s3.head_object(Bucket=origin_bucket, Key="big")
    assert head["ContentLength"] == len(payload)
    assert head["ETag"].endswith('-5"')
    s3.download_file(origin_bucket, "big", str(tmp_path / "big"), Config=parts)
    assert (tmp_path / "big").read_bytes() == payload


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("0-0", 0, 0), ("100-8388707", 100, 8388707), ("41943030-", 41943030, 41943039),
     ("-7", 41943033, 41943039), ("41943000-99999999", 41943000, 41943039)],
)  # fmt: skip
def test_a_range(s3, origin_bucket, payload, asked, first, last):
    s3.put_object(Bucket=origin_bucket, Key="big", Body=payload)
    got = s3.get_object(Bucket=origin_bucket, Key="big", Range=f"bytes={asked}")
    assert got["ContentRange"] == f"bytes {first}-{last}/{len(payload)}"
    assert got["Body"].read() == payload[first : last + 1]


def test_a_listing_with_prefix_and_delimiter(s3, origin_bucket):
    for key in ["a/1", "a/2", "a/b/3", "b/4", "c"]:
        s3.put_object(Bucket=origin_bucket, Key=key, Body=key.encode())
    top = s3.list_objects_v2(Bucket=origin_bucket, Delimiter="/")
    assert [p["Prefix"] for p in top["CommonPrefixes"]] == ["a/", "b/"]
    assert [(o["Key"], o["Size"]) for o in top["Contents"]] == [("c", 1)]
    below = s3.list_objects_v2(Bucket=origin_bucket, Delimiter="/", Prefix="a/")
    assert [p["Prefix"] for p in below["CommonPrefixes"]] == ["a/b/"]
    assert [o["Key"] for o in below["Contents"]] == ["a/1", "a/2"]
    after = s3.list_objects_v2(Bucket=origin_bucket, StartAfter="a/2")
    assert [o["Key"] for o in after["Contents"]] == ["a/b/3", "b/4", "c"]
    assert s3.list_objects_v2(Bucket=origin_bucket, Prefix="none")["KeyCount"] == 0


def test_a_listing_of_more_than_one_page_and_deleting_it(s3, origin_bucket):
    keys = [f"k{n:05}" for n in range(1050)]
    for key in keys:
        s3.put_object(Bucket=origin_bucket, Key=key, Body=b"x")
    pages = list(s3.get_paginator("list_objects_v2").paginate(Bucket=origin_bucket))
    assert [len(page["Contents"]) for page in pages] == [1000, 50]
    assert [one["Key"] for page in pages for one in page["Contents"]] == keys
    small = s3.get_paginator("list_objects_v2").paginate(
        Bucket=origin_bucket, PaginationConfig={"PageSize": 100, "MaxItems": 350}
    )
    assert [one["Key"] for page in small for one in page["Contents"]] == keys[:350]
    with pytest.raises(ClientError) as caught:
        s3.delete_bucket(Bucket=origin_bucket)
    assert code_of(caught) == (409, "BucketNotEmpty")
    for at in (0, 1000):
        batch = [{"Key": key} for key in keys[at : at + 1000]]
        done = s3.delete_objects(Bucket=origin_bucket, Delete={"Objects": batch})
        assert "Errors" not in done
        assert len(done["Deleted"]) == len(batch)
    s3.delete_bucket(Bucket=origin_bucket)
    with pytest.raises(ClientError) as caught:
        s3.list_objects_v2(Bucket=origin_bucket)
    assert code_of(caught) == (404, "NoSuchBucket")


def test_awkward_keys_survive(s3, origin_bucket):
    for key in AWKWARD:
        s3.put_object(Bucket=origin_bucket, Key=key, Body=key.encode())
    listed = s3.list_objects_v2(Bucket=origin_bucket)["Contents"]
    assert [one["Key"] for one in listed] == sorted(AWKWARD, key=str.encode)
    for key in AWKWARD:
        assert s3.get_object(Bucket=origin_bucket, Key=key)["Body"].read() == key.encode()
        s3.delete_object(Bucket=origin_bucket, Key=key)
    assert s3.list_objects_v2(Bucket=origin_bucket)["KeyCount"] == 0


def test_a_copy(s3, origin_bucket):
    s3.put_object(Bucket=origin_bucket, Key="from it", Body=b"copied", Metadata={"a": "1"})
    source = {"Bucket": origin_bucket, "Key": "from it"}
    s3.copy_object(Bucket=origin_bucket, Key="to", CopySource=source)
    got = s3.get_object(Bucket=origin_bucket, Key="to")
    assert got["Body"].read() == b"copied"
    assert got["Metadata"] == {"a": "1"}


def test_conditions(s3, origin_bucket):
    etag = s3.put_object(Bucket=origin_bucket, Key="k", Body=b"one")["ETag"]
    assert s3.get_object(Bucket=origin_bucket, Key="k", IfMatch=etag)["Body"].read() == b"one"
    with pytest.raises(ClientError) as caught:
        s3.get_object(Bucket=origin_bucket, Key="k", IfMatch='"other"')
    assert code_of(caught) == (412, "PreconditionFailed")
    with pytest.raises(ClientError) as caught:
        s3.put_object(Bucket=origin_bucket, Key="k", Body=b"two", IfNoneMatch="*")
    assert code_of(caught) == (412, "PreconditionFailed")
    assert s3.get_object(Bucket=origin_bucket, Key="k")["Body"].read() == b"one"


def test_an_upload_that_is_aborted_leaves_nothing(s3, origin_bucket):
    upload = s3.create_multipart_upload(Bucket=origin_bucket, Key="k")["UploadId"]
    part = {"Bucket": origin_bucket, "Key": "k", "UploadId": upload}
    s3.upload_part(**part, PartNumber=1, Body=b"x" * 5 * MIB)
    assert [u["Key"] for u in s3.list_multipart_uploads(Bucket=origin_bucket)["Uploads"]] == ["k"]
    s3.abort_multipart_upload(**part)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=origin_bucket)
    assert s3.list_objects_v2(Bucket=origin_bucket)["KeyCount"] == 0


def test_buckets_are_listed(s3, origin_bucket):
    assert origin_bucket in [b["Name"] for b in s3.list_buckets()["Buckets"]]
    s3.head_bucket(Bucket=origin_bucket)


def test_what_is_not_there(s3, origin_bucket):
    with pytest.raises(ClientError) as caught:
        s3.get_object(Bucket=origin_bucket, Key="none")
    assert code_of(caught) == (404, "NoSuchKey")
    with pytest.raises(ClientError) as caught:
        s3.head_object(Bucket=origin_bucket, Key="none")
    assert code_of(caught) == (404, "404")
    s3.delete_object(Bucket=origin_bucket, Key="none")


def test_a_wrong_key_is_refused(origin, origin_bucket):
    _, other = servers.new_keys()
    liar = servers.Server("liar", origin.endpoint, origin.access_key, origin.log, other)
    with pytest.raises(ClientError) as caught:
        liar.boto3().list_objects_v2(Bucket=origin_bucket)
    assert code_of(caught) == (403, "SignatureDoesNotMatch")
