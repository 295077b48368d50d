"""Copies within the server."""

from __future__ import annotations

import pytest

import wirespeed


@pytest.mark.every_store
def test_a_copy_is_as_its_source_in_another_bucket(verbs, new_bucket, s3):
    source, target = new_bucket(), new_bucket()
    s3.put_object(
        Bucket=source, Key="a+b %2F/ü", Body=b"x" * 1000, ContentType="text/x", Metadata={"m": "1"}
    )
    copied = verbs.copy(f"s3://{source}/a+b %2F/ü", f"s3://{target}/c d+e")
    there = s3.get_object(Bucket=target, Key="c d+e")
    assert there["Body"].read() == b"x" * 1000
    assert (there["ContentType"], there["Metadata"]) == ("text/x", {"m": "1"})
    assert (copied.etag, copied.parts, copied.version_id) == (there["ETag"], 1, None)
    assert repr(copied) == f"<wirespeed.CopyResult etag={copied.etag} parts=1>"


def test_a_copy_may_be_given_what_describes_it(verbs, bucket, s3):
    s3.put_object(Bucket=bucket, Key="a", Body=b"x", ContentType="text/x", Metadata={"m": "1"})
    here = f"s3://{bucket}/"
    verbs.copy(here + "a", here + "b", content_type="text/y", metadata={"n": "2"}, tags={"t": "3"})
    there = s3.head_object(Bucket=bucket, Key="b")
    assert (there["ContentType"], there["Metadata"]) == ("text/y", {"n": "2"})
    tags = s3.get_object_tagging(Bucket=bucket, Key="b")["TagSet"]
    assert tags == [{"Key": "t", "Value": "3"}]


def test_a_version_of_the_source_is_copied(verbs, versioned_bucket, s3):
    at = {"Bucket": versioned_bucket, "Key": "a"}
    first = s3.put_object(**at, Body=b"first")["VersionId"]
    s3.put_object(**at, Body=b"second")
    here = f"s3://{versioned_bucket}/"
    copied = verbs.copy(here + "a", here + "b", source_version_id=first)
    there = s3.get_object(Bucket=versioned_bucket, Key="b")
    assert there["Body"].read() == b"first"
    assert copied.version_id == there["VersionId"]


def test_a_condition_keeps_another_object_from_being_copied(verbs, bucket, s3):
    etag = s3.put_object(Bucket=bucket, Key="a", Body=b"x")["ETag"]
    here = f"s3://{bucket}/"
    with pytest.raises(wirespeed.PreconditionError):
        verbs.copy(here + "a", here + "b", source_if_match='"another"')
    assert not verbs.exists(here + "b")
    verbs.copy(here + "a", here + "b", source_if_match=etag)
    assert verbs.exists(here + "b")


def test_progress_is_told_of_a_copy(verbs, bucket, s3):
    s3.put_object(Bucket=bucket, Key="a", Body=b"x" * 1000)
    told = []
    verbs.copy(f"s3://{bucket}/a", f"s3://{bucket}/b", progress=told.append)
    assert told[-1].bytes == 1000


def test_what_a_progress_function_raises_is_raised(verbs, bucket, s3):
    s3.put_object(Bucket=bucket, Key="a", Body=b"x")

    def refuse(progress):
        raise LookupError("not today")

    with pytest.raises(LookupError, match="not today"):
        verbs.copy(f"s3://{bucket}/a", f"s3://{bucket}/b", progress=refuse)


@pytest.mark.every_store
def test_a_source_that_is_not_there_is_an_error(verbs, bucket):
    with pytest.raises(FileNotFoundError) as caught:
        verbs.copy(f"s3://{bucket}/a", f"s3://{bucket}/b")
    assert caught.value.operation == "copy"


@pytest.mark.parametrize(
    ("source", "target", "options", "error", "says"),
    [
        ("s3://b", "s3://b/k", {}, ValueError, "no object"),
        ("s3://b/k", "k", {}, ValueError, "no location"),
        (b"s3://b/k", "s3://b/k", {}, TypeError, "decode it"),
        ("s3://b/k", "s3://b/l", {"contenttype": "x"}, TypeError, "did you mean content_type"),
        ("s3://b/k", "s3://b/l", {"checksum": "CRC32"}, ValueError, "no checksum="),
        ("s3://b/k", "s3://b/l", {"bucket": "b"}, TypeError, "bucket"),
        ("s3://b/k", "s3://b/l", {"metadata": [1]}, TypeError, "mapping"),
    ],
)
def test_what_cannot_be_copied_is_refused(client, source, target, options, error, says):
    with pytest.raises(error, match=says):
        client.copy(source, target, **options)
