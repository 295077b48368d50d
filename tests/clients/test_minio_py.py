"""minio-py, whose XML names every character beyond ASCII by its number."""

from __future__ import annotations

import io

import pytest
from minio import Minio
from minio.deleteobjects import DeleteObject

MIB = 1 << 20
# What another parser would make another key of stays beside each.
KEYS = [
    "a😀",
    "<&>]]>",
    "plain",
    "日本語",
    "line\nfeed",
    "quo\"te'",
    "&#65;",
    "𐀀",
]
BYSTANDERS = ["a", "<&>", "&", "A", "linefeed"]


@pytest.fixture
def client(origin) -> Minio:
    address = origin.endpoint.removeprefix("http://")
    return Minio(address, access_key=origin.access_key, secret_key=origin.secret_key, secure=False)


def test_many_are_removed_by_their_names(client, origin_bucket):
    for key in KEYS + BYSTANDERS:
        client.put_object(origin_bucket, key, io.BytesIO(b"x"), 1)
    errors = client.remove_objects(origin_bucket, [DeleteObject(key) for key in KEYS])
    assert list(errors) == []
    left = [one.object_name for one in client.list_objects(origin_bucket)]
    assert left == sorted(BYSTANDERS)


def test_a_stream_of_unknown_length(client, origin_bucket, payload):
    client.put_object(origin_bucket, "stream", io.BytesIO(payload), -1, part_size=5 * MIB)
    answer = client.get_object(origin_bucket, "stream")
    try:
        assert answer.read() == payload
    finally:
        answer.close()
        answer.release_conn()
