"""Libraries that read and write through ``s3://`` once that is taken over, as a program does that was
written for s3fs: nothing in it is changed but the one call."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import fsspec
import pytest
import servers

from wirespeed.fsspec import S3FileSystem, give_back_s3, take_over_s3

# Characters of keys that a URL would end at or decode, slashes that a path would fold.
NAMES = ("a b", "a%20b", "a#b", "a//b", "ü+&=", "q?x=1", "k?versionId=1")


@pytest.fixture
def server(origin: servers.Server) -> servers.Server:
    """One server is enough: test_libraries.py has both."""
    return origin


@pytest.fixture(autouse=True)
def _taken_over() -> Iterator[None]:
    take_over_s3()
    yield
    give_back_s3()
    S3FileSystem.clear_instance_cache()


@pytest.fixture
def s3(options: dict[str, Any]) -> S3FileSystem:
    """What fsspec makes of ``s3://`` with the options."""
    made = fsspec.filesystem("s3", **options)
    assert isinstance(made, S3FileSystem)
    return made


@pytest.fixture
def counted(s3: S3FileSystem, stats: Callable[[], dict[str, Any]]) -> Callable[[], tuple[int, int]]:
    """Requests that the server got, and of those that `s3` sent, since the last call."""
    before = [0, 0]

    def count() -> tuple[int, int]:
        now = [stats()["requests_total"], s3.client.metrics()["requests"]]
        since = now[0] - before[0], now[1] - before[1]
        before[:] = now
        return since

    count()
    return count


@pytest.fixture(scope="module")
def frame() -> Any:
    """A small table of a few types."""
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(
        {"n": range(1000), "x": [n / 7 for n in range(1000)], "t": [f"{n} ü" for n in range(1000)]}
    )


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz", "json", "feather", "pickle", "excel"])
def test_pandas(bucket: str, options: dict[str, Any], frame: Any, kind: str) -> None:
    pandas = pytest.importorskip("pandas")
    name = kind.partition(".")[0]
    if name == "excel":
        pytest.importorskip("openpyxl")
    url = f"s3://{bucket}/d/t.{kind}"
    without_index = {"index": False} if name == "csv" else {}
    getattr(frame, f"to_{name}")(url, storage_options=options, **without_index)
    again = getattr(pandas, f"read_{name}")(url, storage_options=options)
    pandas.testing.assert_frame_equal(again, frame, check_dtype=False)


@pytest.mark.parametrize("engine", ["pyarrow", "fastparquet"])
@pytest.mark.parametrize("options_given", [{}, None])
def test_pandas_without_credentials_of_its_own(
    environment: dict[str, str],
    bucket: str,
    counted: Callable[[], tuple[int, int]],
    frame: Any,
    engine: str,
    options_given: dict[str, Any] | None,
) -> None:
    """With ``storage_options=None`` and pyarrow, Arrow's own client answers: as the guide says."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip(engine)
    url = f"s3://{bucket}/t.parquet"
    ours = fsspec.filesystem("s3")
    told: dict[str, Any] = {"engine": engine, "storage_options": options_given}
    before = ours.client.metrics()["requests"]
    counted()
    frame.to_parquet(url, **told)
    again = pandas.read_parquet(url, **told)
    pandas.testing.assert_frame_equal(again, frame, check_dtype=False)
    at_server, sent = counted()[0], ours.client.metrics()["requests"] - before
    assert at_server > 0
    assert sent == (0 if engine == "pyarrow" and options_given is None else at_server)
