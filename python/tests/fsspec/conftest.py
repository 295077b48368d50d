"""The file system against two servers: ours, and one that nobody here has written."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import servers

from wirespeed.fsspec import WirespeedFileSystem


@pytest.fixture(autouse=True)
def _instances_are_not_shared_between_tests() -> Iterator[None]:
    yield
    WirespeedFileSystem.clear_instance_cache()


@pytest.fixture(params=["origin", "versitygw"])
def server(request: pytest.FixtureRequest) -> servers.Server:
    """Each server."""
    return request.getfixturevalue(request.param)


def storage_options(server: servers.Server) -> dict[str, Any]:
    """What a user of s3fs would say."""
    return {
        "key": server.access_key,
        "secret": server.secret_key,
        "endpoint_url": server.endpoint,
        "client_kwargs": {"region_name": servers.REGION},
    }


@pytest.fixture
def options_of() -> Callable[[servers.Server], dict[str, Any]]:
    """`storage_options`, for a server that a test chooses."""
    return storage_options


@pytest.fixture
def options(server: servers.Server) -> dict[str, Any]:
    """Those of the server under test."""
    return storage_options(server)


@pytest.fixture
def fs(options: dict[str, Any]) -> WirespeedFileSystem:
    """A file system of its own."""
    return WirespeedFileSystem(**options, skip_instance_cache=True)


def remove(fs: WirespeedFileSystem, bucket: str) -> None:
    """Removes a bucket with all that a test left in it, old versions too."""
    client = fs.client
    versions = client.list("", bucket=bucket, versions=True).table()
    items = [(f"s3://{bucket}/{one.key}", one.version_id) for one in versions]
    if items:
        client.delete_many(items)
    client.delete_bucket(bucket)


@pytest.fixture
def emptied() -> Callable[[WirespeedFileSystem, str], None]:
    """`remove`, for a bucket that a test made."""
    return remove


@pytest.fixture
def bucket(fs: WirespeedFileSystem) -> Iterator[str]:
    """An empty bucket."""
    name = f"b-{uuid.uuid4().hex[:16]}"
    fs.client.create_bucket(name)
    yield name
    remove(fs, name)


class Requests:
    """How many requests and received bytes a block cost."""

    def __init__(self, fs: WirespeedFileSystem) -> None:
        self._fs = fs
        self.sent = self.received = 0

    def __enter__(self) -> Requests:
        self._before = self._fs.client.metrics()
        return self

    def __exit__(self, *_: object) -> None:
        after = self._fs.client.metrics()
        self.sent = after["requests"] - self._before["requests"]
        self.received = after["bytes_received"] - self._before["bytes_received"]


@pytest.fixture
def requests(fs: WirespeedFileSystem) -> Requests:
    """``with requests: ...`` counts what ``fs`` sends."""
    return Requests(fs)
