"""What is there: info, ls, find, glob, du, walk, and how fresh it is."""

from __future__ import annotations

import datetime
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import servers

from wirespeed.fsspec import WirespeedFileSystem

KEYS = [
    "a.csv",
    "b.csv",
    "dir/a.csv",
    "dir/c.txt",
    "dir/sub/deep/d.csv",
    "dir/sub/e.csv",
    "dirx/f.csv",
]


@pytest.fixture
def tree(fs: WirespeedFileSystem, bucket: str) -> str:
    """A bucket with a few levels."""
    fs.pipe({f"{bucket}/{key}": key.encode() for key in KEYS})
    return bucket


def test_an_entry_has_the_keys_of_s3fs(fs: WirespeedFileSystem, bucket: str) -> None:
    fs.pipe_file(f"{bucket}/d/k", b"12345", ContentType="text/plain", Metadata={"who": "me"})
    info = fs.info(f"s3://{bucket}/d/k")
    assert info["name"] == info["Key"] == f"{bucket}/d/k"
    assert info["size"] == info["Size"] == 5
    assert info["type"] == "file"
    assert info["ETag"].startswith('"')
    assert info["LastModified"].tzinfo is not None
    assert info["StorageClass"] == "STANDARD"
    assert info["ContentType"] == "text/plain"
    assert info["Metadata"] == {"who": "me"}
    (listed,) = fs.ls(f"{bucket}/d")
    assert {k: listed[k] for k in listed if k != "LastModified"} == {
        k: info[k] for k in listed if k != "LastModified"
    }
    assert abs(listed["LastModified"] - info["LastModified"]) < datetime.timedelta(seconds=1)
    assert fs.modified(f"{bucket}/d/k") == listed["LastModified"]
    assert fs.created(f"{bucket}/d/k") == listed["LastModified"]
    directory = fs.info(f"{bucket}/d")
    assert directory["type"] == "directory"
    assert directory["size"] == 0
    assert fs.info(bucket)["type"] == "directory"
    assert fs.info("")["type"] == "directory"


def test_what_is_there_is_told_from_what_is_not(fs: WirespeedFileSystem, tree: str) -> None:
    assert fs.exists(tree)
    assert fs.exists(f"{tree}/dir")
    assert fs.exists(f"{tree}/dir/a.csv")
    assert not fs.exists(f"{tree}/di")
    assert not fs.exists("no-such-bucket-here")
    assert not fs.exists("no-such-bucket-here/key")
    assert fs.isdir(f"{tree}/dir")
    assert fs.isdir(tree)
    assert fs.isdir("")
    assert not fs.isdir(f"{tree}/dir/a.csv")
    assert not fs.isdir("no-such-bucket-here")
    assert fs.isfile(f"{tree}/dir/a.csv")
    assert not fs.isfile(f"{tree}/dir")
    assert not fs.isfile(tree)
    assert fs.size(f"{tree}/dir/a.csv") == 9
    assert fs.sizes([f"{tree}/{key}" for key in KEYS]) == [len(key) for key in KEYS]
    for look in (fs.info, fs.ls, fs.size, fs.modified):
        with pytest.raises(FileNotFoundError):
            look(f"{tree}/nothing")
    with pytest.raises(IsADirectoryError):
        fs.modified(f"{tree}/dir")


def test_ls_gives_one_level(fs: WirespeedFileSystem, tree: str) -> None:
    assert fs.ls(tree, detail=False) == [
        f"{tree}/{name}" for name in ("a.csv", "b.csv", "dir", "dirx")
    ]
    assert [(one["name"], one["type"]) for one in fs.ls(f"{tree}/dir/")] == [
        (f"{tree}/dir/a.csv", "file"),
        (f"{tree}/dir/c.txt", "file"),
        (f"{tree}/dir/sub", "directory"),
    ]
    assert fs.ls(f"{tree}/a.csv", detail=False) == [f"{tree}/a.csv"]
    assert tree in fs.ls("", detail=False)
    with pytest.raises(FileNotFoundError):
        fs.ls("no-such-bucket-here")


def test_walk_goes_level_by_level_and_can_be_pruned(fs: WirespeedFileSystem, tree: str) -> None:
    assert list(fs.walk(f"{tree}/dir")) == [
        (f"{tree}/dir", ["sub"], ["a.csv", "c.txt"]),
        (f"{tree}/dir/sub", ["deep"], ["e.csv"]),
        (f"{tree}/dir/sub/deep", [], ["d.csv"]),
    ]
    seen = []
    for root, dirs, _ in fs.walk(tree):
        seen.append(root)
        dirs.clear()
    assert seen == [tree]


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ({}, KEYS),
        ({"maxdepth": 1}, ["a.csv", "b.csv"]),
        ({"maxdepth": 2}, ["a.csv", "b.csv", "dir/a.csv", "dir/c.txt", "dirx/f.csv"]),
        ({"prefix": "dir"}, KEYS[2:]),
        ({"prefix": "a"}, ["a.csv"]),
        ({"maxdepth": 1, "withdirs": True}, ["", "a.csv", "b.csv", "dir", "dirx"]),
        ({"maxdepth": 1, "withdirs": True, "prefix": "dir"}, ["dir", "dirx"]),
    ],
)
def test_find_gives_what_is_below(
    fs: WirespeedFileSystem, tree: str, how: dict[str, Any], found: list[str]
) -> None:
    paths = [f"{tree}/{key}".rstrip("/") for key in found]
    assert fs.find(tree, **how) == paths
    detailed = fs.find(tree, detail=True, **how)
    assert list(detailed) == paths
    assert all(entry["name"] == path for path, entry in detailed.items())


def test_find_gives_directories_too_when_asked(fs: WirespeedFileSystem, tree: str) -> None:
    assert fs.find(f"{tree}/dir", withdirs=True) == [
        f"{tree}/{path}"
        for path in (
            "dir",
            "dir/a.csv",
            "dir/c.txt",
            "dir/sub",
            "dir/sub/deep",
            "dir/sub/deep/d.csv",
            "dir/sub/e.csv",
        )
    ]
    assert fs.find(f"{tree}/a.csv") == [f"{tree}/a.csv"]
    assert fs.find(f"{tree}/nothing") == []
    with pytest.raises(ValueError, match="name one"):
        fs.find("")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.csv", ["a.csv", "b.csv"]),
        ("*", ["a.csv", "b.csv", "dir", "dirx"]),
        ("*/", ["dir", "dirx"]),
        ("dir/*", ["dir/a.csv", "dir/c.txt", "dir/sub"]),
        ("*/*.csv", ["dir/a.csv", "dirx/f.csv"]),
        ("dir/?.csv", ["dir/a.csv"]),
        ("dir/[a-c].*", ["dir/a.csv", "dir/c.txt"]),
        ("dir/**.csv", None),
        ("**/*.csv", ["dir/a.csv", "dir/sub/deep/d.csv", "dir/sub/e.csv", "dirx/f.csv"]),
        ("dir/sub/**", ["dir/sub", "dir/sub/deep", "dir/sub/deep/d.csv", "dir/sub/e.csv"]),
        ("a.csv", ["a.csv"]),
        ("nothing*", []),
        ("nothing", []),
    ],
)
def test_glob_matches_as_fsspecs_own_does(
    fs: WirespeedFileSystem, tree: str, pattern: str, found: list[str] | None
) -> None:
    if found is None:
        with pytest.raises(ValueError, match=r"\*\*"):
            fs.glob(f"{tree}/{pattern}")
        return
    matched = fs.glob(f"{tree}/{pattern}")
    if pattern == "**/*.csv":  # fsspec lets ** stand for no level, too
        found = [*["a.csv", "b.csv"], *found]
    assert matched == [f"{tree}/{key}" for key in found]
    detailed = fs.glob(f"{tree}/{pattern}", detail=True)
    assert list(detailed) == matched
    assert all(entry["name"] == path for path, entry in detailed.items())


def test_du_adds_sizes_up(fs: WirespeedFileSystem, tree: str) -> None:
    assert fs.du(tree) == sum(map(len, KEYS))
    assert fs.du(f"{tree}/dir", total=False) == {
        f"{tree}/{key}": len(key) for key in KEYS if key.startswith("dir/")
    }
    assert fs.du(tree, maxdepth=1) == 10
    assert fs.du(f"{tree}/a.csv") == 5
    assert fs.du(f"{tree}/nothing") == 0


def test_a_tree_is_one_request_whatever_its_depth(
    fs: WirespeedFileSystem, tree: str, requests: Any
) -> None:
    for look in (
        lambda: fs.find(tree),
        lambda: fs.find(tree, detail=True, withdirs=True),
        lambda: fs.glob(f"{tree}/*/*.csv"),
        lambda: fs.glob(f"{tree}/**"),
        lambda: fs.du(tree),
        lambda: fs.du(tree, total=False),
    ):
        with requests:
            look()
        assert requests.sent == 1


def test_what_is_there_is_told_in_a_request_or_two(
    fs: WirespeedFileSystem, tree: str, requests: Any
) -> None:
    for look, sent in (
        (lambda: fs.isdir(f"{tree}/dir"), 1),
        (lambda: fs.isdir(tree), 1),
        (lambda: fs.isfile(f"{tree}/dir/a.csv"), 1),
        (lambda: fs.exists(f"{tree}/dir/a.csv"), 1),
        (lambda: fs.exists(f"{tree}/dir"), 2),
        (lambda: fs.ls(f"{tree}/dir"), 1),
    ):
        with requests:
            look()
        assert requests.sent == sent


def test_a_key_that_stands_for_a_directory_is_one(fs: WirespeedFileSystem, bucket: str) -> None:
    fs.touch(f"{bucket}/empty/")
    fs.touch(f"{bucket}/dir/sub/")
    fs.pipe_file(f"{bucket}/dir/file", b"x")
    assert fs.isdir(f"{bucket}/empty")
    assert fs.info(f"{bucket}/empty")["type"] == "directory"
    assert fs.ls(f"{bucket}/empty") == []
    assert fs.find(bucket) == [f"{bucket}/dir/file"]
    assert fs.find(f"{bucket}/empty") == []
    assert fs.ls(f"{bucket}/dir", detail=False) == [f"{bucket}/dir/file", f"{bucket}/dir/sub"]
    assert fs.find(bucket, withdirs=True) == [
        bucket,
        *(f"{bucket}/{name}" for name in ("dir", "dir/file", "dir/sub", "empty")),
    ]
    fs.rm(f"{bucket}/empty", recursive=True)
    fs.rm(f"{bucket}/dir", recursive=True)
    assert fs.find(bucket, withdirs=True) == []


def test_a_listing_is_kept_until_something_is_written_below(
    fs: WirespeedFileSystem, bucket: str, requests: Any
) -> None:
    fs.pipe_file(f"{bucket}/d/a", b"1")
    with requests:
        assert fs.ls(f"{bucket}/d", detail=False) == [f"{bucket}/d/a"]
        assert fs.ls(f"{bucket}/d", detail=False) == [f"{bucket}/d/a"]
        assert fs.info(f"{bucket}/d/a")["size"] == 1
        assert fs.isfile(f"{bucket}/d/a")
        assert fs.isdir(f"{bucket}/d")
    assert requests.sent == 1
    fs.pipe_file(f"{bucket}/d/b", b"22")
    assert fs.ls(f"{bucket}/d", detail=False) == [f"{bucket}/d/a", f"{bucket}/d/b"]
    with fs.open(f"{bucket}/d/e/c", "wb") as file:
        file.write(b"333")
    assert fs.ls(f"{bucket}/d", detail=False)[-1] == f"{bucket}/d/e"
    fs.rm(f"{bucket}/d/e", recursive=True)
    assert fs.ls(f"{bucket}/d", detail=False) == [f"{bucket}/d/a", f"{bucket}/d/b"]


def test_there_are_ways_to_be_fresh(
    fs: WirespeedFileSystem, options: dict[str, Any], bucket: str
) -> None:
    elsewhere = WirespeedFileSystem(**options, use_listings_cache=False, skip_instance_cache=True)
    elsewhere.pipe_file(f"{bucket}/d/a", b"1")
    assert fs.ls(f"{bucket}/d", detail=False) == [f"{bucket}/d/a"]
    elsewhere.pipe_file(f"{bucket}/d/a", b"22")
    elsewhere.pipe_file(f"{bucket}/d/b", b"1")
    # What is not in the listing is asked for; what is in it may be as old as the listing.
    assert fs.exists(f"{bucket}/d/b")
    assert fs.info(f"{bucket}/d/b")["size"] == 1
    assert fs.info(f"{bucket}/d/a")["size"] == 1
    assert fs.ls(f"{bucket}/d", detail=False) == [f"{bucket}/d/a"]
    assert fs.info(f"{bucket}/d/a", refresh=True)["size"] == 2
    assert len(fs.ls(f"{bucket}/d", refresh=True)) == 2
    elsewhere.rm(f"{bucket}/d/b")
    assert len(fs.ls(f"{bucket}/d")) == 2
    fs.invalidate_cache()
    assert len(fs.ls(f"{bucket}/d")) == 1
    assert elsewhere.ls(f"{bucket}/d", detail=False) == [f"{bucket}/d/a"]
    elsewhere.rm(f"{bucket}/d/a")
    assert not elsewhere.exists(f"{bucket}/d/a")
    assert not fs.exists(f"{bucket}/d/a", refresh=True)


def test_listings_expire(options: dict[str, Any], fs: WirespeedFileSystem, bucket: str) -> None:
    brief = WirespeedFileSystem(**options, listings_expiry_time=0, skip_instance_cache=True)
    fs.pipe_file(f"{bucket}/a", b"")
    assert len(brief.ls(bucket)) == 1
    fs.pipe_file(f"{bucket}/b", b"")
    assert len(brief.ls(bucket)) == 2
    assert WirespeedFileSystem(**options).dircache.listings_expiry_time == 60
    forever = WirespeedFileSystem(**options, listings_expiry_time=None)
    assert forever.dircache.listings_expiry_time is None


AWKWARD = [
    "space in it",
    "plus+and%20percent%",
    "ünï-😀",
    "quote'\"and&amp;<tag>",
    "hash#and?question",
    "semi;comma,dollar$",
    "tab\there",
    "back\\slash",
]


def test_awkward_keys_go_round(
    fs: WirespeedFileSystem, bucket: str, server: servers.Server
) -> None:
    # versitygw keeps objects as files, and takes two slashes for one.
    keys = AWKWARD if server.name == "versitygw" else [*AWKWARD, "a//b"]
    paths = [f"{bucket}/d/{key}" for key in keys]
    for path in paths:
        fs.pipe_file(path, path.encode())
        assert fs.cat_file(path) == path.encode()
        assert fs.info(path)["size"] == len(path.encode())
    assert fs.find(f"{bucket}/d") == sorted(paths)
    assert fs.cat(paths) == {path: path.encode() for path in paths}
    fs.cp_file(paths[2], f"{bucket}/copy + of it")
    assert fs.cat_file(f"{bucket}/copy + of it") == paths[2].encode()
    fs.rm(paths)
    assert fs.find(f"{bucket}/d") == []


def test_an_empty_listing_is_not_kept(
    fs: WirespeedFileSystem, options: dict[str, Any], bucket: str
) -> None:
    elsewhere = WirespeedFileSystem(**options, skip_instance_cache=True)
    for look in (fs.ls, lambda path: fs.find(path, detail=True), lambda path: fs.find(path, 1)):
        assert not look(bucket)
    elsewhere.pipe_file(f"{bucket}/k", b"k")
    assert fs.ls(bucket, detail=False) == [f"{bucket}/k"]


def test_a_listing_that_a_write_overtook_is_not_kept(fs: WirespeedFileSystem, bucket: str) -> None:
    fs.pipe_file(f"{bucket}/a", b"a")
    for plan in (
        fs._plan_entries(bucket, False, False),
        fs._plan_find_entries(bucket, 1, False, "", True),
        fs._plan_find_entries(bucket, None, False, "", True),
    ):
        answer = next(plan).block(fs.client)
        fs.rm_file(f"{bucket}/a")
        with pytest.raises(StopIteration):
            plan.send(answer)
        assert not fs.exists(f"{bucket}/a")
        fs.pipe_file(f"{bucket}/a", b"a")


def test_listings_are_kept_and_forgotten_by_many_threads(
    fs: WirespeedFileSystem, options: dict[str, Any], bucket: str
) -> None:
    brief = WirespeedFileSystem(**options, listings_expiry_time=1e-5, skip_instance_cache=True)
    entries = [{"name": f"{bucket}/d/k", "type": "file", "size": 1}]

    def work(_: int) -> None:
        for _ in range(2000):
            brief._remember(f"{bucket}/d", entries, brief._writes)
            brief._in_cache(f"{bucket}/d/k")
            brief._forget([f"{bucket}/d/k"], below=True)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_of_an_object_and_a_directory_of_one_name_the_object_is_told(
    origin: servers.Server, options_of: Any
) -> None:
    fs = WirespeedFileSystem(**options_of(origin), skip_instance_cache=True)
    bucket = f"b-{uuid.uuid4().hex[:16]}"
    fs.mkdir(bucket)
    fs.pipe({f"{bucket}/d": b"object", f"{bucket}/d/k": b"k"})
    for _ in range(2):
        assert fs.info(f"{bucket}/d")["type"] == "file"
        assert fs.isfile(f"{bucket}/d")
        fs.ls(bucket)
    fs.rm(bucket, recursive=True)
