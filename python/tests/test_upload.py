"""Files into objects: one, a tree, a list."""

from __future__ import annotations

import os
import random
import socket

import pytest

import wirespeed

MIB = 1 << 20
LARGE = random.Random(8).randbytes(9 * MIB + 3)
TREE = {
    "a.txt": b"a",
    "empty": b"",
    "sub/b c ä.json": b"{}",
    "sub/deep/large": LARGE,
    ".hidden": b"h",
}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "folder"
    for name, body in TREE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return folder


def objects_in(s3, bucket):
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
    return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


@pytest.mark.every_store
def test_a_folder_goes_under_a_prefix(verbs, s3, bucket, folder):
    told = []
    moved = verbs.upload(folder, f"s3://{bucket}/deep/er", progress=told.append)
    assert objects_in(s3, bucket) == {f"deep/er/{name}": body for name, body in TREE.items()}
    assert (moved.objects, moved.bytes) == (5, 4 + len(LARGE))
    assert (told[-1].objects, told[-1].bytes) == (5, moved.bytes)


@pytest.mark.parametrize("target", ["s3://{}", "s3://{}/", None])
def test_a_folder_goes_to_a_whole_bucket(verbs, s3, bucket, folder, target):
    if target is None:
        verbs.upload(str(folder), bucket=bucket)
    else:
        verbs.upload(str(folder), target.format(bucket))
    assert objects_in(s3, bucket) == TREE


@pytest.mark.every_store
def test_one_file_goes_to_the_key_that_is_named_or_keeps_its_name(verbs, s3, bucket, folder):
    moved = verbs.upload(folder / "sub" / "deep" / "large", f"s3://{bucket}/k")
    assert (moved.objects, moved.bytes) == (1, len(LARGE))
    verbs.upload(folder / "a.txt", f"s3://{bucket}/p/")
    verbs.upload(folder / "empty", f"s3://{bucket}")
    verbs.upload(folder / "a.txt", "x", bucket=bucket)
    assert objects_in(s3, bucket) == {"k": LARGE, "p/a.txt": b"a", "empty": b"", "x": b"a"}


def test_a_list_goes_where_each_pair_says(verbs, s3, new_bucket, folder):
    one, other = new_bucket(), new_bucket()
    moved = verbs.upload(
        [
            (folder / "a.txt", f"s3://{one}/1"),
            (str(folder / "empty"), f"s3://{other}/2"),
            (folder / ".hidden", f"s3://{one}/3"),
        ]
    )
    assert objects_in(s3, one) == {"1": b"a", "3": b"h"}
    assert objects_in(s3, other) == {"2": b""}
    assert (moved.objects, moved.bytes) == (3, 2)
    assert verbs.upload([]).objects == 0


def test_the_media_type_is_guessed_from_the_name(verbs, s3, bucket, folder):
    verbs.upload(folder, f"s3://{bucket}")
    verbs.upload(folder / "a.txt", f"s3://{bucket}/one")
    verbs.upload([(folder / "empty", f"s3://{bucket}/page.html")])
    verbs.upload(folder / "a.txt", f"s3://{bucket}/said", content_type="x/y", metadata={"a": "b"})
    kinds = {
        key: s3.head_object(Bucket=bucket, Key=key)["ContentType"]
        for key in ("a.txt", "sub/b c ä.json", "one", "page.html", "said")
    }
    assert kinds == {
        "a.txt": "text/plain",
        "sub/b c ä.json": "application/json",
        "one": "text/plain",
        "page.html": "text/html",
        "said": "x/y",
    }
    assert s3.head_object(Bucket=bucket, Key="said")["Metadata"] == {"a": "b"}


def test_links_are_followed_and_what_is_no_file_is_left_out(verbs, s3, bucket, folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "x").write_bytes(b"x")
    (folder / "link").symlink_to(other)
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(folder / "s"))
        verbs.upload(folder, f"s3://{bucket}")
    assert objects_in(s3, bucket) == {**TREE, "link/x": b"x"}


def test_what_cannot_be_read_stops_and_says_so(verbs, s3, bucket, folder, tmp_path):
    (folder / "b-broken").symlink_to("nowhere")
    with pytest.raises(wirespeed.LocalIOError, match="b-broken") as raised:
        verbs.upload(folder, f"s3://{bucket}")
    assert raised.value.errno == 2
    (folder / "b-broken").unlink()
    (folder / "circle").symlink_to(".")
    with pytest.raises(wirespeed.LocalIOError, match="leads back"):
        verbs.upload(folder, f"s3://{bucket}")
    with pytest.raises(wirespeed.LocalIOError, match="no-such"):
        verbs.upload(tmp_path / "no-such", f"s3://{bucket}/k")
    with pytest.raises(wirespeed.LocalIOError, match="no-such"):
        verbs.upload([(tmp_path / "no-such", f"s3://{bucket}/k")])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(wirespeed.LocalIOError):
        verbs.upload(tmp_path / "pipe", f"s3://{bucket}/k")
    assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []


def test_a_name_that_cannot_be_a_key_is_refused(verbs, bucket, tmp_path):
    path = os.fsencode(tmp_path) + b"/d-\xff"
    with open(path, "wb"):
        pass
    with pytest.raises(ValueError, match="rename"):
        verbs.upload(tmp_path, f"s3://{bucket}")
    verbs.upload(os.fsdecode(path), f"s3://{bucket}/k")


def test_the_first_failure_stops_and_leaves_no_parts(misbehaving, tmp_path):
    fault = "action=error:403:AccessDenied,verb=put,key=p/05"
    settings = {"part_size": 5 * MIB, "multipart_threshold": 5 * MIB}
    client, s3 = misbehaving(fault, **settings)
    here = tmp_path / "here"
    here.mkdir()
    for number in range(10):
        (here / f"{number:02}").write_bytes(b"small" if number == 5 else LARGE)
    with pytest.raises(PermissionError) as raised:
        client.upload(here, "s3://scratch/p")
    assert raised.value.key == "p/05"
    client.close()
    assert s3.list_multipart_uploads(Bucket="scratch").get("Uploads", []) == []
    left = objects_in(s3, "scratch")
    assert "p/05" not in left
    assert all(body == LARGE for body in left.values())


def test_an_empty_folder_is_nothing_to_do(verbs, s3, bucket, tmp_path):
    moved = verbs.upload(tmp_path, f"s3://{bucket}/p")
    assert (moved.objects, moved.bytes) == (0, 0)
    assert repr(moved) == "<wirespeed.Transferred objects=0 bytes=0>"
    assert objects_in(s3, bucket) == {}


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("file",), TypeError, "where it goes"),
        ((17, "s3://b/k"), TypeError, "leave out the target"),
        ((17,), TypeError, "not int"),
        ((["file"],), TypeError, "item 0 is no pair"),
        (([("file", "s3://b")],), ValueError, "no object"),
        (([(5, "s3://b/k")],), TypeError, "int"),
        (("file", "k"), ValueError, "no location"),
    ],
)
def test_bad_arguments_are_refused(verbs, arguments, error, words):
    with pytest.raises(error, match=words):
        verbs.upload(*arguments)
