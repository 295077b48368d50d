"""Libraries that bring an S3 client of their own: which of their lines ask us, by the requests that
the server and our client count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import fsspec
import pytest
import servers

from wirespeed.fsspec import (
    S3FileSystem,
    WirespeedFileSystem,
    arrow_filesystem,
    give_back_s3,
    scan_polars,
    take_over_s3,
)

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
dataset = pytest.importorskip("pyarrow.dataset")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = 20_000
Run = Callable[[str, WirespeedFileSystem], Any]


@pytest.fixture
def server(origin: servers.Server) -> servers.Server:
    """One server is enough."""
    return origin


@pytest.fixture
def fs(environment: dict[str, str]) -> Iterator[WirespeedFileSystem]:
    """What fsspec makes of ``s3://`` without options, which is taken over."""
    take_over_s3()
    made = fsspec.filesystem("s3")
    assert isinstance(made, S3FileSystem)
    yield made
    give_back_s3()
    S3FileSystem.clear_instance_cache()


@pytest.fixture
def table(fs: WirespeedFileSystem, bucket: str) -> Any:
    """A table, which is also in ``t.parquet`` and ``t.csv``."""
    made = pyarrow.table({"n": range(ROWS), "x": [n / 7 for n in range(ROWS)]})
    with fs.open(f"{bucket}/t.parquet", "wb") as file:
        parquet.write_table(made, file)
    with fs.open(f"{bucket}/t.csv", "wb") as file:
        csv.write_csv(made, file)
    return made


@pytest.fixture
def counted(
    fs: WirespeedFileSystem, stats: Callable[[], dict[str, Any]]
) -> Callable[[], tuple[int, int]]:
    """Requests that the server got, and of those that were ours, since the last call."""
    before = [0, 0]
    ours = [fs, WirespeedFileSystem()]

    def count() -> tuple[int, int]:
        now = [
            stats()["requests_total"],
            sum(one.client.metrics()["requests"] for one in ours),
        ]
        since = now[0] - before[0], now[1] - before[1]
        before[:] = now
        return since

    return count


def written(
    write: Callable[[str, WirespeedFileSystem], object], name: str, read: Callable[[Any], Any]
) -> Run:
    """Writes by the line under test, and reads what came of it."""

    def run(bucket: str, fs: WirespeedFileSystem) -> Any:
        write(bucket, fs)
        with fs.open(f"{bucket}/{name}") as file:
            return read(file)

    return run


OTHERS: dict[str, Run] = {
    "pandas.read_parquet": lambda b, _: pandas.read_parquet(f"s3://{b}/t.parquet"),
    "pyarrow.parquet": lambda b, _: parquet.read_table(f"s3://{b}/t.parquet"),
    "pyarrow.dataset": lambda b, _: dataset.dataset(f"s3://{b}/t.parquet").to_table(),
    "polars.read_parquet": lambda b, _: polars.read_parquet(f"s3://{b}/t.parquet"),
    "polars.scan_parquet": lambda b, _: polars.scan_parquet(f"s3://{b}/t.parquet").collect(),
    "polars.read_csv": lambda b, _: polars.read_csv(f"s3://{b}/t.csv"),
}


@pytest.mark.parametrize("line", OTHERS)
def test_these_lines_never_ask_fsspec_as_the_guide_says(
    line: str, bucket: str, table: Any, fs: WirespeedFileSystem, counted: Callable[[], Any]
) -> None:
    """If one of them begins to, the guide can be shortened."""
    counted()
    same(OTHERS[line](bucket, fs), table)
    at_server, ours = counted()
    assert at_server > 0
    assert ours == 0


REFUSED: dict[str, Run] = {
    "pyarrow.parquet": lambda b, _: parquet.read_table(f"wirespeed://{b}/t.parquet"),
    "pyarrow.dataset": lambda b, _: dataset.dataset(f"wirespeed://{b}/t.parquet"),
    "polars": lambda b, _: polars.read_parquet(f"wirespeed://{b}/t.parquet"),
    "polars.scan": lambda b, _: polars.scan_parquet(f"wirespeed://{b}/t.parquet").collect(),
}


@pytest.mark.parametrize("line", REFUSED)
def test_of_our_own_scheme_they_know_nothing(
    line: str, bucket: str, table: Any, fs: WirespeedFileSystem
) -> None:
    with pytest.raises((pyarrow.ArrowInvalid, FileNotFoundError)):
        REFUSED[line](bucket, fs)


OURS: dict[str, Run] = {
    "pandas, storage_options": lambda b, _: pandas.read_parquet(
        f"s3://{b}/t.parquet", storage_options={}
    ),
    "pandas, our scheme": lambda b, _: pandas.read_parquet(f"wirespeed://{b}/t.parquet"),
    "pandas, filesystem": lambda b, fs: pandas.read_parquet(f"{b}/t.parquet", filesystem=fs),
    "pandas, csv": lambda b, _: pandas.read_csv(f"s3://{b}/t.csv"),
    "pandas, written": written(
        lambda b, _: pandas.DataFrame(
            {"n": range(ROWS), "x": [n / 7 for n in range(ROWS)]}
        ).to_parquet(f"s3://{b}/w.parquet", storage_options={}, index=False),
        "w.parquet",
        parquet.read_table,
    ),
    "pyarrow.parquet, filesystem": lambda b, fs: parquet.read_table(
        f"{b}/t.parquet", filesystem=fs
    ),
    "pyarrow.parquet, URL": lambda b, _: parquet.read_table(f"fsspec+s3://{b}/t.parquet"),
    "pyarrow.parquet, our URL": lambda b, _: parquet.read_table(
        f"fsspec+wirespeed://{b}/t.parquet"
    ),
    "pyarrow.dataset, filesystem": lambda b, fs: dataset.dataset(
        f"{b}/t.parquet", filesystem=fs
    ).to_table(),
    "pyarrow.dataset, URL": lambda b, _: dataset.dataset(
        f"fsspec+wirespeed://{b}/t.parquet"
    ).to_table(),
    "pyarrow.dataset, ours": lambda b, fs: dataset.dataset(
        f"{b}/t.parquet", filesystem=arrow_filesystem(fs)
    ).to_table(),
    "pyarrow.dataset, default": lambda b, _: dataset.dataset(
        f"{b}/t.parquet", filesystem=arrow_filesystem()
    ).to_table(),
    "pyarrow.csv, file": lambda b, fs: csv.read_csv(fs.open(f"{b}/t.csv")),
    "polars.read_parquet, file": lambda b, fs: polars.read_parquet(fs.open(f"{b}/t.parquet")),
    "polars.read_csv, file": lambda b, fs: polars.read_csv(fs.open(f"{b}/t.csv")),
    "polars.scan_parquet, file": lambda b, fs: polars.scan_parquet(
        fs.open(f"{b}/t.parquet")
    ).collect(),
    "scan_polars": lambda b, fs: scan_polars(f"s3://{b}/t.parquet", fs).collect(),
    "scan_polars, default": lambda b, _: scan_polars([f"s3://{b}/t.parquet"]).collect(),
    "scan_polars, csv": lambda b, fs: scan_polars(f"{b}/t.csv", fs, format="csv").collect(),
}


@pytest.mark.parametrize("line", OURS)
def test_these_lines_ask_us(
    line: str, bucket: str, table: Any, fs: WirespeedFileSystem, counted: Callable[[], Any]
) -> None:
    counted()
    same(OURS[line](bucket, fs), table)
    at_server, ours = counted()
    assert ours == at_server > 0


def same(found: Any, table: Any) -> None:
    """The table, whatever it was read as."""
    frame = (
        found
        if isinstance(found, pandas.DataFrame)
        else (
            found.to_pandas()
            if isinstance(found, pyarrow.Table)
            else pandas.DataFrame(found.to_dict())
        )
    )
    pandas.testing.assert_frame_equal(frame, table.to_pandas(), check_dtype=False)


def test_a_scan_fetches_what_its_query_needs(fs: WirespeedFileSystem, bucket: str) -> None:
    wide = pyarrow.table({f"c{n}": [float(n * row) for row in range(ROWS)] for n in range(8)})
    wide = wide.append_column("part", pyarrow.array([row % 2 for row in range(ROWS)]))
    dataset.write_dataset(
        wide,
        f"{bucket}/set",
        filesystem=fs,
        format="parquet",
        partitioning=["part"],
        partitioning_flavor="hive",
    )
    size = fs.du(f"{bucket}/set")
    before = fs.client.metrics()["bytes_received"]
    found = (
        scan_polars(f"s3://{bucket}/set", fs, partitioning="hive")
        .filter(polars.col("part") == 1)
        .select(polars.col("c3").sum())
        .collect()
    )
    assert found.item() == sum(3.0 * row for row in range(1, ROWS, 2))
    assert fs.client.metrics()["bytes_received"] - before < size / 4
