"""`sync`: what is copied, what is deleted, what never is, and what a cron job is told."""

from __future__ import annotations

import os
import time

import pytest
from files import files_below

MIB = 1 << 20
DAY = 86_400


@pytest.fixture
def s3(server):
    return server.boto3()


def keys_of(s3, bucket: str) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def put(s3, bucket: str, **objects: bytes) -> None:
    for key, body in objects.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body)


def tree(folder, age: float = 0.0, **files: bytes):
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        os.utime(file, (time.time() - age,) * 2)
    return folder


def done(ran) -> list[str]:
    """What was done, without where."""
    return sorted(
        f"{row['operation']} {row['source'].rpartition('/')[2]}"
        for row in ran.json
        if row["type"] == "item"
    )


# ------------------------------------------------------------------ what differs


def test_a_tree_goes_up_and_down_and_then_nothing_is_to_do(ws, s3, bucket, payload, tmp_path):
    files = {"a": b"1", "d/b": b"22", "a.b": b"3", "ü": b"5", "big": payload[: 9 * MIB]}
    up = tree(tmp_path / "up", age=60, **files)
    first = ws("--json", "sync", up, f"s3://{bucket}/in").json[-1]
    assert (first["objects"], first["bytes"]) == (len(files), sum(map(len, files.values())))
    again = ws("--json", "sync", up, f"s3://{bucket}/in").json
    assert [row["type"] for row in again] == ["summary"]
    assert (again[0]["objects"], again[0]["bytes"], again[0]["unchanged"]) == (0, 0, len(files))
    ws("sync", f"s3://{bucket}/in", tmp_path / "down")
    assert files_below(tmp_path / "down") == files
    ran = ws("sync", f"s3://{bucket}/in/", tmp_path / "down", "--delete")
    assert ran.text == "", "a cron job with nothing to tell"
    ws("sync", f"s3://{bucket}/in", f"s3://{bucket}/copy")
    assert ws("--json", "sync", f"s3://{bucket}/in", f"s3://{bucket}/copy").json[0]["objects"] == 0


def test_up_goes_what_is_missing_other_in_size_or_newer(ws, s3, bucket, tmp_path):
    put(s3, bucket, same=b"1", size=b"1", newer=b"1", extra=b"1")
    up = tree(tmp_path / "up", age=DAY, same=b"2", size=b"22", missing=b"1")
    tree(up, age=-DAY, newer=b"2")
    ran = ws("--json", "sync", up, f"s3://{bucket}")
    assert done(ran) == ["upload missing", "upload newer", "upload size"]
    assert s3.get_object(Bucket=bucket, Key="same")["Body"].read() == b"1"
    assert "extra" in keys_of(s3, bucket)


def test_down_comes_what_somebody_changed(ws, s3, bucket, tmp_path):
    put(s3, bucket, same=b"1", size=b"1", touched=b"1", missing=b"1")
    down = tree(tmp_path / "down", age=DAY, same=b"2", size=b"22")
    tree(down, age=-DAY, touched=b"2")
    ran = ws("--json", "sync", f"s3://{bucket}", down)
    assert done(ran) == ["download missing", "download size", "download touched"]
    # What was downloaded has its object's time, so that it is the same from now on.
    assert ws("--json", "sync", f"s3://{bucket}", down).json[0]["objects"] == 0
    exact = ws("--json", "sync", f"s3://{bucket}", down, "--exact-timestamps")
    assert done(exact) == ["download same"]


def test_sizes_alone(ws, s3, bucket, tmp_path):
    put(s3, bucket, a=b"1", b=b"1")
    up = tree(tmp_path / "up", age=-DAY, a=b"2", b=b"22")
    assert done(ws("--json", "sync", up, f"s3://{bucket}", "--size-only")) == ["upload b"]


def test_contents_decide_where_times_mislead(ws, s3, bucket, payload, tmp_path):
    big = payload[: 17 * MIB]
    up = tree(tmp_path / "up", age=DAY, same=b"1", big=big, other=b"1")
    ws("sync", up, f"s3://{bucket}")
    tree(up, age=-DAY, same=b"1", big=big)
    tree(up, age=DAY, other=b"2")
    ran = ws("--json", "sync", up, f"s3://{bucket}", "--checksum")
    assert done(ran) == ["upload other"]
    down = tree(tmp_path / "down", age=-DAY, same=b"1", big=big, other=b"3")
    ran = ws("--json", "sync", f"s3://{bucket}", down, "--checksum")
    assert done(ran) == ["download other"]
    assert (down / "other").read_bytes() == b"2"


def test_what_is_kept_is_compared(ws, s3, bucket, tmp_path):
    up = tree(tmp_path / "up", age=DAY, a=b"1", b=b"1")
    ws("sync", up, f"s3://{bucket}", "--preserve")
    assert ws("--json", "sync", up, f"s3://{bucket}", "--preserve").json[-1]["objects"] == 0
    ws("sync", f"s3://{bucket}", tmp_path / "down", "--preserve")
    for name in "ab":
        was, found = (up / name).stat(), (tmp_path / "down" / name).stat()
        assert abs(was.st_mtime_ns - found.st_mtime_ns) < 1_000_000


# ------------------------------------------------------------------ what is deleted


def test_what_the_source_lacks_is_deleted_where_that_is_asked(ws, s3, bucket, tmp_path):
    put(s3, bucket, **{"in/a": b"1", "in/gone": b"1", "in/kept.log": b"1", "out": b"1"})
    put(s3, bucket, **{"in/d/": b""})
    up = tree(tmp_path / "up", age=DAY, a=b"1")
    ws("sync", up, f"s3://{bucket}/in")
    assert "in/gone" in keys_of(s3, bucket)
    told = ws("sync", up, f"s3://{bucket}/in", "--delete", "--exclude", "*.log", "--dryrun").lines
    assert told == [f"(dryrun) delete: s3://{bucket}/in/gone"]
    ran = ws("--json", "sync", up, f"s3://{bucket}/in", "--delete", "--exclude", "*.log")
    assert done(ran) == ["delete gone"]
    assert (ran.json[-1]["deleted"], ran.json[-1]["objects"]) == (1, 0)
    left = keys_of(s3, bucket)
    assert left == ["in/a", "in/d/", "in/kept.log", "out"]
    down = tree(tmp_path / "down", age=DAY, **{"a": b"1", "gone": b"1", "e/gone": b"1"})
    ws("sync", f"s3://{bucket}/in", down, "--delete")
    assert set(files_below(down)) == {"a", "kept.log"}


def test_more_than_may_be_deleted_is_not(ws, s3, bucket, tmp_path):
    put(s3, bucket, a=b"1", b=b"1", c=b"1")
    up = tree(tmp_path / "up", age=DAY, new=b"1")
    ran = ws("sync", up, f"s3://{bucket}", "--delete", "--max-delete", "2", code=1)
    assert "--max-delete" in ran.err.decode()
    assert keys_of(s3, bucket) == ["a", "b", "c", "new"]
    ws("sync", up, f"s3://{bucket}", "--delete", "--max-delete", "3")
    assert keys_of(s3, bucket) == ["new"]


def test_a_source_that_is_not_there_deletes_nothing(ws, s3, bucket, tmp_path):
    put(s3, bucket, a=b"1")
    ws("sync", tmp_path / "none", f"s3://{bucket}", "--delete", code=3)
    ws("sync", f"s3://{bucket}-none", tree(tmp_path / "down", a=b"1"), "--delete", code=3)
    assert keys_of(s3, bucket) == ["a"]
    assert set(files_below(tmp_path / "down")) == {"a"}


def test_its_own_source_is_not_deleted(ws, s3, bucket):
    put(s3, bucket, **{"a/x": b"1"})
    assert "itself" in ws("sync", f"s3://{bucket}/a", f"s3://{bucket}", "--delete", code=2).text
    assert "within" in ws("sync", f"s3://{bucket}", f"s3://{bucket}/a", code=2).text
    assert keys_of(s3, bucket) == ["a/x"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_folder_deletes_nothing(ws, s3, bucket, tmp_path):
    up = tree(tmp_path / "up", age=DAY, **{"a": b"1", "d/b": b"1"})
    ws("sync", up, f"s3://{bucket}")
    (up / "a").unlink()
    (up / "d").chmod(0)
    ran = ws("sync", up, f"s3://{bucket}", "--delete", code=1)
    (up / "d").chmod(0o700)
    assert "nothing was deleted" in ran.text
    assert keys_of(s3, bucket) == ["a", "d/b"]


def test_a_listing_that_fails_on_a_late_page_deletes_nothing(origin_memory, wirespeed_at, tmp_path):
    ws, s3 = wirespeed_at(origin_memory, origin_memory.endpoint), origin_memory.boto3()
    s3.create_bucket(Bucket="late-source")
    s3.create_bucket(Bucket="late-target")
    (tmp_path / "up").mkdir()
    for n in range(2500):
        (tmp_path / "up" / f"{n:05}").write_bytes(b"")
    ws("-q", "cp", "-r", tmp_path / "up", "s3://late-source")
    s3.put_object(Bucket="late-target", Key="extra", Body=b"")
    s3.put_object(Bucket="late-target", Key="00000-extra", Body=b"")
    down = tmp_path / "down"
    down.mkdir()
    (down / "extra").write_bytes(b"")
    fault = {
        "verb": "list", "bucket": "late-source", "nth": 3, "action": "error:500:InternalError",
    }  # fmt: skip
    knobs = ["--set", "max_attempts=1"]
    for target in ["s3://late-target", down]:
        with origin_memory.misbehaving(fault):
            ran = ws(*knobs, "-q", "sync", "s3://late-source", target, "--delete", code=3)
        assert "InternalError" in ran.err.decode()
    for key in ["extra", "00000-extra"]:
        s3.head_object(Bucket="late-target", Key=key)
    assert (down / "extra").exists()


# ------------------------------------------------------------------ bad input


def test_names_that_cannot_go_are_told_and_the_rest_goes(ws, s3, bucket, tmp_path):
    up = tree(tmp_path / "up", age=DAY, **{"a": b"1", "z": b"1"})
    (up / "d").mkdir()
    (up / "d" / "loop").symlink_to("..")
    os.mkfifo(up / "pipe")
    with open(os.fsencode(up) + b"/\xff", "wb"):
        pass
    ran = ws("sync", up, f"s3://{bucket}", code=1)
    assert keys_of(s3, bucket) == ["a", "z"]
    assert "not UTF-8" in ran.text
    assert "leads back" in ran.text


def test_an_object_and_a_folder_of_one_name(origin_memory, wirespeed_at, tmp_path):
    ws, s3 = wirespeed_at(origin_memory, origin_memory.endpoint), origin_memory.boto3()
    s3.create_bucket(Bucket="both")
    put(s3, "both", **{"a": b"1", "a/b": b"1", "c": b"1"})
    ran = ws("sync", "s3://both", tmp_path / "down", code=1)
    assert "a/b" in ran.text
    assert set(files_below(tmp_path / "down")) == {"a", "c"}


def test_some_prefixes_are_denied(origin_memory, wirespeed_at, tmp_path):
    ws, s3 = wirespeed_at(origin_memory, origin_memory.endpoint), origin_memory.boto3()
    s3.create_bucket(Bucket="denied")
    put(s3, "denied", **{"open/a": b"1", "shut/b": b"1", "shut/c": b"1", "z": b"1"})
    faults = [
        {"verb": "get", "key": key, "action": "error:403:AccessDenied"}
        for key in ["shut/b", "shut/c"]
    ]
    with origin_memory.misbehaving(*faults):
        ran = ws("sync", "s3://denied", tmp_path / "down", code=1)
    assert ran.err.decode().count("AccessDenied") == 2
    assert set(files_below(tmp_path / "down")) == {"open/a", "z"}


def test_a_storm_of_throttling_is_sat_out(origin_memory, wirespeed_at, tmp_path):
    ws, s3 = wirespeed_at(origin_memory, origin_memory.endpoint), origin_memory.boto3()
    s3.create_bucket(Bucket="storm")
    up = tree(tmp_path / "up", age=DAY, **{f"{n:03}": b"1" for n in range(200)})
    storm = {"verb": "put", "action": "error:503:SlowDown", "times": 60}
    with origin_memory.misbehaving(storm):
        ws("-q", "--set", "max_attempts=12", "sync", up, "s3://storm")
    assert len(keys_of(s3, "storm")) == 200
