"""zarr's own suites for stores, through its `FsspecStore` over our file system."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import servers

pytest.importorskip("zarr", reason="zarr, which needs Python 3.12 or newer, is not installed")

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from zarr.core.buffer import Buffer, cpu
from zarr.core.sync import sync
from zarr.storage import FsspecStore
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine
from zarr.testing.store import StoreTests

from wirespeed import Client
from wirespeed.fsspec import WirespeedFileSystem


@pytest.fixture(scope="module", params=[servers.origin, servers.versitygw])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[servers.Server]:
    """Ours, and one that nobody here has written."""
    with request.param(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(autouse=True)
def _who_signs_is_said_by_the_environment(
    server: servers.Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    # A store is pickled in some of the tests, and secrets among its options are not.
    for name in os.environ:
        if name.startswith(("AWS_", "FSSPEC_")):
            monkeypatch.delenv(name)
    for name, value in server.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    yield
    WirespeedFileSystem.clear_instance_cache()


@pytest.fixture
def client(server: servers.Server) -> Client:
    """What looks past the store."""
    return Client(
        access_key_id=server.access_key,
        secret_access_key=server.secret_key,
        endpoint_url=server.endpoint,
        region=servers.REGION,
    )


@pytest.fixture
def bucket(client: Client) -> Iterator[str]:
    """An empty bucket."""
    name = f"zarr-{uuid.uuid4().hex[:12]}"
    client.create_bucket(name)
    yield name
    client.delete_many([f"s3://{name}/{one.key}" for one in client.list("", bucket=name)])
    client.delete_bucket(name)


def the_store(server: servers.Server, bucket: str) -> FsspecStore:
    """As a user makes one."""
    return FsspecStore.from_url(
        f"wirespeed://{bucket}/below",
        storage_options={"endpoint_url": server.endpoint, "asynchronous": True},
    )


class TestFsspecStore(StoreTests[FsspecStore, cpu.Buffer]):
    """All of zarr's tests of a store."""

    store_cls = FsspecStore
    buffer_cls = cpu.Buffer

    @pytest.fixture(autouse=True)
    def _past_the_store(self, client: Client, bucket: str) -> None:
        self.client, self.bucket = client, bucket

    @pytest.fixture
    def store_kwargs(self, server: servers.Server, bucket: str) -> dict[str, Any]:
        fs = WirespeedFileSystem(endpoint_url=server.endpoint, asynchronous=True)
        return {"fs": fs, "path": f"{bucket}/below"}

    @pytest.fixture
    def store(self, open_kwargs: dict[str, Any]) -> FsspecStore:
        return sync(self.store_cls.open(**open_kwargs))

    @pytest.fixture
    def store_not_open(self, store_kwargs: dict[str, Any]) -> FsspecStore:
        return self.store_cls(**store_kwargs)

    async def get(self, store: FsspecStore, key: str) -> Buffer:
        return self.buffer_cls.from_bytes(
            self.client.get(f"s3://{self.bucket}/below/{key}", as_bytes=True)
        )

    async def set(self, store: FsspecStore, key: str, value: Buffer) -> None:
        self.client.put(f"s3://{self.bucket}/below/{key}", value.to_bytes())

    def test_store_repr(self, store: FsspecStore) -> None:
        assert str(store) == f"<FsspecStore(WirespeedFileSystem, {self.bucket}/below)>"

    def test_store_supports_writes(self, store: FsspecStore) -> None:
        assert store.supports_writes

    def test_store_supports_listing(self, store: FsspecStore) -> None:
        assert store.supports_listing


def test_a_store_holds_what_a_dict_holds_whatever_is_done_to_both(
    server: servers.Server, bucket: str
) -> None:
    def machine() -> ZarrStoreStateMachine:
        return ZarrStoreStateMachine(the_store(server, bucket))

    run_state_machine_as_test(machine, settings=_effort())


def test_a_hierarchy_of_groups_and_arrays_is_as_in_memory_whatever_is_done_to_both(
    server: servers.Server, bucket: str
) -> None:
    def machine() -> ZarrHierarchyStateMachine:
        return ZarrHierarchyStateMachine(the_store(server, bucket))

    run_state_machine_as_test(machine, settings=_effort())


def _effort() -> settings:
    return settings(
        max_examples=10,
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
