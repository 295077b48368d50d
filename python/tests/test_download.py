"""Objects into files: one, a tree, a list; and keys that no file may have."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import pytest

import wirespeed

MIB = 1 << 20
LARGE = random.Random(7).randbytes(9 * MIB + 3)
TREE = {
    "photos/a.jpg": b"a",
    "photos/empty": b"",
    "photos/2024/b c ä.jpg": b"bc",
    "photos/2024/deep/large": LARGE,
    "photosynthesis": b"not under it",
    "top": b"t",
}


@pytest.fixture
def tree(s3, bucket):
    for key, body in TREE.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body)
    return bucket


def files_below(folder):
    """Every file, temporaries too, by its path below the folder."""
    paths = [path for path in folder.rglob("*") if not path.is_dir()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def await_no_temporaries(folder):
    """What was in flight when a call stopped is dropped behind it, its temporary files too."""
    deadline = time.monotonic() + 5
    while list(folder.rglob(".*.wirespeed-partial")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not list(folder.rglob(".*.wirespeed-partial"))


def under(prefix):
    return {key.removeprefix(prefix): body for key, body in TREE.items() if key.startswith(prefix)}


@pytest.mark.every_store
def test_one_object_goes_to_the_file_that_is_named(verbs, tree, tmp_path):
    target = tmp_path / "new" / "folder" / "file"
    moved = verbs.download(f"s3://{tree}/photos/2024/deep/large", target)
    assert target.read_bytes() == LARGE
    assert (moved.objects, moved.bytes) == (1, len(LARGE))
    verbs.download("top", str(target), bucket=tree)
    assert files_below(tmp_path) == {"new/folder/file": b"t"}


def test_into_a_folder_one_object_keeps_its_name(verbs, tree, tmp_path):
    verbs.download(f"s3://{tree}/photos/a.jpg", tmp_path)
    verbs.download(f"s3://{tree}/photos/empty", f"{tmp_path}/new/")
    assert files_below(tmp_path) == {"a.jpg": b"a", "new/empty": b""}


@pytest.mark.every_store
def test_a_prefix_goes_into_a_folder(verbs, tree, tmp_path):
    told = []
    moved = verbs.download(f"s3://{tree}/photos/", tmp_path / "new", progress=told.append)
    assert files_below(tmp_path / "new") == under("photos/")
    assert (moved.objects, moved.bytes) == (4, 3 + len(LARGE))
    assert (told[-1].objects, told[-1].bytes, told[-1].expected) == (4, moved.bytes, moved.bytes)


@pytest.mark.parametrize("form", ["s3://{}", "s3://{}/", "bucket="])
def test_a_whole_bucket_goes_into_a_folder(verbs, tree, tmp_path, form):
    if form == "bucket=":
        verbs.download("", tmp_path, bucket=tree)
    else:
        verbs.download(form.format(tree), tmp_path)
    assert files_below(tmp_path) == TREE


def test_a_list_goes_where_each_pair_says(verbs, tree, s3, new_bucket, tmp_path):
    other = new_bucket()
    s3.put_object(Bucket=other, Key="x", Body=b"other")
    pairs = [
        (f"s3://{tree}/top", tmp_path / "1"),
        (f"s3://{other}/x", str(tmp_path / "deep" / "2")),
        (f"s3://{tree}/photos/a.jpg", tmp_path / "3"),
    ]
    moved = verbs.download(iter(pairs))
    assert files_below(tmp_path) == {"1": b"t", "deep/2": b"other", "3": b"a"}
    assert (moved.objects, moved.bytes) == (3, 7)
    assert verbs.download([]).objects == 0


def test_small_objects_are_one_request_each(verbs, s3, bucket, stats, tmp_path):
    for number in range(50):
        s3.put_object(Bucket=bucket, Key=f"p/{number:02}", Body=b"x" * number)
    before = stats()["requests"]
    verbs.download(f"s3://{bucket}/p/", tmp_path)
    after = stats()["requests"]
    assert after["get"] - before.get("get", 0) == 50
    assert after["list"] - before.get("list", 0) == 1
    assert after.get("head", 0) == before.get("head", 0)


def test_objects_that_stand_for_folders_are_left_out(verbs, s3, bucket, tmp_path):
    for key in ("p/", "p/a/", "p/a/b"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x" if key[-1] == "b" else b"")
    assert verbs.download(f"s3://{bucket}/p/", tmp_path).objects == 1
    assert files_below(tmp_path) == {"a/b": b"x"}


def test_nothing_under_a_prefix_is_no_error_and_makes_nothing(verbs, bucket, tmp_path):
    moved = verbs.download(f"s3://{bucket}/none/", tmp_path / "new")
    assert (moved.objects, moved.bytes) == (0, 0)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("p/../x", r"`\.\.` component"),
        ("p//etc/x", "absolute"),
        ("p/a//b", "empty component"),
        ("p/./b", r"`\.` component"),
        ("p/a/../../x", r"`\.\.` component"),
    ],
)
def test_a_key_that_would_leave_the_folder_is_refused(verbs, s3, bucket, tmp_path, key, words):
    s3.put_object(Bucket=bucket, Key=key, Body=b"evil")
    root = tmp_path / "outer" / "root"
    with pytest.raises(ValueError, match=words) as raised:
        verbs.download(f"s3://{bucket}/p/", root)
    assert isinstance(raised.value, wirespeed.ConfigError)
    assert files_below(tmp_path) == {}
    verbs.download(f"s3://{bucket}/{key}", tmp_path / "mine")
    assert files_below(tmp_path) == {"mine": b"evil"}


def test_a_way_through_a_symbolic_link_is_refused(verbs, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="p/link/x", Body=b"evil")
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    (root / "link").symlink_to(outside)
    with pytest.raises(ValueError, match="symbolic link"):
        verbs.download(f"s3://{bucket}/p/", root)
    assert files_below(outside) == {}


def test_an_object_without_a_name_for_a_folder_asks_for_one(verbs, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="a/..", Body=b"x")
    with pytest.raises(ValueError, match="name the file"):
        verbs.download(f"s3://{bucket}/a/..", tmp_path)


def test_the_first_failure_stops_and_leaves_no_half_file(misbehaving, tmp_path):
    fault = "action=error:403:AccessDenied,verb=get,key=p/05"
    client, s3 = misbehaving(fault, part_size=MIB)
    for number in range(10):
        s3.put_object(Bucket="scratch", Key=f"p/{number:02}", Body=LARGE[: 2 * MIB])
    with pytest.raises(PermissionError) as raised:
        client.download("s3://scratch/p/", tmp_path / "here")
    assert raised.value.key == "p/05"
    await_no_temporaries(tmp_path / "here")
    left = files_below(tmp_path / "here")
    assert "05" not in left
    assert all(len(name) == 2 and body == LARGE[: 2 * MIB] for name, body in left.items())


def test_ctrl_c_leaves_no_half_file(misbehaving, tmp_path):
    client, s3 = misbehaving("action=stall-after:100000,verb=get", part_size=MIB)
    s3.put_object(Bucket="scratch", Key="p/x", Body=LARGE)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        client.download("s3://scratch/p/", tmp_path / "here")
    await_no_temporaries(tmp_path / "here")
    assert files_below(tmp_path / "here") == {}


def test_what_is_not_there_is_said(verbs, bucket, tmp_path):
    with pytest.raises(FileNotFoundError):
        verbs.download(f"s3://{bucket}/no-such", tmp_path / "new" / "file")
    with pytest.raises(FileNotFoundError):
        verbs.download("s3://no-such-bucket/", tmp_path / "new")
    with pytest.raises(FileNotFoundError):
        verbs.download([(f"s3://{bucket}/no-such", tmp_path / "new" / "file")])
    assert files_below(tmp_path) == {}
    assert not (tmp_path / "new").exists()


def test_where_nothing_can_be_written_it_is_said(verbs, tree, tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    for source, target in [
        (f"s3://{tree}/photos/", tmp_path / "file"),
        (f"s3://{tree}/top", tmp_path / "file" / "x"),
    ]:
        with pytest.raises(wirespeed.LocalIOError):
            verbs.download(source, target)
    assert files_below(tmp_path) == {"file": b"mine"}


def test_a_version_is_of_one_object(verbs, versioned_bucket, s3, tmp_path):
    old = s3.put_object(Bucket=versioned_bucket, Key="k", Body=b"old")["VersionId"]
    s3.put_object(Bucket=versioned_bucket, Key="k", Body=b"new")
    target = tmp_path / "new" / "file"
    moved = verbs.download(f"s3://{versioned_bucket}/k", target, version_id=old)
    assert (target.read_bytes(), moved.objects, moved.bytes) == (b"old", 1, 3)
    with pytest.raises(ValueError, match="one object"):
        verbs.download(f"s3://{versioned_bucket}/", tmp_path, version_id=old)
    with pytest.raises(FileNotFoundError):
        verbs.download(f"s3://{versioned_bucket}/none", tmp_path / "b" / "c", version_id=old)
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("s3://b/k",), TypeError, "where it goes"),
        ((17, "x"), TypeError, "leave out the target"),
        ((17,), TypeError, "not int"),
        (([("s3://b/k", "x")], "target"), TypeError, "leave out the target"),
        ((["s3://b/k"],), TypeError, "item 0 is no pair"),
        (([("s3://b", "x")],), ValueError, "no object"),
        (([("s3://b/k", 5)],), TypeError, "int"),
        (("k", "x"), ValueError, "no location"),
    ],
)
def test_bad_arguments_are_refused(verbs, arguments, error, words):
    with pytest.raises(error, match=words):
        verbs.download(*arguments)
