"""The servers that the package is tested against, a client and a bucket on one of them, and the two
views of a client as one thing.

A test talks to wirespeed-origin, or with ``@pytest.mark.every_store`` to a real server as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import time
import urllib.request
import uuid
from collections.abc import Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import servers

import wirespeed


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "every_store: run against a real server as well")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" in metafunc.fixturenames:
        every = metafunc.definition.get_closest_marker("every_store")
        metafunc.parametrize(
            "store", ["origin", "versitygw"] if every else ["origin"], indirect=True
        )


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_this_machine() -> Iterator[None]:
    """No setting and no credentials that happen to lie about reach a test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("AWS_", "WIRESPEED_")) and name != "WIRESPEED_THREADS":
                patch.delenv(name)
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """The embedded server, its objects in memory."""
    with servers.origin(tmp_path_factory.mktemp("origin")) as server:
        yield server


@pytest.fixture(scope="session")
def versitygw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """A real server."""
    with servers.versitygw(tmp_path_factory.mktemp("versitygw")) as server:
        yield server


@pytest.fixture
def store(request: pytest.FixtureRequest) -> servers.Server:
    """The server of this test."""
    return request.getfixturevalue(request.param)


def client_of(server: servers.Server, **settings: Any) -> wirespeed.Client:
    """A client of a server."""
    return wirespeed.Client(
        endpoint_url=server.endpoint,
        region=servers.REGION,
        access_key_id=server.access_key,
        secret_access_key=server.secret_key,
        **settings,
    )


@pytest.fixture
def new_client(store: servers.Server) -> Iterator[Callable[..., wirespeed.Client]]:
    """Makes clients of `store` with settings of their own; they are closed at the end."""
    made: list[wirespeed.Client] = []

    def new(**settings: Any) -> wirespeed.Client:
        made.append(client_of(store, **settings))
        return made[-1]

    yield new
    for client in made:
        client.close()


@pytest.fixture
def client(new_client: Callable[..., wirespeed.Client]) -> wirespeed.Client:
    """A client of `store`, as its users make one."""
    return new_client()


@pytest.fixture
def environment(store: servers.Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment in which the default client finds `store`; good for children too."""
    variables = {
        "AWS_ENDPOINT_URL": store.endpoint,
        "AWS_REGION": servers.REGION,
        "AWS_ACCESS_KEY_ID": store.access_key,
        "AWS_SECRET_ACCESS_KEY": store.secret_key,
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return dict(os.environ)


@pytest.fixture
def s3(store: servers.Server) -> Any:
    """A boto3 client of `store`: another's view of what is there."""
    return store.boto3()


def _remove_with_all_in_it(s3: Any, name: str) -> None:
    for upload in s3.list_multipart_uploads(Bucket=name).get("Uploads", []):
        # One whose abortion was under way may be gone by now.
        with contextlib.suppress(s3.exceptions.NoSuchUpload):
            s3.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"])
    for _ in range(20):
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
            for one in page.get("Versions", []) + page.get("DeleteMarkers", []):
                s3.delete_object(Bucket=name, Key=one["Key"], VersionId=one["VersionId"])
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


@pytest.fixture
def new_bucket(s3: Any) -> Iterator[Callable[[], str]]:
    """Makes empty buckets on `store`; they are removed at the end with all that is in them."""
    made: list[str] = []

    def new() -> str:
        made.append(f"b-{uuid.uuid4().hex[:16]}")
        s3.create_bucket(Bucket=made[-1])
        return made[-1]

    yield new
    for name in made:
        try:
            _remove_with_all_in_it(s3, name)
        except s3.exceptions.NoSuchBucket:  # the test removed it
            continue


@pytest.fixture
def bucket(new_bucket: Callable[[], str]) -> str:
    """An empty bucket on `store`."""
    return new_bucket()


@pytest.fixture
def versioned_bucket(bucket: str, s3: Any) -> str:
    """An empty bucket on `store` that keeps versions."""
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    return bucket


@pytest.fixture
def stats(origin: servers.Server) -> Callable[[], dict[str, Any]]:
    """What `origin` has counted since it was started: requests by verb, bytes, connections."""

    def fetch() -> dict[str, Any]:
        with urllib.request.urlopen(f"{origin.endpoint}/-/stats") as answer:
            return json.load(answer)

    return fetch


class Blocking:
    """A client's verbs, and how their results are had: they are there."""

    def __init__(self, client: wirespeed.Client) -> None:
        self.client = client

    def __getattr__(self, verb: str) -> Any:
        return getattr(self.client, verb)

    def result(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """What a method of something that a verb returned gives."""
        return function(*arguments, **keywords)

    def each(self, things: Iterable[Any]) -> list[Any]:
        """All that can be iterated over."""
        return list(things)


class Awaited:
    """The awaitable view of a client, driven so that its verbs look as if they blocked."""

    def __init__(self, client: wirespeed.Client, runner: asyncio.Runner) -> None:
        self.client, self.runner = client, runner

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self.client.aio, verb)
        return lambda *arguments, **keywords: self.result(method, *arguments, **keywords)

    def result(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """What a method of something that a verb returned gives, once it is awaited."""

        async def run() -> Any:
            given = function(*arguments, **keywords)
            return await given if inspect.isawaitable(given) else given

        return self.runner.run(run())

    def each(self, things: Any) -> list[Any]:
        """All that can be iterated over."""

        async def run() -> list[Any]:
            return [thing async for thing in things]

        return self.runner.run(run())


@pytest.fixture(params=["blocking", "awaitable"])
def verbs(request: pytest.FixtureRequest, client: wirespeed.Client) -> Iterator[Blocking | Awaited]:
    """The verbs of `client` in each of the two views; calling one gives its result.

    ``verbs.each(listing)`` iterates, ``verbs.result(listing.keys)`` calls a method of what a verb
    returned.
    """
    if request.param == "blocking":
        yield Blocking(client)
    else:
        with asyncio.Runner() as runner:
            yield Awaited(client, runner)


@pytest.fixture
def misbehaving(tmp_path: Path) -> Iterator[Callable[..., tuple[wirespeed.Client, Any]]]:
    """Starts a server that misbehaves, with a bucket ``scratch``; gives a client of it and boto3's.

    ``client, s3 = misbehaving("action=close,verb=put", part_size=...)``
    """
    with contextlib.ExitStack() as stack:

        def start(*faults: str, **settings: Any) -> tuple[wirespeed.Client, Any]:
            flags = tuple(flag for fault in faults for flag in ("--fault", fault))
            server = stack.enter_context(servers.origin(tmp_path, flags=flags))
            s3 = server.boto3()
            s3.create_bucket(Bucket="scratch")
            return stack.enter_context(client_of(server, **settings)), s3

        yield start


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine in a loop of either kind."""
    if request.param == "asyncio":
        return asyncio.run
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")
    return uvloop.run
