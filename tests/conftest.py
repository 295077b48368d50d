"""The servers that tests talk to, and the rule that holds in all of them: no secret is printed."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator

import pytest
import servers
from shell import Transcript

MIB = 1 << 20


@pytest.fixture(scope="session")
def transcript() -> Transcript:
    """All that clients printed."""
    return Transcript()


@pytest.fixture(autouse=True)
def _no_secret_is_printed(transcript: Transcript) -> Iterator[None]:
    yield
    leaks = transcript.leaks()
    assert not leaks, f"printed a secret key: {leaks}"


def _kept(server: servers.Server, transcript: Transcript) -> Iterator[servers.Server]:
    transcript.keep_secret(server.secret_key)
    yield server
    assert not transcript.leaks_in(server.log), f"{server.log} has a secret key in it"


@pytest.fixture(scope="session")
def origin_memory(tmp_path_factory, transcript) -> Iterator[servers.Server]:
    """The embedded server with its objects in memory."""
    with servers.origin(tmp_path_factory.mktemp("origin"), directory=False) as server:
        yield from _kept(server, transcript)


@pytest.fixture(scope="session")
def origin_directory(tmp_path_factory, transcript) -> Iterator[servers.Server]:
    """The embedded server with its objects in a directory."""
    with servers.origin(tmp_path_factory.mktemp("origin-dir"), directory=True) as server:
        yield from _kept(server, transcript)


@pytest.fixture(scope="session")
def versitygw(tmp_path_factory, transcript) -> Iterator[servers.Server]:
    """A real server."""
    with servers.versitygw(tmp_path_factory.mktemp("versitygw")) as server:
        yield from _kept(server, transcript)


@pytest.fixture(scope="session")
def minio(tmp_path_factory, transcript) -> Iterator[servers.Server]:
    """Another real server."""
    with servers.minio(tmp_path_factory.mktemp("minio")) as server:
        yield from _kept(server, transcript)


@pytest.fixture(scope="session")
def moto(tmp_path_factory, transcript) -> Iterator[servers.Server]:
    """A server that imitates S3 for tests."""
    with servers.moto(tmp_path_factory.mktemp("moto")) as server:
        yield from _kept(server, transcript)


@pytest.fixture(scope="session")
def rclone_server(tmp_path_factory, transcript) -> Iterator[servers.Server]:
    """A client's server."""
    with servers.rclone(tmp_path_factory.mktemp("rclone-server")) as server:
        yield from _kept(server, transcript)


@pytest.fixture(scope="session")
def s3mock(tmp_path_factory, transcript) -> Iterator[servers.Server]:
    """Another server that imitates S3 for tests, where it could be had."""
    missing = servers.S3MOCK / "missing"
    if missing.exists():
        pytest.skip(f"no S3Mock: {missing.read_text().strip()}")
    with servers.s3mock(tmp_path_factory.mktemp("s3mock")) as server:
        yield from _kept(server, transcript)


@pytest.fixture(params=["origin_memory", "origin_directory"])
def origin(request) -> servers.Server:
    """The embedded server, with each of its stores."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["origin_memory", "origin_directory", "versitygw"])
def server(request) -> servers.Server:
    """Each server."""
    return request.getfixturevalue(request.param)


def _remove_with_all_in_it(s3, name: str) -> None:
    """Removes a bucket into which a slow line may still deliver what a client had sent."""
    for _ in range(20):
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=name):
            for one in page.get("Contents", []):
                s3.delete_object(Bucket=name, Key=one["Key"])
        try:
            return s3.delete_bucket(Bucket=name)
        except s3.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != "BucketNotEmpty":
                raise
        time.sleep(0.1)
    raise AssertionError(f"{name} does not stay empty")


def fresh_bucket(server: servers.Server) -> Iterator[str]:
    """An empty bucket, made through the API and removed with all that a test left in it."""
    s3, name = server.boto3(), f"b-{uuid.uuid4().hex[:16]}"
    s3.create_bucket(Bucket=name)
    yield name
    try:
        for upload in s3.list_multipart_uploads(Bucket=name).get("Uploads", []):
            s3.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"])
        _remove_with_all_in_it(s3, name)
    except s3.exceptions.NoSuchBucket:  # the test removed it
        return


@pytest.fixture
def bucket(server) -> Iterator[str]:
    """An empty bucket on `server`."""
    yield from fresh_bucket(server)


@pytest.fixture
def origin_bucket(origin) -> Iterator[str]:
    """An empty bucket on `origin`."""
    yield from fresh_bucket(origin)


@pytest.fixture(scope="session")
def payload() -> bytes:
    """40 MiB in which no two places look alike: what a misplaced part can't hide in."""
    return random.Random(2).randbytes(40 * MIB)
