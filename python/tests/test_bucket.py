"""Buckets: made, listed, removed."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import endpoints
import pytest

import wirespeed


@pytest.mark.every_store
def test_a_bucket_is_made_listed_and_removed(verbs, s3):
    name = f"b-{uuid.uuid4().hex[:16]}"
    assert verbs.create_bucket(name) is None
    s3.head_bucket(Bucket=name)
    found = {bucket.name: bucket for bucket in verbs.list_buckets()}
    assert abs(datetime.now(UTC) - found[name].created) < timedelta(minutes=5)
    assert repr(found[name]) == f"<wirespeed.BucketInfo {name}>"
    assert verbs.delete_bucket(name) is None
    assert name not in [bucket.name for bucket in verbs.list_buckets()]


@pytest.mark.every_store
def test_buckets_are_listed_by_prefix(verbs, bucket, new_bucket):
    new_bucket()
    assert [found.name for found in verbs.list_buckets(prefix=bucket)] == [bucket]


def test_the_region_is_what_the_server_says():
    listed = (
        b"<ListAllMyBucketsResult><Buckets><Bucket><Name>one</Name>"
        b"<BucketRegion>eu-west-1</BucketRegion></Bucket><Bucket><Name>two</Name></Bucket>"
        b"</Buckets></ListAllMyBucketsResult>"
    )
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
    with endpoints.answering(answer % (len(listed), listed)) as url:
        client = wirespeed.Client(endpoint_url=url, region="us-east-1", anonymous=True)
        buckets = client.list_buckets()
    found = [(bucket.name, bucket.region, bucket.created) for bucket in buckets]
    assert found == [("one", "eu-west-1", None), ("two", None, None)]


def test_a_bucket_that_is_there_is_a_conflict(verbs, bucket):
    with pytest.raises(FileExistsError) as caught:
        verbs.create_bucket(bucket)
    assert isinstance(caught.value, wirespeed.ConflictError)
    assert caught.value.bucket == bucket


@pytest.mark.every_store
def test_a_bucket_with_something_in_it_stays(verbs, bucket, s3):
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    with pytest.raises(wirespeed.ConflictError):
        verbs.delete_bucket(bucket)
    s3.head_bucket(Bucket=bucket)


@pytest.mark.every_store
def test_a_bucket_that_is_not_there_cannot_be_removed(verbs):
    with pytest.raises(wirespeed.NotFoundError):
        verbs.delete_bucket("there-is-none-of-this-name")


@pytest.mark.parametrize("name", ["", "B", "s3://bucket", "a/b"])
def test_a_name_that_no_bucket_may_have_is_refused(verbs, name, stats):
    before = stats()["requests_total"]
    for verb in (verbs.create_bucket, verbs.delete_bucket):
        with pytest.raises(ValueError, match="bucket"):
            verb(name)
    assert stats()["requests_total"] == before


@pytest.mark.parametrize("name", [None, b"bucket", 3])
def test_a_name_is_a_str(client, name):
    for verb in (client.create_bucket, client.delete_bucket):
        with pytest.raises(TypeError, match="bucket"):
            verb(name)
    with pytest.raises(TypeError, match="prefix"):
        client.list_buckets(prefix=b"b")
