"""Many objects from memory in one call."""

from __future__ import annotations

import numpy
import pytest

import wirespeed

MIB = 1 << 20


def stored(s3, bucket, key):
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read()


@pytest.mark.every_store
def test_all_are_stored_and_the_results_are_in_the_items_order(verbs, s3, bucket):
    items = [(f"s3://{bucket}/k{number}", b"%d" % number * number) for number in range(200)]
    results = verbs.put_many(items, content_type="text/x", metadata={"a": "b"})
    assert len(results) == 200
    for number in (0, 1, 57, 199):
        answer = s3.get_object(Bucket=bucket, Key=f"k{number}")
        assert answer["Body"].read() == b"%d" % number * number
        assert answer["ETag"] == results[number].etag
        assert (answer["ContentType"], answer["Metadata"]) == ("text/x", {"a": "b"})


def test_the_items_may_be_in_several_buckets_and_of_any_kind_of_bytes(verbs, s3, new_bucket):
    one, other = new_bucket(), new_bucket()
    array = numpy.arange(10_000)
    items = [
        (f"s3://{one}/a", b"a"),
        (f"s3://{other}/a", bytearray(b"other")),
        (f"s3://{one}/b", memoryview(b"xbx")[1:2]),
        (f"s3://{other}/array", array),
        (f"s3://{one}/empty", b""),
    ]
    results = verbs.put_many(iter(items))
    for (uri, data), result in zip(items, results, strict=True):
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        assert stored(s3, bucket, key) == bytes(data)
        assert s3.head_object(Bucket=bucket, Key=key)["ETag"] == result.etag


def test_small_objects_are_one_request_each_and_large_ones_go_in_parts(
    verbs, new_client, bucket, stats
):
    verbs.client = new_client(part_size=5 * MIB, multipart_threshold=5 * MIB)
    before = stats()["requests"]
    small = verbs.put_many([(f"k{number}", b"x") for number in range(100)], bucket=bucket)
    assert {result.parts for result in small} == {1}
    assert stats()["requests"]["put"] - before.get("put", 0) == 100
    (large,) = verbs.put_many([("large", bytes(11 * MIB))], bucket=bucket)
    assert large.parts == 3


def test_nothing_to_do_is_done(verbs, bucket):
    assert verbs.put_many([]) == []


def test_errors_are_returned_in_their_places(verbs, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k1", Body=b"first")
    items = [(f"s3://{bucket}/k{number}", b"new") for number in range(3)]
    items.insert(0, ("s3://no-such-bucket/k", b"new"))
    gone, new, kept, newer = verbs.put_many(items, errors="return", if_none_match="*")
    assert isinstance(gone, FileNotFoundError)
    assert isinstance(kept, wirespeed.PreconditionError)
    assert (kept.bucket, kept.key) == (bucket, "k1")
    assert isinstance(new, wirespeed.PutResult)
    assert isinstance(newer, wirespeed.PutResult)
    assert stored(s3, bucket, "k1") == b"first"


def test_the_first_error_is_raised(verbs, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k1", Body=b"first")
    with pytest.raises(wirespeed.PreconditionError) as raised:
        verbs.put_many(
            [(f"k{number}", b"new") for number in range(3)], bucket=bucket, if_none_match="*"
        )
    assert raised.value.key == "k1"


def test_progress_counts_objects(verbs, bucket):
    told = []
    verbs.put_many(
        [(f"k{number}", b"1234") for number in range(50)], bucket=bucket, progress=told.append
    )
    assert (told[-1].objects, told[-1].bytes, told[-1].expected) == (50, 200, 200)


@pytest.mark.parametrize(
    ("items", "error", "words"),
    [
        (["k"], TypeError, "item 0 is no pair"),
        ([("k", b"x"), ("k",)], TypeError, "item 1 is no pair"),
        ([("k", b"x"), ("k", "text")], TypeError, "encode"),
        ([("k", [b"x"])], TypeError, "the data of item 0 is a list"),
        ([("", b"x")], ValueError, "no object"),
        ([(b"k", b"x")], TypeError, "decode"),
        (17, TypeError, "int"),
    ],
)
def test_what_is_no_list_of_pairs_is_refused_before_anything_is_sent(
    verbs, s3, bucket, items, error, words
):
    with pytest.raises(error, match=words):
        verbs.put_many(items, bucket=bucket)
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_wrong_words_are_refused(client, bucket):
    with pytest.raises(ValueError, match='"raise" or "return"'):
        client.put_many([], errors="ignore")
    with pytest.raises(TypeError, match="did you mean if_match"):
        client.put_many([], if_mach="x")


def test_the_memory_is_let_go(client, bucket):
    data = bytearray(b"x" * 1000)
    client.put_many([("k", data)], bucket=bucket)
    data.clear()
