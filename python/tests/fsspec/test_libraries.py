"""Round trips of the libraries that people read S3 with, by changing one line."""

from __future__ import annotations

from typing import Any

import fsspec
import pytest

from wirespeed.fsspec import WirespeedFileSystem, give_back_s3, take_over_s3

pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def frame() -> Any:
    """A table of a few types."""
    return pandas.DataFrame(
        {
            "n": range(50_000),
            "x": [n / 7 for n in range(50_000)],
            "text": [f"row {n % 100} ü" for n in range(50_000)],
            "when": pandas.date_range("2026-01-01", periods=50_000, freq="min"),
        }
    )


def same(one: Any, other: Any) -> None:
    """The tables agree in all but how types are spelt."""
    pandas.testing.assert_frame_equal(one, other, check_dtype=False)


def test_pandas_reads_and_writes_parquet(bucket: str, options: dict[str, Any], frame: Any) -> None:
    pytest.importorskip("pyarrow")
    url = f"wirespeed://{bucket}/d/t.parquet"
    frame.to_parquet(url, storage_options=options)
    same(pandas.read_parquet(url, storage_options=options), frame)
    some = pandas.read_parquet(url, columns=["x"], storage_options=options)
    same(some, frame[["x"]])


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_pandas_reads_and_writes_csv(
    bucket: str, options: dict[str, Any], frame: Any, name: str
) -> None:
    url = f"wirespeed://{bucket}/d/{name}"
    frame.to_csv(url, index=False, storage_options=options)
    same(pandas.read_csv(url, parse_dates=["when"], storage_options=options), frame)
    chunks = pandas.read_csv(url, chunksize=10_000, parse_dates=["when"], storage_options=options)
    same(pandas.concat(chunks), frame)


def test_pandas_reads_what_says_s3_once_that_is_taken_over(
    bucket: str, options: dict[str, Any], frame: Any
) -> None:
    take_over_s3()
    try:
        frame.to_csv(f"s3://{bucket}/t.csv", index=False, storage_options=options)
        again = pandas.read_csv(
            f"s3://{bucket}/t.csv", parse_dates=["when"], storage_options=options
        )
        same(again, frame)
    finally:
        give_back_s3()


def test_pyarrow_reads_and_writes_datasets(
    fs: WirespeedFileSystem, bucket: str, frame: Any
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.Table.from_pandas(frame)
    table = table.append_column("part", pyarrow.array([n % 3 for n in range(table.num_rows)]))
    dataset.write_dataset(
        table, f"{bucket}/set", filesystem=fs, format="parquet", partitioning=["part"]
    )
    found = dataset.dataset(f"{bucket}/set", filesystem=fs, partitioning=["part"])
    assert len(found.files) == 3
    assert found.count_rows() == 50_000
    few = found.to_table(filter=(dataset.field("part") == 1) & (dataset.field("n") < 100))
    assert sorted(few["n"].to_pylist()) == [n for n in range(100) if n % 3 == 1]
    parquet.write_table(table, f"{bucket}/one.parquet", filesystem=fs)
    assert parquet.read_table(f"{bucket}/one.parquet", filesystem=fs).equals(table)
    assert parquet.read_metadata(f"{bucket}/one.parquet", filesystem=fs).num_rows == 50_000


def test_parquet_is_read_in_few_requests_and_not_more_than_needed(
    fs: WirespeedFileSystem, bucket: str, frame: Any, requests: Any
) -> None:
    pytest.importorskip("pyarrow")
    path = f"{bucket}/t.parquet"
    frame.to_parquet(f"wirespeed://{path}", filesystem=fs)
    size = fs.size(path)
    with requests:
        pandas.read_parquet(path, filesystem=fs, columns=["n"])
    # pyarrow looks at it, and opens it twice: for the schema, and for the column.
    assert requests.sent <= 7
    assert requests.received < size / 2


def test_fsspecs_own_caches_lie_over_it(
    fs: WirespeedFileSystem, bucket: str, options: dict[str, Any], tmp_path: Any
) -> None:
    data = bytes(range(256)) * 1000
    fs.pipe_file(f"{bucket}/k", data)
    for over in ("simplecache", "filecache", "blockcache"):
        with fsspec.open(
            f"{over}::wirespeed://{bucket}/k",
            wirespeed=options,
            **{over: {"cache_storage": str(tmp_path / over)}},
        ) as file:
            file.seek(1000)
            assert file.read(100) == data[1000:1100]


def test_parquet_opened_by_fsspec_brings_what_its_columns_need(
    fs: WirespeedFileSystem, bucket: str, frame: Any
) -> None:
    pytest.importorskip("pyarrow")
    opened = pytest.importorskip("fsspec.parquet").open_parquet_file
    path = f"{bucket}/t.parquet"
    frame.to_parquet(path, filesystem=fs)
    with opened(path, fs=fs, columns=["n"], engine="pyarrow") as file:
        same(pandas.read_parquet(file, columns=["n"]), frame[["n"]])


def test_dask_reads_and_writes_dataframes(bucket: str, options: dict[str, Any], frame: Any) -> None:
    pytest.importorskip("pyarrow")
    dataframe = pytest.importorskip("dask.dataframe")
    parts = dataframe.from_pandas(frame, npartitions=5)
    url = f"wirespeed://{bucket}/dask"
    parts.to_parquet(f"{url}/p", storage_options=options)
    again = dataframe.read_parquet(f"{url}/p", storage_options=options)
    assert again.npartitions == 5
    same(again.compute(), frame)
    parts.to_csv(f"{url}/c-*.csv", index=False, storage_options=options)
    again = dataframe.read_csv(f"{url}/c-*.csv", parse_dates=["when"], storage_options=options)
    same(again.compute().reset_index(drop=True), frame)


def test_polars_reads_and_writes_through_files(
    fs: WirespeedFileSystem, bucket: str, options: dict[str, Any], frame: Any
) -> None:
    polars = pytest.importorskip("polars")
    dataset = pytest.importorskip("pyarrow.dataset")
    table = polars.DataFrame({"n": frame["n"].to_list(), "text": frame["text"].to_list()})
    with fs.open(f"{bucket}/t.parquet", "wb") as file:
        table.write_parquet(file)
    with fs.open(f"{bucket}/t.csv", "wb") as file:
        table.write_csv(file)
    with fs.open(f"{bucket}/t.parquet") as file:
        assert polars.read_parquet(file).equals(table)
    with fs.open(f"{bucket}/t.csv") as file:
        assert polars.read_csv(file).equals(table)
    found = dataset.dataset(f"{bucket}/t.parquet", filesystem=fs)
    assert polars.scan_pyarrow_dataset(found).filter(polars.col("n") < 5).collect().height == 5


def test_zarr_and_xarray_read_and_write_arrays(bucket: str, options: dict[str, Any]) -> None:
    numpy = pytest.importorskip("numpy")
    zarr = pytest.importorskip("zarr")
    xarray = pytest.importorskip("xarray")
    values = numpy.arange(120_000).reshape(200, 600)
    url = f"wirespeed://{bucket}/z"
    array = zarr.create_array(
        f"{url}/a", shape=values.shape, chunks=(50, 100), dtype="i8", storage_options=options
    )
    array[:] = values
    again = zarr.open_array(f"{url}/a", mode="r", storage_options=options)
    assert (again[:] == values).all()
    assert (again[60:70, 100:350] == values[60:70, 100:350]).all()
    data = xarray.Dataset({"t": (("y", "x"), values)}, coords={"y": range(200), "x": range(600)})
    data.to_zarr(f"{url}/x", storage_options=options)
    xarray.testing.assert_identical(
        xarray.open_zarr(f"{url}/x", storage_options=options).load(), data
    )
    data.isel(y=slice(0, 10)).to_zarr(f"{url}/x", mode="w", storage_options=options)
    assert xarray.open_zarr(f"{url}/x", storage_options=options).sizes["y"] == 10


def test_hugging_face_datasets_are_saved_and_loaded(
    bucket: str, options: dict[str, Any], frame: Any, tmp_path: Any
) -> None:
    datasets = pytest.importorskip("datasets")
    few = datasets.Dataset.from_dict({"n": list(range(1000)), "text": ["ü"] * 1000})
    url = f"wirespeed://{bucket}/hf"
    few.save_to_disk(url, storage_options=options)
    again = datasets.load_from_disk(url, storage_options=options)
    assert again["n"] == few["n"]
    frame.to_parquet(f"{url}/t.parquet", storage_options=options)
    loaded = datasets.load_dataset(
        "parquet",
        data_files=f"{url}/t.parquet",
        storage_options=options,
        cache_dir=str(tmp_path),
        split="train",
    )
    assert loaded.num_rows == 50_000
    assert loaded[7]["text"] == "row 7 ü"
