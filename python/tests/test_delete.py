"""Deleting: one object, one version, many at once."""

from __future__ import annotations

import endpoints
import pytest

import wirespeed


def keys_in(s3, bucket):
    return [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


@pytest.mark.every_store
def test_an_object_is_gone_and_may_be_gone_already(verbs, bucket, s3):
    s3.put_object(Bucket=bucket, Key="a+b %2F", Body=b"x")
    deleted = verbs.delete(f"s3://{bucket}/a+b %2F")
    assert (deleted.delete_marker, deleted.version_id) == (False, None)
    assert keys_in(s3, bucket) == []
    verbs.delete("a+b %2F", bucket=bucket)


def test_a_version_is_deleted_for_good_and_the_object_behind_a_marker(verbs, versioned_bucket, s3):
    at = {"Bucket": versioned_bucket, "Key": "k"}
    first = s3.put_object(**at, Body=b"1")["VersionId"]
    s3.put_object(**at, Body=b"2")
    marker = verbs.delete("k", bucket=versioned_bucket)
    assert marker.delete_marker
    assert marker.version_id
    gone = verbs.delete("k", bucket=versioned_bucket, version_id=first)
    assert (gone.delete_marker, gone.version_id) == (False, first)
    back = verbs.delete("k", bucket=versioned_bucket, version_id=marker.version_id)
    assert back.delete_marker
    assert s3.get_object(**at)["Body"].read() == b"2"
    assert repr(gone) == f"<wirespeed.DeleteResult delete_marker=False version_id={first}>"


def test_a_condition_keeps_what_has_changed(verbs, bucket, s3):
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"1")["ETag"]
    with pytest.raises(wirespeed.PreconditionError):
        verbs.delete("k", bucket=bucket, if_match='"another"')
    assert keys_in(s3, bucket) == ["k"]
    verbs.delete("k", bucket=bucket, if_match=etag)
    assert keys_in(s3, bucket) == []


@pytest.mark.every_store
def test_many_are_deleted_in_any_buckets(verbs, new_bucket, s3):
    buckets = [new_bucket(), new_bucket()]
    for name in buckets:
        for number in range(5):
            s3.put_object(Bucket=name, Key=f"k/{number}&<", Body=b"x")
    items = [f"s3://{name}/k/{number}&<" for number in range(4) for name in buckets]
    assert verbs.delete_many(iter(items)) == []
    assert [keys_in(s3, name) for name in buckets] == [["k/4&<"], ["k/4&<"]]
    assert verbs.delete_many(["k/4&<", "not there"], bucket=buckets[0]) == []
    assert keys_in(s3, buckets[0]) == []


def test_a_thousand_go_with_one_request(verbs, bucket, s3, stats):
    keys = [f"{number:04}" for number in range(2500)]
    for key in keys[::100]:
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    before = stats()["requests"]
    assert verbs.delete_many(keys, bucket=bucket) == []
    after = stats()["requests"]
    sent = {verb: count - before.get(verb, 0) for verb, count in after.items()}
    assert {verb: count for verb, count in sent.items() if count} == {"delete-many": 3}
    assert keys_in(s3, bucket) == []


def test_versions_are_named_beside_keys(verbs, versioned_bucket, s3):
    at = {"Bucket": versioned_bucket, "Key": "k"}
    first = s3.put_object(**at, Body=b"1")["VersionId"]
    second = s3.put_object(**at, Body=b"2")["VersionId"]
    s3.put_object(Bucket=versioned_bucket, Key="other", Body=b"3")
    uri = f"s3://{versioned_bucket}/"
    assert verbs.delete_many([(uri + "k", second), (uri + "other", None)]) == []
    found = s3.list_object_versions(Bucket=versioned_bucket)
    versions = [(one["Key"], one["VersionId"]) for one in found["Versions"]]
    assert versions[0] == ("k", first)
    assert [one["Key"] for one in found["DeleteMarkers"]] == ["other"]


def test_nothing_to_delete_sends_nothing(verbs, stats):
    before = stats()["requests_total"]
    assert verbs.delete_many([]) == []
    assert stats()["requests_total"] == before


def test_what_the_server_keeps_is_told():
    kept = (
        b"<DeleteResult><Deleted><Key>c</Key></Deleted><Error><Key>a&amp;b</Key><VersionId>v</VersionId>"
        b"<Code>AccessDenied</Code><Message>It is locked.</Message></Error></DeleteResult>"
    )
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
    with endpoints.answering(answer % (len(kept), kept)) as url:
        client = wirespeed.Client(endpoint_url=url, region="us-east-1", anonymous=True)
        (failure,) = client.delete_many([("s3://bucket/a&b", "v"), "s3://bucket/c"])
    assert (failure.bucket, failure.key, failure.version_id) == ("bucket", "a&b", "v")
    assert (failure.code, failure.message) == ("AccessDenied", "It is locked.")
    said = "<wirespeed.DeleteFailure s3://bucket/a&b: AccessDenied It is locked.>"
    assert repr(failure) == said


def test_a_bucket_that_is_not_there_is_an_error(verbs, bucket):
    missing = "there-is-none-of-this-name"
    with pytest.raises(wirespeed.NotFoundError):
        verbs.delete_many([f"s3://{bucket}/a", f"s3://{missing}/b"])
    with pytest.raises(wirespeed.NotFoundError):
        verbs.delete("b", bucket=missing)


@pytest.mark.parametrize(
    ("items", "error", "says"),
    [
        ("s3://b/k", TypeError, "not one str"),
        (3, TypeError, "not iterable"),
        ([3], TypeError, "item 0 is a str, or a tuple"),
        (["s3://b/k", b"s3://b/k"], TypeError, "item 1 .* not bytes"),
        ([("s3://b/k", "v", "more")], TypeError, "item 0"),
        ([("s3://b/k", 7)], TypeError, "item 0"),
        ([(b"s3://b/k", None)], TypeError, "decode it"),
        (["s3://b"], ValueError, "names a bucket and no object"),
        (["k"], ValueError, "no location"),
        (["s3://b/a\0b"], ValueError, "NUL"),
    ],
)
def test_what_cannot_be_deleted_is_refused_and_nothing_sent(verbs, stats, items, error, says):
    before = stats()["requests_total"]
    with pytest.raises(error, match=says):
        verbs.delete_many(items)
    assert stats()["requests_total"] == before


def test_what_an_iterable_raises_is_raised(client):
    def items():
        yield "s3://b/k"
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        client.delete_many(items())


@pytest.mark.parametrize(
    ("where", "error"),
    [("s3://b", ValueError), (b"s3://b/k", TypeError), ("s3://b/\0", ValueError)],
)
def test_a_delete_names_an_object(client, where, error):
    with pytest.raises(error):
        client.delete(where)
