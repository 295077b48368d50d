"""Every verb of the command line against every server."""

from __future__ import annotations

import hashlib

import pytest
from files import files_below

MIB = 1 << 20


@pytest.fixture
def s3(server):
    return server.boto3()


def keys_of(s3, bucket: str) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


@pytest.mark.parametrize("size", [0, 1, 5, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 40 * MIB])
def test_a_file_goes_up_and_comes_down(ws, s3, bucket, payload, tmp_path, size):
    (tmp_path / "up").write_bytes(payload[:size])
    ws("cp", tmp_path / "up", f"s3://{bucket}/k")
    stored = s3.get_object(Bucket=bucket, Key="k")["Body"].read()
    assert stored == payload[:size]
    ws("cp", f"s3://{bucket}/k", tmp_path / "down" / "k")
    assert files_below(tmp_path / "down") == {"k": payload[:size]}
    assert ws("cat", f"s3://{bucket}/k").out == payload[:size]


def test_part_size_and_concurrency_change_no_byte(ws, bucket, payload, tmp_path):
    (tmp_path / "up").write_bytes(payload)
    knobs = ["--part-size", "5MiB", "--concurrency", "3", "--memory", "32MiB"]
    ws(*knobs, "cp", tmp_path / "up", f"s3://{bucket}/k")
    ws(*knobs, "cp", f"s3://{bucket}/k", tmp_path / "down")
    assert (tmp_path / "down").read_bytes() == payload


def test_a_file_that_was_there_is_replaced_whole(ws, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="k", Body=b"new")
    (tmp_path / "k").write_bytes(b"something longer that was there before")
    ws("cp", f"s3://{bucket}/k", tmp_path / "k")
    assert files_below(tmp_path) == {"k": b"new"}


def test_names_follow_from_a_folder(ws, s3, bucket, tmp_path):
    (tmp_path / "some.txt").write_bytes(b"text")
    ws("cp", tmp_path / "some.txt", f"s3://{bucket}/in/")
    assert keys_of(s3, bucket) == ["in/some.txt"]
    (tmp_path / "down").mkdir()
    ws("cp", f"s3://{bucket}/in/some.txt", tmp_path / "down")
    assert files_below(tmp_path / "down") == {"some.txt": b"text"}


def test_a_tree_goes_up_and_comes_down(ws, s3, bucket, payload, tmp_path):
    tree = {
        "one": b"1", "empty": b"", "deep/er/two": b"22", "sp ace/pl+us": b"3",
        "per%41cent": b"4", "ümläut/🚀": b"5", "big": payload[: 20 * MIB],
    }  # fmt: skip
    for name, content in tree.items():
        file = tmp_path / "up" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    ws("cp", tmp_path / "up", f"s3://{bucket}/in/it", "--recursive")
    assert keys_of(s3, bucket) == sorted((f"in/it/{name}" for name in tree), key=str.encode)
    ws("cp", f"s3://{bucket}/in/it", tmp_path / "down", "--recursive")
    assert files_below(tmp_path / "down") == tree


def test_more_keys_than_a_page(ws, s3, bucket, tmp_path):
    (tmp_path / "up").mkdir()
    for n in range(1050):
        (tmp_path / "up" / f"k{n:05}").write_bytes(b"%d" % n)
    ws("cp", tmp_path / "up", f"s3://{bucket}", "--recursive")
    assert len(ws("ls", f"s3://{bucket}").lines) == 1050
    ws("cp", f"s3://{bucket}", tmp_path / "down", "--recursive")
    assert files_below(tmp_path / "down") == files_below(tmp_path / "up")
    ws("rm", f"s3://{bucket}", "--recursive")
    assert keys_of(s3, bucket) == []


def test_ls(ws, s3, bucket):
    for key in ["a/1", "a/b/2", "c"]:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x" * 7)
    assert any(bucket in line for line in ws("ls").lines)
    top = ws("ls", f"s3://{bucket}").lines
    assert len(top) == 2
    assert "a/" in top[0]
    assert "c" in top[1]
    assert "7" in top[1]
    everything = ws("ls", f"s3://{bucket}", "--recursive").lines
    assert [line.split()[-1].rpartition(f"{bucket}/")[2] for line in everything] == [
        "a/1", "a/b/2", "c",
    ]  # fmt: skip
    assert len(ws("ls", f"s3://{bucket}/a/", "--recursive").lines) == 2


def test_ls_as_json(ws, s3, bucket):
    for key in ["a/1", "new\nline", "ümläut 🚀"]:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    rows = ws("--json", "ls", f"s3://{bucket}", "--recursive").json
    assert {row["key"]: row["size"] for row in rows} == {
        key: len(key.encode()) for key in ["a/1", "new\nline", "ümläut 🚀"]
    }


def test_stat(ws, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"12345", ContentType="text/x-thing")
    plain = ws("stat", f"s3://{bucket}/k").text
    etag = hashlib.md5(b"12345").hexdigest()
    assert etag in plain
    assert "text/x-thing" in plain
    (row,) = ws("--json", "stat", f"s3://{bucket}/k").json
    assert row["size"] == 5
    assert etag in row["etag"]


def test_rm(ws, s3, bucket):
    for key in ["a/1", "a/2", "ab", "c"]:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    ws("rm", f"s3://{bucket}/c")
    assert keys_of(s3, bucket) == ["a/1", "a/2", "ab"]
    ws("rm", f"s3://{bucket}/a/", "--recursive")
    assert keys_of(s3, bucket) == ["ab"]


def test_buckets_come_and_go(ws, s3, bucket):
    other = f"{bucket}-2"
    ws("mb", f"s3://{other}")
    s3.put_object(Bucket=other, Key="k", Body=b"x")
    assert "BucketNotEmpty" in ws("rb", f"s3://{other}", code=3).text
    ws("rm", f"s3://{other}/k")
    ws("rb", f"s3://{other}")
    assert other not in [one["Name"] for one in s3.list_buckets()["Buckets"]]


def test_bench_prints_its_one_object(ws, s3, bucket, payload):
    s3.put_object(Bucket=bucket, Key="k", Body=payload)
    argv = ["bench", "get", f"s3://{bucket}/k", "--sink", "discard", "--rounds", "3", "--json"]
    (report,) = ws(*argv).json
    assert report["operation"] == "get"
    assert report["sink"] == "discard"
    assert [one["bytes"] for one in report["rounds"]] == [len(payload)] * 3
    for one in report["rounds"]:
        assert one["seconds"] > 0
        assert one["requests"] >= 1
        assert {"p50", "p95", "p99", "max"} <= one["latency_ms"].keys()
    assert report["peak_rss_bytes"] > 0
    assert report["config"]


def test_json_says_what_was_done_a_line_each(ws, bucket, tmp_path):
    for name in ["a", "b"]:
        (tmp_path / name).write_bytes(b"123")
    rows = ws("--json", "cp", tmp_path, f"s3://{bucket}", "--recursive").json
    done = [row for row in rows if row.get("status") == "done"]
    assert sorted(row["destination"] for row in done) == [f"s3://{bucket}/{n}" for n in "ab"]
    assert rows[-1]["type"] == "summary"
    assert (rows[-1]["objects"], rows[-1]["bytes"]) == (2, 6)


def test_quiet_says_nothing(ws, bucket, tmp_path):
    (tmp_path / "k").write_bytes(b"123")
    assert ws("--quiet", "cp", tmp_path / "k", f"s3://{bucket}/k").text == ""
    assert ws("--quiet", "rm", f"s3://{bucket}/k").text == ""
