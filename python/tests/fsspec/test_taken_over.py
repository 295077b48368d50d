"""Libraries that read and write through ``s3://`` once that is taken over, in programs that were
written for s3fs."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import servers

import wirespeed
from wirespeed.fsspec import S3FileSystem, give_back_s3, take_over_s3

# Characters of keys that a URL would end at or decode, slashes that a path would fold.
NAMES = ("a b", "a%20b", "a#b", "a//b", "ü+&=", "q?x=1")


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


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz", "json", "feather", "pickle"])
def test_pandas(bucket: str, options: dict[str, Any], frame: Any, kind: str) -> None:
    pandas = pytest.importorskip("pandas")
    name = kind.partition(".")[0]
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


def test_dask_on_threads(bucket: str, options: dict[str, Any], frame: Any) -> None:
    """Key and secret, and no ``pickle_secrets``: dask pickles files to tell which are new."""
    dask = pytest.importorskip("dask")
    dataframe = pytest.importorskip("dask.dataframe")
    array = pytest.importorskip("dask.array")
    bag = pytest.importorskip("dask.bag")
    pandas = pytest.importorskip("pandas")
    url = f"s3://{bucket}/dask"
    told = {"storage_options": options}
    parts = dataframe.from_pandas(frame, npartitions=3)
    for kind, read in (
        ("parquet", lambda: dataframe.read_parquet(f"{url}/parquet", **told)),
        ("csv", lambda: dataframe.read_csv(f"{url}/csv-*", **told)),
        ("json", lambda: dataframe.read_json(f"{url}/json-*", lines=True, **told)),
    ):
        without_index = {"index": False} if kind == "csv" else {}
        target = f"{url}/{kind}" if kind == "parquet" else f"{url}/{kind}-*"
        getattr(parts, f"to_{kind}")(target, **told, **without_index)
        again = read().compute(scheduler="threads").reset_index(drop=True)
        pandas.testing.assert_frame_equal(again, frame, check_dtype=False)
    lines = bag.from_sequence([str(n) for n in range(10)], npartitions=2)
    with dask.config.set(scheduler="threads"):  # bags run on processes otherwise
        lines.to_textfiles(f"{url}/lines-*.txt", **told)
        again = bag.read_text(f"{url}/lines-*.txt", **told).map(str.strip).compute()
    assert again == [str(n) for n in range(10)]
    array.ones((10, 10), chunks=5).to_zarr(f"{url}/z", **told)
    assert array.from_zarr(f"{url}/z", **told).sum().compute() == 100


def test_dasks_names_of_tasks_depend_on_the_options_and_show_no_secret(
    s3: S3FileSystem, options: dict[str, Any]
) -> None:
    tokenize = pytest.importorskip("dask.base").tokenize
    path = "s3://bucket/k"
    for make in (
        lambda given: fsspec.filesystem("s3", **given),
        lambda given: fsspec.open(path, **given),
        lambda given: fsspec.filesystem("s3", **given).storage_options,
        lambda given: pytest.importorskip("pyarrow.fs").FSSpecHandler(
            fsspec.filesystem("s3", **given)
        ),
    ):
        one = tokenize(make(options), ensure_deterministic=True)
        assert one == tokenize(make(options), ensure_deterministic=True)
        for other in ({"secret": "else"}, {"key": "else"}, {"endpoint_url": "http://localhost:9"}):
            assert tokenize(make(options | other)) != one
    assert options["secret"] not in repr(s3.__dask_tokenize__())


def test_dask_on_clusters(
    bucket: str, options: dict[str, Any], frame: Any, environment: dict[str, str]
) -> None:
    """In this process a secret is found again; another must be told it, or find its own."""
    distributed = pytest.importorskip("distributed")
    dataframe = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    parts = dataframe.from_pandas(frame, npartitions=2)
    url = f"s3://{bucket}/dask"

    def there_and_back(name: str, **given: Any) -> None:
        parts.to_parquet(f"{url}/{name}", storage_options=given)
        again = dataframe.read_parquet(f"{url}/{name}", storage_options=given)
        pandas.testing.assert_frame_equal(again.compute(), frame, check_dtype=False)

    quiet = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=False, **quiet) as cluster,
        distributed.Client(cluster),
    ):
        there_and_back("threads", **options)
    with (
        distributed.LocalCluster(processes=True, **quiet) as cluster,
        distributed.Client(cluster) as client,
    ):
        made = fsspec.filesystem("s3", **options)
        with pytest.raises(wirespeed.ConfigError, match="pickle_secrets=True"):
            client.submit(made.find, bucket).result()
        with pytest.raises(wirespeed.ConfigError, match="AWS_ACCESS_KEY_ID"):
            there_and_back("refused", **options)
        there_and_back("told", **options, pickle_secrets=True)
        # As the workers' environment says, which is the one of this test.
        there_and_back("found")


def test_dask_on_processes(bucket: str, options: dict[str, Any], s3: S3FileSystem) -> None:
    bag = pytest.importorskip("dask.bag")
    s3.pipe({f"{bucket}/lines-{n}.txt": b"a\nb\n" for n in range(2)})
    url = f"s3://{bucket}/lines-*.txt"
    with pytest.raises(wirespeed.ConfigError, match="pickle_secrets=True"):
        bag.read_text(url, storage_options=options).count().compute(scheduler="processes")
    told = options | {"pickle_secrets": True}
    assert bag.read_text(url, storage_options=told).count().compute(scheduler="processes") == 4


def test_zarr_and_xarray(bucket: str, options: dict[str, Any]) -> None:
    numpy = pytest.importorskip("numpy")
    zarr = pytest.importorskip("zarr")
    xarray = pytest.importorskip("xarray")
    values = numpy.arange(1200).reshape(20, 60)
    url = f"s3://{bucket}/z"
    array = zarr.create_array(
        f"{url}/a", shape=values.shape, chunks=(5, 10), dtype="i8", storage_options=options
    )
    array[:] = values
    array[3:5, 10:20] = 0
    values[3:5, 10:20] = 0
    again = zarr.open_array(f"{url}/a", mode="r", storage_options=options)
    assert (again[:] == values).all()
    data = xarray.Dataset({"t": (("y", "x"), values)}, coords={"y": range(20), "x": range(60)})
    data.to_zarr(f"{url}/x", storage_options=options)
    found = xarray.open_zarr(f"{url}/x", storage_options=options).load()
    xarray.testing.assert_identical(found, data)


def test_hugging_face_datasets(
    bucket: str, options: dict[str, Any], frame: Any, tmp_path: Path
) -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_pandas(frame)
    made.save_to_disk(f"s3://{bucket}/hf", storage_options=options)
    again = datasets.load_from_disk(f"s3://{bucket}/hf", storage_options=options)
    assert again.to_dict() == made.to_dict()
    made.to_parquet(f"s3://{bucket}/t.parquet", storage_options=options)
    loaded = datasets.load_dataset(
        "parquet",
        data_files=f"s3://{bucket}/t.parquet",
        storage_options=options,
        cache_dir=str(tmp_path),
        split="train",
    )
    assert loaded.to_dict() == made.to_dict()


def test_duckdb(
    bucket: str, s3: S3FileSystem, frame: Any, counted: Callable[[], tuple[int, int]]
) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register_filesystem(s3)
    counted()
    for kind in ("parquet", "csv"):
        url = f"s3://{bucket}/duck/t.{kind}"
        connection.sql(f"COPY (SELECT * FROM frame) TO '{url}'")
        rows = connection.sql(f"SELECT * FROM '{url}' ORDER BY n").fetchall()
        assert rows == list(frame.itertuples(index=False, name=None))
    few = connection.sql(f"SELECT n FROM 's3://{bucket}/duck/*.parquet' WHERE n < 3 ORDER BY n")
    assert few.fetchall() == [(0,), (1,), (2,)]
    at_server, sent = counted()
    assert at_server == sent > 0


def test_kerchunk_and_h5py(bucket: str, options: dict[str, Any], s3: S3FileSystem) -> None:
    h5py = pytest.importorskip("h5py")
    kerchunk = pytest.importorskip("kerchunk.hdf")
    numpy = pytest.importorskip("numpy")
    zarr = pytest.importorskip("zarr")
    values = numpy.arange(1200.0).reshape(20, 60)
    text = io.BytesIO()
    with h5py.File(text, "w") as file:
        file.create_dataset("t", data=values, chunks=(5, 20), compression="gzip")
    with s3.open(f"s3://{bucket}/a.h5", "wb") as file:
        file.write(text.getvalue())
    with s3.open(f"s3://{bucket}/a.h5") as remote, h5py.File(remote) as file:
        assert (file["t"][3:5, 7:30] == values[3:5, 7:30]).all()
    references = kerchunk.SingleHdf5ToZarr(f"s3://{bucket}/a.h5", storage_options=options)
    with fsspec.open(f"s3://{bucket}/a.json", "w", **options) as file:
        json.dump(references.translate(), file)
    asynchronous = options | {"asynchronous": True}
    store = zarr.storage.FsspecStore(
        fsspec.filesystem(
            "reference",
            fo=f"s3://{bucket}/a.json",
            target_options=options,
            remote_protocol="s3",
            remote_options=asynchronous,
            asynchronous=True,
        )
    )
    assert (zarr.open_array(store, path="t", mode="r")[:] == values).all()


def test_universal_pathlib(bucket: str, options: dict[str, Any]) -> None:
    upath = pytest.importorskip("upath")
    root = upath.UPath(f"s3://{bucket}", **options)
    (root / "d" / "a.txt").write_text("text ü")
    (root / "d" / "e" / "b.bin").write_bytes(b"\0\1")
    assert (root / "d" / "a.txt").read_text() == "text ü"
    assert sorted(path.name for path in (root / "d").iterdir()) == ["a.txt", "e"]
    assert [path.path for path in root.glob("**/*.bin")] == [f"{bucket}/d/e/b.bin"]
    assert (root / "d").is_dir()
    assert (root / "d" / "a.txt").stat().st_size == 7
    with (root / "d" / "a.txt").open("rb") as file:
        assert file.read() == "text ü".encode()
    (root / "d" / "a.txt").rename(root / "moved.txt")
    assert not (root / "d" / "a.txt").exists()
    (root / "moved.txt").unlink()
    assert [path.name for path in root.iterdir()] == ["d"]
    for name in NAMES:
        if "//" in name:
            continue  # pathlib folds slashes
        (root / "names" / name).write_text(name)
        assert (root / "names" / name).read_text() == name
    found = fsspec.filesystem("s3", **options).find(f"{bucket}/names")
    assert found == sorted(f"{bucket}/names/{name}" for name in NAMES if "//" not in name)


def test_archives_and_fsspecs_own_chains(
    bucket: str, options: dict[str, Any], s3: S3FileSystem, tmp_path: Path
) -> None:
    data = bytes(range(256)) * 100
    with s3.open(f"{bucket}/a.zip", "wb") as out, zipfile.ZipFile(out, "w") as archive:
        archive.writestr("d/k", data)
    with s3.open(f"{bucket}/a.tar.gz", "wb") as out, tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo("d/k")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    with s3.open(f"{bucket}/a.zip") as file, zipfile.ZipFile(file) as archive:
        assert archive.read("d/k") == data
    with s3.open(f"{bucket}/a.tar.gz") as file, tarfile.open(fileobj=file) as tar:
        member = tar.extractfile("d/k")
        assert member is not None
        assert member.read() == data
    s3.pipe_file(f"{bucket}/k", data)
    for chain in (
        f"zip://d/k::s3://{bucket}/a.zip",
        f"tar://d/k::s3://{bucket}/a.tar.gz",
        f"simplecache::s3://{bucket}/k",
        f"filecache::s3://{bucket}/k",
        f"blockcache::s3://{bucket}/k",
        f"zip://d/k::simplecache::s3://{bucket}/a.zip",
    ):
        caches = {
            name: {"cache_storage": str(tmp_path / name)}
            for name in ("simplecache", "filecache", "blockcache")
            if name in chain
        }
        with fsspec.open(chain, s3=options, **caches) as file:
            assert file.read() == data, chain
    with fsspec.open(
        f"simplecache::s3://{bucket}/w",
        "wb",
        s3=options,
        simplecache={"cache_storage": str(tmp_path / "w")},
    ) as file:
        file.write(data)
    assert s3.cat_file(f"{bucket}/w") == data


def test_a_key_that_looks_like_a_chain_is_named_with_the_way_to_open_it(
    bucket: str, options: dict[str, Any], s3: S3FileSystem
) -> None:
    """fsspec itself reads the URL so, before it asks us."""
    with pytest.raises(wirespeed.ConfigError, match=r"fs\.open\(path\)"):
        fsspec.open(f"s3://{bucket}/a::b", "wb", **options).open()
    with s3.open(f"s3://{bucket}/a::b", "wb") as file:
        file.write(b"x")
    assert s3.find(bucket) == [f"{bucket}/a::b"]


@pytest.mark.parametrize("name", NAMES)
def test_any_key_is_one_key_to_every_library(
    bucket: str, options: dict[str, Any], s3: S3FileSystem, frame: Any, name: str
) -> None:
    dataframe = pytest.importorskip("dask.dataframe")
    duckdb = pytest.importorskip("duckdb")
    pandas = pytest.importorskip("pandas")
    parquet = pytest.importorskip("pyarrow.parquet")
    zarr = pytest.importorskip("zarr")
    key = f"{name}/t {name}"
    url, path = f"s3://{bucket}/{key}", f"{bucket}/{key}"
    told = {"storage_options": options}

    def keys() -> list[str]:
        found = s3.client.list("", bucket=bucket).keys()
        s3.client.delete_many(found, bucket=bucket)
        s3.invalidate_cache()
        return found

    frame.to_csv(url, index=False, **told)
    pandas.testing.assert_frame_equal(pandas.read_csv(url, **told), frame, check_dtype=False)
    assert keys() == [key]
    frame.to_parquet(url, **told)
    pandas.testing.assert_frame_equal(pandas.read_parquet(url, **told), frame)
    assert parquet.read_table(path, filesystem=s3).num_rows == 1000
    connection = duckdb.connect()
    connection.register_filesystem(s3)
    assert connection.sql(f"SELECT sum(n) FROM read_parquet('{url}')").fetchall() == [(499500,)]
    assert keys() == [key]
    dataframe.from_pandas(frame, npartitions=2).to_parquet(url, **told)
    assert dataframe.read_parquet(url, **told).n.sum().compute(scheduler="threads") == 499500
    assert keys() == [f"{key}/part.{n}.parquet" for n in range(2)]
    zarr.create_array(url, shape=(10,), chunks=(5,), dtype="i8", **told)[:] = 7
    assert zarr.open_array(url, mode="r", **told)[:].sum() == 70
    assert keys() == [f"{key}/{rest}" for rest in ("c/0", "c/1", "zarr.json")]
    with fsspec.open(f"simplecache::{url}", "wb", s3=options) as file:
        file.write(b"x")
    with fsspec.open(f"simplecache::{url}", "rb", s3=options) as file:
        assert file.read() == b"x"
    assert keys() == [key]
