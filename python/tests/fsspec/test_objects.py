"""Objects in memory and on the server: cat, pipe, remove, copy, and what describes them."""

from __future__ import annotations

import itertools
import urllib.request
from typing import Any

import pytest
import servers

from wirespeed.fsspec import WirespeedFileSystem

DATA = bytes(range(100))
ENDS = [None, 0, 1, 30, 99, 100, 250, -1, -30, -100, -250]


def test_a_range_is_what_a_slice_is(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, DATA)
    pairs = list(itertools.product(ENDS, ENDS))
    got = fs.cat_ranges([path] * len(pairs), *zip(*pairs, strict=True))
    for (start, end), data in zip(pairs, got, strict=True):
        assert data == DATA[start:end], (start, end)
        assert isinstance(data, bytes)
    assert fs.cat_file(path) == DATA
    assert fs.cat_file(path, start=-30) == DATA[-30:]
    assert fs.cat_file(path, 5, 20) == DATA[5:20]
    assert fs.head(path, 3) == DATA[:3]
    assert fs.tail(path, 3) == DATA[-3:]
    assert fs.read_block(path, 10, 5) == DATA[10:15]


def test_an_empty_object_is_read(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/empty"
    fs.touch(path)
    assert fs.cat_file(path) == b""
    assert fs.cat_file(path, 0, 10) == b""
    assert fs.cat_file(path, -10) == b""
    assert fs.cat(path) == b""
    assert fs.cat([path]) == {path: b""}
    with fs.open(path) as file:
        assert file.read() == b""
        assert file.read(5) == b""


def test_many_ranges_come_in_order_and_failures_in_their_places(
    fs: WirespeedFileSystem, bucket: str
) -> None:
    fs.pipe({f"{bucket}/a": b"a" * 50, f"{bucket}/b": b"b" * 50})
    paths = [f"{bucket}/{key}" for key in ("b", "nothing", "a", "b")]
    got = fs.cat_ranges(paths, [0, 0, 10, 48], [2, 2, 13, None])
    assert got[0] == b"bb"
    assert isinstance(got[1], FileNotFoundError)
    assert got[2:] == [b"aaa", b"bb"]
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges(paths, 0, 5, on_error="raise")
    assert fs.cat_ranges(paths[2:], 1, 3) == [b"aa", b"bb"]
    assert fs.cat_ranges([], [], []) == []
    with pytest.raises(TypeError):
        fs.cat_ranges("a", 0, 1)
    with pytest.raises(ValueError, match="lengths"):
        fs.cat_ranges(paths, [0], [1])


def test_ranges_that_lie_near_share_a_request(
    fs: WirespeedFileSystem, bucket: str, requests: Any
) -> None:
    data = bytes(i * 7 % 251 for i in range(200_000))
    fs.pipe({f"{bucket}/a": data, f"{bucket}/b": data})
    starts = [*range(0, 100_000, 1_000), *range(0, 100_000, 1_000)]
    ends = [start + 500 for start in starts]
    paths = [f"{bucket}/a"] * 100 + [f"{bucket}/b"] * 100
    expected = [data[s:e] for s, e in zip(starts, ends, strict=True)]
    with requests:
        assert fs.cat_ranges(paths, starts, ends, max_gap=500) == expected
    assert requests.sent == 2
    assert requests.received <= 2 * 99_500
    with requests:
        assert fs.cat_ranges(paths, starts, ends, max_gap=0) == expected
    assert requests.sent == 200
    assert requests.received == 200 * 500


def test_cat_gives_one_or_all_that_a_path_stands_for(
    fs: WirespeedFileSystem, bucket: str, requests: Any
) -> None:
    contents = {f"{bucket}/d/{n}": str(n).encode() for n in range(20)}
    fs.pipe(contents)
    assert fs.cat(f"{bucket}/d/3") == b"3"
    with requests:
        assert fs.cat(f"{bucket}/d", recursive=True) == contents
    assert requests.sent == 21  # a listing, and each object
    with requests:
        assert fs.cat(f"{bucket}/d/1*") == {
            path: data for path, data in contents.items() if path.startswith(f"{bucket}/d/1")
        }
    assert requests.sent == 12
    missing = [f"{bucket}/d/1", f"{bucket}/d/x"]
    with pytest.raises(FileNotFoundError):
        fs.cat(missing)
    assert fs.cat(missing, on_error="omit") == {missing[0]: b"1"}
    assert isinstance(fs.cat(missing, on_error="return")[missing[1]], FileNotFoundError)


def test_pipe_writes_one_or_many(fs: WirespeedFileSystem, bucket: str, requests: Any) -> None:
    many = {f"{bucket}/d/{n}": bytearray(str(n).encode()) for n in range(30)}
    with requests:
        fs.pipe(many)
    assert requests.sent == 30
    assert fs.cat(f"{bucket}/d", recursive=True) == {k: bytes(v) for k, v in many.items()}
    fs.pipe(f"{bucket}/one", memoryview(b"view"))
    assert fs.cat_file(f"{bucket}/one") == b"view"
    with pytest.raises(ValueError, match="mapping"):
        fs.pipe(3)
    with pytest.raises(ValueError, match="overwrite"):
        fs.pipe_file(f"{bucket}/one", b"", mode="append")
    with pytest.raises(TypeError, match="Colour"):
        fs.pipe_file(f"{bucket}/one", b"", Colour="red")
    with pytest.raises(IsADirectoryError):
        fs.pipe_file(bucket, b"")


def test_create_does_not_overwrite(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, b"first", mode="create")
    with pytest.raises(FileExistsError):
        fs.pipe_file(path, b"second", mode="create")
    with pytest.raises(FileExistsError):
        fs.pipe({path: b"second"}, mode="create")
    with pytest.raises(FileExistsError):
        fs.open(path, "xb")
    assert fs.cat_file(path) == b"first"


def test_touch_makes_an_empty_object(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, b"full")
    with pytest.raises(ValueError, match="time"):
        fs.touch(path, truncate=False)
    fs.touch(path)
    assert fs.size(path) == 0
    fs.touch(f"{bucket}/new", truncate=False)
    assert fs.exists(f"{bucket}/new")


def test_rm_removes_what_is_said_and_nothing_else(
    fs: WirespeedFileSystem, bucket: str, server: servers.Server, requests: Any
) -> None:
    keys = [f"d/{n}" for n in range(1500)] + ["dx", "e/f/g", "e/h"]
    if server.name != "versitygw":  # whose directories are directories
        keys.append("d")
    fs.pipe({f"{bucket}/{key}": b"" for key in keys})
    with requests:
        fs.rm(f"{bucket}/d", recursive=True)
    # Two pages listed, the object of that name asked for, two requests that delete 1,000 each.
    assert requests.sent == 5
    assert fs.find(bucket) == [f"{bucket}/dx", f"{bucket}/e/f/g", f"{bucket}/e/h"]
    fs.rm(f"{bucket}/e/*", recursive=True)
    assert fs.find(bucket) == [f"{bucket}/dx"]
    fs.rm(f"{bucket}/nothing")
    fs.rm(f"{bucket}/nothing", recursive=True)
    fs.rm([f"{bucket}/dx", f"{bucket}/nothing"])
    assert fs.find(bucket) == []
    with pytest.raises(FileNotFoundError):
        fs.rm(f"{bucket}/nothing*")
    with pytest.raises(FileNotFoundError):
        fs.rm("no-such-bucket-here/key")
    with pytest.raises(ValueError, match="many buckets"):
        fs.rm("", recursive=True)


def test_rm_keeps_to_a_depth(fs: WirespeedFileSystem, bucket: str) -> None:
    fs.pipe({f"{bucket}/{key}": b"" for key in ("d/a", "d/e/b", "d/e/f/c")})
    fs.rm(f"{bucket}/d", recursive=True, maxdepth=2)
    assert fs.find(bucket) == [f"{bucket}/d/e/f/c"]


def test_buckets_are_made_and_removed(fs: WirespeedFileSystem, bucket: str) -> None:
    other = f"{bucket}-other"
    fs.mkdir(other)
    assert fs.exists(other)
    assert other in fs.ls("", detail=False)
    with pytest.raises(FileExistsError):
        fs.mkdir(other)
    with pytest.raises(FileExistsError):
        fs.makedirs(other)
    fs.makedirs(other, exist_ok=True)
    fs.mkdir(f"{other}/d")
    assert fs.ls(other) == []
    fs.pipe_file(f"{other}/d/k", b"")
    with pytest.raises(OSError, match="recursive"):
        fs.rmdir(f"{other}/d")
    with pytest.raises(FileNotFoundError):
        fs.rmdir(f"{other}/nothing")
    with pytest.raises(OSError, match=other):
        fs.rmdir(other)
    fs.rm(other, recursive=True)
    assert not fs.exists(other)
    assert other not in fs.ls("", detail=False)
    fs.makedirs(f"{other}/d/e")
    assert fs.exists(other)
    fs.rmdir(other)
    with pytest.raises(FileNotFoundError):
        fs.mkdir(f"{other}/d", create_parents=False)


def test_objects_are_copied_and_moved_on_the_server(
    fs: WirespeedFileSystem, bucket: str, requests: Any
) -> None:
    other = f"{bucket}-other"
    fs.mkdir(other)
    try:
        fs.pipe({f"{bucket}/d/{n}": str(n).encode() for n in range(10)})
        fs.pipe_file(f"{bucket}/typed", b"x" * 1000, ContentType="text/csv", Metadata={"a": "b"})
        with requests:
            fs.cp_file(f"{bucket}/typed", f"{other}/typed")
        assert requests.received < 1000
        info = fs.info(f"{other}/typed")
        assert (info["size"], info["ContentType"], info["Metadata"]) == (
            1000,
            "text/csv",
            {"a": "b"},
        )
        fs.copy(f"{bucket}/d", f"{other}/e", recursive=True)
        assert fs.cat(f"{other}/e", recursive=True) == {
            f"{other}/e/{n}": str(n).encode() for n in range(10)
        }
        fs.mv(f"{bucket}/d/1", f"{bucket}/moved")
        assert fs.cat_file(f"{bucket}/moved") == b"1"
        assert not fs.exists(f"{bucket}/d/1")
        fs.mv(f"{bucket}/d", f"{other}/f", recursive=True)
        assert not fs.exists(f"{bucket}/d")
        assert len(fs.find(f"{other}/f")) == 9
        fs.mv_file(f"{bucket}/moved", f"{bucket}/again")
        assert fs.find(bucket) == [f"{bucket}/again", f"{bucket}/typed"]
        with pytest.raises(FileNotFoundError):
            fs.copy(f"{bucket}/nothing", f"{bucket}/x")
        with pytest.raises(FileNotFoundError):
            fs.mv(f"{bucket}/nothing", f"{bucket}/x")
    finally:
        fs.rm(other, recursive=True)


@pytest.mark.parametrize("fault", ["bare-status:200", "malformed-xml"])
def test_a_source_stays_where_its_copy_is_not_proven(misbehaving: Any, fault: str) -> None:
    client, s3 = misbehaving(f"action={fault},verb=copy", max_attempts=1)
    fs = WirespeedFileSystem(anon=True, skip_instance_cache=True)
    fs.client = client
    s3.put_object(Bucket="scratch", Key="a", Body=b"content")
    with pytest.raises(OSError, match="cannot be read"):
        fs.mv("scratch/a", "scratch/b")
    assert s3.get_object(Bucket="scratch", Key="a")["Body"].read() == b"content"


def test_a_deletion_that_nobody_confirms_raises(misbehaving: Any) -> None:
    client, s3 = misbehaving(
        "action=bare-status:200,verb=delete",
        "action=bare-status:200,verb=delete-many",
        max_attempts=1,
    )
    fs = WirespeedFileSystem(anon=True, skip_instance_cache=True)
    fs.client = client
    s3.put_object(Bucket="scratch", Key="a", Body=b"content")
    with pytest.raises(OSError, match="cannot be read"):
        fs.rm("scratch/a")
    with pytest.raises(OSError, match="cannot be read"):
        fs.mv("scratch/a", "scratch/b")


def test_metadata_are_read_and_set(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, b"x", ContentType="text/csv", Metadata={"who": "me", "old": "1"})
    assert fs.metadata(path) == {"who": "me", "old": "1"}
    assert fs.getxattr(path, "who") == "me"
    assert fs.getxattr(path, "whom") is None
    fs.setxattr(path, who="you", old=None, a_b="2")
    assert fs.metadata(path) == {"who": "you", "a-b": "2"}
    assert fs.getxattr(path, "a_b") == "2"
    assert fs.info(path)["ContentType"] == "text/csv"
    assert fs.cat_file(path) == b"x"


def test_a_checksum_changes_with_the_bytes(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/k"
    fs.pipe_file(path, b"one")
    first = fs.checksum(path)
    assert first == fs.checksum(path, refresh=True)
    assert fs.ukey(path) == fs.ukey(path)
    fs.pipe_file(path, b"two")
    assert fs.checksum(path) != first


def test_a_url_lets_anybody_in(fs: WirespeedFileSystem, bucket: str) -> None:
    path = f"{bucket}/dir/k y"
    fs.pipe_file(path, b"signed")
    for url in (fs.sign(path, expiration=60), fs.url(path, expires=60)):
        with urllib.request.urlopen(url) as answer:
            assert answer.read() == b"signed"
    put = urllib.request.Request(
        fs.url(path, client_method="put_object"), data=b"changed", method="PUT"
    )
    urllib.request.urlopen(put).close()
    assert fs.cat_file(path) == b"changed"
    with pytest.raises(ValueError, match="client_method"):
        fs.url(path, client_method="list_objects")


def test_a_mapper_is_a_dict_of_objects(fs: WirespeedFileSystem, bucket: str) -> None:
    mapper = fs.get_mapper(f"{bucket}/m")
    mapper["a/b"] = b"1"
    mapper["c"] = b"2"
    assert dict(mapper) == {"a/b": b"1", "c": b"2"}
    assert mapper.getitems(["a/b", "nothing"], on_error="omit") == {"a/b": b"1"}
    del mapper["c"]
    assert "c" not in mapper
    with pytest.raises(KeyError):
        mapper["c"]


def test_a_move_deletes_what_it_copied_and_nothing_else(
    fs: WirespeedFileSystem, bucket: str
) -> None:
    fs.pipe({f"{bucket}/d/a": b"a", f"{bucket}/d/e/b": b"b", f"{bucket}/dd": b"dd"})
    fs.mv(f"{bucket}/d", f"{bucket}/t", recursive=True)
    assert fs.find(bucket) == [f"{bucket}/dd", f"{bucket}/t/a", f"{bucket}/t/e/b"]
    # Into a directory that is there, and what a slash at the end of the source says.
    fs.mv(f"{bucket}/t/e", f"{bucket}/t2/", recursive=True)
    assert fs.cat_file(f"{bucket}/t2/e/b") == b"b"
    fs.mv(f"{bucket}/t2/", f"{bucket}/t", recursive=True)
    assert fs.cat_file(f"{bucket}/t/e/b") == b"b"
    for path1, path2 in ((f"{bucket}/t", f"{bucket}/t/in"), (bucket, f"{bucket}/in")):
        with pytest.raises(ValueError, match="itself"):
            fs.mv(path1, path2, recursive=True)
    assert fs.exists(bucket)
    assert fs.find(f"{bucket}/t") == [f"{bucket}/t/a", f"{bucket}/t/e/b"]
    with pytest.raises(FileNotFoundError):
        fs.mv(f"{bucket}/nothing", f"{bucket}/x", recursive=True)


def test_a_move_takes_markers_and_the_object_of_the_directory_name_along(
    origin: servers.Server, options_of: Any
) -> None:
    fs = WirespeedFileSystem(**options_of(origin), skip_instance_cache=True)
    for name in ("mv-from", "mv-to"):
        fs.mkdir(name)
    try:
        fs.pipe({"mv-from/d": b"same", "mv-from/d/a": b"a"})
        origin.boto3().put_object(Bucket="mv-from", Key="d/marker/", Body=b"")
        fs.mv("mv-from/d", "mv-from/t", recursive=True)
        keys = fs.client.list("", bucket="mv-from").keys()
        assert sorted(keys) == ["t", "t/a", "t/marker/"]
        assert fs.cat("mv-from", recursive=True) == {"mv-from/t": b"same", "mv-from/t/a": b"a"}
        fs.mv("mv-from/t/", "mv-from", recursive=True)
        assert fs.find("mv-from") == ["mv-from/a", "mv-from/t"]
        fs.mv("mv-from/a", "mv-from/t/a")
        fs.mv("mv-from", "mv-to/x", recursive=True)
        assert fs.exists("mv-from", refresh=True)
        assert fs.find("mv-from") == []
        assert fs.find("mv-to") == ["mv-to/x/t", "mv-to/x/t/a"]
    finally:
        for name in ("mv-from", "mv-to"):
            fs.rm(name, recursive=True)


def test_nothing_is_moved_onto_itself_or_onto_what_is_moved(
    fs: WirespeedFileSystem, bucket: str
) -> None:
    fs.pipe({f"{bucket}/k": b"k", f"{bucket}/l": b"l", f"{bucket}/d/k": b"other"})
    for other in (f"{bucket}/k", f"s3://{bucket}/k", f"/{bucket}/k", f"wirespeed://{bucket}/k"):
        with pytest.raises(ValueError, match=r"itself|onto"):
            fs.mv(f"{bucket}/k", other)
        with pytest.raises(ValueError, match="onto"):
            fs.mv_file(f"{bucket}/k", other)
    with pytest.raises(ValueError, match="onto"):
        fs.mv([f"{bucket}/k", f"{bucket}/l"], [f"{bucket}/l", f"{bucket}/m"])
    with pytest.raises(ValueError, match="onto"):
        fs.mv([f"{bucket}/k", f"{bucket}/d/k"], f"{bucket}/in/")
    assert fs.cat(bucket, recursive=True) == {
        f"{bucket}/k": b"k",
        f"{bucket}/l": b"l",
        f"{bucket}/d/k": b"other",
    }


def test_a_pattern_of_buckets_removes_nothing(
    fs: WirespeedFileSystem, bucket: str, requests: Any
) -> None:
    fs.pipe_file(f"{bucket}/k", b"k")
    with requests:
        for pattern in ("*", f"{bucket[:-1]}*", f"{bucket[:-1]}?/k", "s3://*/k"):
            with pytest.raises(ValueError, match="buckets"):
                fs.rm([f"{bucket}/k", pattern], recursive=True)
    assert requests.sent == 0
    assert fs.cat_file(f"{bucket}/k") == b"k"


def test_a_leading_slash_makes_no_other_path(fs: WirespeedFileSystem, bucket: str) -> None:
    fs.pipe_file(f"/{bucket}/d/k", b"k")
    assert fs.find(f"/{bucket}/d") == [f"{bucket}/d/k"]
    assert fs.cat(f"/{bucket}/d/k") == b"k"
    assert fs.ls(f"/{bucket}/d", detail=False) == fs.glob(f"/{bucket}/d/*") == [f"{bucket}/d/k"]


def test_a_copy_into_a_bucket_that_is_not_there_is_an_error(
    fs: WirespeedFileSystem, bucket: str
) -> None:
    fs.pipe({f"{bucket}/d/a": b"a", f"{bucket}/d/b": b"b"})
    with pytest.raises(FileNotFoundError):
        fs.copy(f"{bucket}/d", f"{bucket}-not-there/d", recursive=True)
    with pytest.raises(FileNotFoundError):
        fs.mv(f"{bucket}/d", f"{bucket}-not-there/d", recursive=True)
    assert len(fs.find(bucket)) == 2


def test_a_copy_keeps_how_its_source_is_described(
    fs: WirespeedFileSystem, options: dict[str, Any], bucket: str
) -> None:
    fs.pipe_file(f"{bucket}/k", b"k", ContentType="text/csv", Metadata={"a": "b"})
    saying = WirespeedFileSystem(
        **options,
        s3_additional_kwargs={"ContentType": "image/png", "Metadata": {"c": "d"}},
        skip_instance_cache=True,
    )
    saying.copy(f"{bucket}/k", f"{bucket}/copied")
    saying.copy(f"{bucket}/k", f"{bucket}/said", ContentType="text/html", Metadata={"e": "f"})
    saying.mv(f"{bucket}/k", f"{bucket}/moved")
    found = {
        name: (info["ContentType"], info["Metadata"])
        for name in ("copied", "said", "moved")
        for info in [saying.info(f"{bucket}/{name}", refresh=True)]
    }
    assert found == {
        "copied": ("text/csv", {"a": "b"}),
        "said": ("text/html", {"e": "f"}),
        "moved": ("text/csv", {"a": "b"}),
    }


def test_the_objects_that_a_pattern_matches_are_not_looked_for_again(
    fs: WirespeedFileSystem, bucket: str, requests: Any
) -> None:
    fs.pipe({f"{bucket}/d/{number}": b"x" for number in range(20)})
    with requests:
        fs.rm(f"{bucket}/d/*", recursive=True)
    assert requests.sent == 2
    assert fs.find(bucket) == []
