"""fsspec's own suite for implementations, all of it: nothing in it is ruled out by what S3 is."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import fsspec.tests.abstract as abstract
import pytest

from wirespeed.fsspec import WirespeedFileSystem


class _Fixtures(abstract.AbstractFixtures):
    @pytest.fixture
    def fs(self, options: dict[str, Any]) -> WirespeedFileSystem:
        return WirespeedFileSystem(**options)

    @pytest.fixture
    def fs_path(self, fs: WirespeedFileSystem) -> Iterator[str]:
        bucket = f"abstract-{uuid.uuid4().hex[:12]}"
        fs.mkdir(bucket)
        yield f"{bucket}/below"
        fs.rm(bucket, recursive=True)

    @pytest.fixture
    def fs_join(self) -> Any:
        return lambda *parts: "/".join(parts)

    @pytest.fixture
    def supports_empty_directories(self) -> bool:
        return False


class TestCopy(abstract.AbstractCopyTests, _Fixtures):
    pass


class TestGet(abstract.AbstractGetTests, _Fixtures):
    pass


class TestPut(abstract.AbstractPutTests, _Fixtures):
    pass


class TestOpen(abstract.AbstractOpenTests, _Fixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, _Fixtures):
    pass
