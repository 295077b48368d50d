"""A bucket on wirespeed-origin for each test, and a client that finds it by the environment."""

from __future__ import annotations

import importlib.util
import os
import uuid
from collections.abc import Iterator

import pytest
import servers

import wirespeed

WITHOUT_TORCH = importlib.util.find_spec("torch") is None

# `make test-torch` runs these where torch is; elsewhere only what holds without it is collected.
collect_ignore_glob = ["test_[!i]*.py"] if WITHOUT_TORCH else []


def pytest_report_header() -> str | None:
    return "torch is not installed: its tests are left out" if WITHOUT_TORCH else None


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """The embedded server, and an environment that leads there: workers need nothing else."""
    with servers.origin(tmp_path_factory.mktemp("origin-torch")) as server:
        with pytest.MonkeyPatch.context() as patch:
            for name in list(os.environ):
                if name.startswith(("AWS_", "WIRESPEED_")):
                    patch.delenv(name)
            for name, value in server.environment().items():
                if name.startswith("AWS_"):
                    patch.setenv(name, value)
            patch.setenv("AWS_ENDPOINT_URL", server.endpoint)
            wirespeed.set_default_client(None)
            yield server
        wirespeed.set_default_client(None)


@pytest.fixture
def client(endpoint: servers.Server) -> Iterator[wirespeed.Client]:
    """A client of its own, so that a test can count its requests."""
    with wirespeed.Client() as found:
        yield found


@pytest.fixture
def bucket(endpoint: servers.Server) -> str:
    """``s3://`` and the name of an empty bucket."""
    name = f"b-{uuid.uuid4().hex[:16]}"
    endpoint.boto3().create_bucket(Bucket=name)
    return f"s3://{name}"
