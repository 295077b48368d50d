"""Both file systems on wirespeed-origin, and the requests that reach it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import servers

from wirespeed.fsspec import S3FileSystem, WirespeedFileSystem


@pytest.fixture(params=[WirespeedFileSystem, S3FileSystem])
def kind(request: pytest.FixtureRequest) -> type[WirespeedFileSystem]:
    """Each of the two file systems."""
    return request.param


@pytest.fixture
def server(origin: servers.Server) -> servers.Server:
    """wirespeed-origin, whose requests are counted and which misbehaves where it is told to."""
    return origin


@pytest.fixture
def fs(kind: type[WirespeedFileSystem], options: dict[str, Any]) -> WirespeedFileSystem:
    """A file system that is not told of versions."""
    return kind(**options, skip_instance_cache=True)


@pytest.fixture
def aware(kind: type[WirespeedFileSystem], options: dict[str, Any]) -> WirespeedFileSystem:
    """One that knows of versions."""
    return kind(**options, version_aware=True, skip_instance_cache=True)


@pytest.fixture
def versioned(
    fs: WirespeedFileSystem, server: servers.Server, emptied: Callable[..., None]
) -> Iterator[str]:
    """A bucket that keeps versions."""
    name = f"b-{uuid.uuid4().hex[:16]}"
    fs.client.create_bucket(name)
    server.boto3().put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    yield name
    emptied(fs, name)


@pytest.fixture
def asked(stats: Callable[[], dict[str, Any]]) -> Callable[[Callable[[], Any]], Any]:
    """Calls, and returns what came of it with the requests that reached the server, by verb."""

    def call(function: Callable[[], Any]) -> tuple[Any, dict[str, int]]:
        before = stats()["requests"]
        outcome = function()
        after = stats()["requests"]
        sent = {verb: count - before.get(verb, 0) for verb, count in after.items()}
        return outcome, {verb: count for verb, count in sent.items() if count}

    return call
