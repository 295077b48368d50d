"""ls, du, tree, find, cat, stat: wildcards, filters and what they print, against every server."""

from __future__ import annotations

import json
import subprocess

import pytest
from shell import Shell

TREE = {
    "logs/2025/a.gz": 10,
    "logs/2025/b.txt": 20,
    "logs/2026/a.gz": 30,
    "logs/2026/deep/er/c.gz": 40,
    "logs2/d.gz": 50,
    "top.txt": 60,
}


@pytest.fixture
def s3(server):
    return server.boto3()


@pytest.fixture
def tree(s3, bucket) -> str:
    """A bucket with a few folders."""
    for key, size in TREE.items():
        s3.put_object(Bucket=bucket, Key=key, Body=b"x" * size)
    return bucket


def listed(ws: Shell, *words: str, code: int = 0) -> list[str]:
    """The keys that `ls` prints as JSON."""
    return [row["key"] for row in ws("--json", "ls", *words, code=code).json if "key" in row]


# ------------------------------------------------------------------ wildcards and filters


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("logs/*.gz", ["logs/2025/a.gz", "logs/2026/a.gz", "logs/2026/deep/er/c.gz"]),
        ("logs/202?/a.gz", ["logs/2025/a.gz", "logs/2026/a.gz"]),
        ("logs/202[6-9]/*", ["logs/2026/a.gz", "logs/2026/deep/er/c.gz"]),
        ("*.txt", ["logs/2025/b.txt", "top.txt"]),
        ("log[!s]*", []),
    ],
)
def test_a_pattern_names_what_matches(ws, tree, pattern, expected):
    assert listed(ws, f"s3://{tree}/{pattern}", code=0 if expected else 1) == expected


def test_a_key_with_a_star_is_named_raw(ws, s3, bucket):
    for key in ["a*b", "axb", "a[1]"]:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    assert listed(ws, f"s3://{bucket}/a*b") == ["a*b", "axb"]
    assert listed(ws, f"s3://{bucket}/a*b", "--raw") == ["a*b"]
    assert listed(ws, f"s3://{bucket}/a[*]b") == ["a*b"]
    assert ws("cat", "--raw", f"s3://{bucket}/a[1]").out == b"a[1]"
    assert ws("stat", "--raw", "--json", f"s3://{bucket}/a*b").json[0]["key"] == "a*b"


def test_of_include_and_exclude_the_last_that_matches_decides(ws, tree):
    everything = ["-r", f"s3://{tree}/logs/"]
    assert listed(ws, *everything, "--exclude", "*", "--include", "*/a.gz") == [
        "logs/2025/a.gz",
        "logs/2026/a.gz",
    ]
    assert listed(ws, *everything, "--include", "*/a.gz", "--exclude", "*", code=1) == []
    assert listed(ws, *everything, "--exclude", "2026/*") == ["logs/2025/a.gz", "logs/2025/b.txt"]


def test_sizes_and_ages_filter(ws, tree):
    everything = ["-r", f"s3://{tree}"]
    assert listed(ws, *everything, "--larger", "40") == ["logs2/d.gz", "top.txt"]
    assert listed(ws, *everything, "--smaller", "20") == ["logs/2025/a.gz"]
    assert listed(ws, *everything, "--older-than", "1d", code=1) == []
    assert listed(ws, *everything, "--newer-than", "1d") == list(TREE)
    assert listed(ws, *everything, "--newer-than", "2999-01-01", code=1) == []


# ------------------------------------------------------------------ ls


def test_ls_shows_what_is_asked_for(ws, tree):
    row = ws("ls", "-r", "--etag", "--storage-class", f"s3://{tree}/top").lines[0].split()
    assert row[2] == "60"
    assert row[-1] == "top.txt"
    assert len(row) == 6
    assert (
        ws("ls", "-H", "--summarize", f"s3://{tree}/top").lines[-1].strip()
        == "Total Size: 60 Bytes"
    )
    addresses = ws("ls", "-r", "--show-fullpath", f"s3://{tree}").lines
    assert addresses == [f"s3://{tree}/{key}" for key in TREE]


def test_ls_in_no_order_has_the_same_keys(ws, tree):
    assert sorted(listed(ws, "-r", "--unordered", f"s3://{tree}")) == sorted(TREE)


def test_a_key_cannot_command_the_terminal(origin, wirespeed_at, origin_bucket):
    s3, ws, bucket = origin.boto3(), wirespeed_at(origin, origin.endpoint), origin_bucket
    key = "a\x1b[2J\u009bb"
    s3.put_object(Bucket=bucket, Key=key, Body=b"")
    for words in [["ls"], ["ls", "-r"], ["tree"], ["find"], ["ls", "--addresses"]]:
        out = ws(*words, f"s3://{bucket}").out
        assert b"\x1b" not in out
        assert "\u009b".encode() not in out
        assert rb"\u{1b}" in out


def test_a_listing_into_head_ends_quietly(server, wirespeed_at, s3, bucket):
    for n in range(1200):
        s3.put_object(Bucket=bucket, Key=f"{'k' * 200}{n:05}", Body=b"")
    ws = wirespeed_at(server, server.endpoint)
    argv = [*ws._argv, "find", f"s3://{bucket}"]
    find = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ws._env)
    assert find.stdout.readline().startswith(b"s3://")
    find.stdout.close()
    err = find.stderr.read()
    assert find.wait(30) == 0, err
    assert err == b""


# ------------------------------------------------------------------ du, tree, find


def test_du(ws, tree):
    (row,) = ws("du", f"s3://{tree}").lines
    assert row.split() == ["210", "6", f"s3://{tree}"]
    rows = [line.split() for line in ws("du", "--depth", "2", f"s3://{tree}").lines]
    assert rows == [
        ["210", "6", f"s3://{tree}"],
        ["100", "4", f"s3://{tree}/logs/"],
        ["30", "2", f"s3://{tree}/logs/2025/"],
        ["70", "2", f"s3://{tree}/logs/2026/"],
        ["50", "1", f"s3://{tree}/logs2/"],
    ]
    (row,) = ws("--json", "du", f"s3://{tree}/logs", "--exclude", "*.txt").json
    assert (row["objects"], row["bytes"], row["prefix"]) == (3, 80, "logs/")
    (row,) = ws("du", "-H", "-g", f"s3://{tree}/logs/*.gz").lines
    assert row.split()[:3] == ["80", "Bytes", "3"]
    assert row.endswith(f"s3://{tree}/logs/*.gz")
    ws("du", f"s3://{tree}/none", code=1)
    ws("du", f"s3://{tree}-none", code=3)


def test_du_of_versions(origin, wirespeed_at, origin_bucket):
    s3, ws = origin.boto3(), wirespeed_at(origin, origin.endpoint)
    versioned = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=origin_bucket, VersioningConfiguration=versioned)
    for size in [1, 2, 4]:
        s3.put_object(Bucket=origin_bucket, Key="k", Body=b"x" * size)
    s3.delete_object(Bucket=origin_bucket, Key="k")
    assert ws("du", f"s3://{origin_bucket}").lines[0].split()[:2] == ["0", "0"]
    assert ws("du", "--all-versions", f"s3://{origin_bucket}").lines[0].split()[:2] == ["7", "3"]
    rows = ws("--json", "find", "--all-versions", f"s3://{origin_bucket}").json
    assert sorted(row["size"] for row in rows) == [1, 2, 4]
    assert len({row["version_id"] for row in rows}) == 3
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=origin_bucket):
        for one in page.get("Versions", []) + page.get("DeleteMarkers", []):
            s3.delete_object(Bucket=origin_bucket, Key=one["Key"], VersionId=one["VersionId"])


def test_tree(ws, tree):
    lines = ws("tree", f"s3://{tree}/logs").lines
    assert lines == [
        f"s3://{tree}/logs/",
        "  2025/",
        "    a.gz",
        "    b.txt",
        "  2026/",
        "    a.gz",
        "    deep/",
        "      er/",
        "        c.gz",
        "",
        "4 folders, 4 objects, 100 Bytes",
    ]
    lines = ws("tree", "--depth", "1", "--sizes", f"s3://{tree}").lines
    assert lines[1:4] == [
        "  logs/  (4 objects, 100 Bytes)",
        "  logs2/  (1 object, 50 Bytes)",
        "  top.txt  60 Bytes",
    ]
    rows = ws("--json", "tree", "--depth", "1", f"s3://{tree}").json
    assert rows[0] == {"type": "folder", "prefix": "logs/", "depth": 1, "objects": 4, "bytes": 100}
    assert rows[-1] == {"type": "summary", "folders": 2, "objects": 6, "bytes": 210}
    ws("tree", f"s3://{tree}/none", code=1)


def test_find(ws, tree):
    def found(*words: str, code: int = 0) -> list[str]:
        lines = ws("find", f"s3://{tree}", *words, code=code).lines
        return [line.removeprefix(f"s3://{tree}/") for line in lines]

    assert found() == list(TREE)
    assert found("--name", "a*", "--name", "*.txt") == [
        "logs/2025/a.gz",
        "logs/2025/b.txt",
        "logs/2026/a.gz",
        "top.txt",
    ]
    assert found("--path", "logs/*", "--smaller", "30") == ["logs/2025/a.gz", "logs/2025/b.txt"]
    assert found("--max-depth", "1") == ["top.txt"]
    assert found("--storage-class", "glacier", code=1) == []
    assert found("--storage-class", "standard", "--name", "top*") == ["top.txt"]
    raw = ws("find", f"s3://{tree}/logs2", "-0").out
    assert raw == f"s3://{tree}/logs2/d.gz\0".encode()
    (row,) = ws("--json", "find", f"s3://{tree}/logs2").json
    assert (row["bucket"], row["key"], row["size"]) == (tree, "logs2/d.gz", 50)


def test_what_find_writes_run_reads(ws, s3, bucket, tmp_path):
    keys = ["plain", "sp ace", "quo'te", "new\nline", "st*ar", "ümläut", "# hash", "$HOME"]
    for key in keys:
        s3.put_object(Bucket=bucket, Key=f"in/{key}", Body=key.encode())
    template = f"cp {{}} s3://{bucket}/out/{{relative}}"
    commands = ws("find", f"s3://{bucket}/in", "--command", template)
    assert len(commands.lines) == len(keys)
    if "cp" in ws("cp", "--help").text and "--raw" not in ws("cp", "--help").text:
        pytest.skip("cp has no --raw yet")
    ws("run", "-", stdin=commands.out)
    for key in keys:
        body = s3.get_object(Bucket=bucket, Key=f"out/{key}")["Body"].read()
        assert body == key.encode()


# ------------------------------------------------------------------ cat, stat


def test_cat_of_many(ws, s3, bucket, payload):
    bodies = {f"p/{n:03}": payload[n * 1000 : n * 1000 + n * 37] for n in range(40)}
    bodies["p/big"] = payload[: 3 << 20]
    for key, body in bodies.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body)
    whole = b"".join(bodies[key] for key in sorted(bodies))
    assert ws("cat", f"s3://{bucket}/p/*").out == whole
    two = ws("cat", f"s3://{bucket}/p/big", f"s3://{bucket}/p/03?", "--range", "0-9").out
    assert two == bodies["p/big"][:10] + b"".join(bodies[f"p/03{n}"][:10] for n in range(10))
    assert "nothing matches" in ws("cat", f"s3://{bucket}/q/*", code=3).text


def test_stat_of_many(ws, tree):
    rows = ws("--json", "stat", f"s3://{tree}/logs/*.gz", f"s3://{tree}/top.txt").json
    assert [row["key"] for row in rows] == [
        "logs/2025/a.gz",
        "logs/2026/a.gz",
        "logs/2026/deep/er/c.gz",
        "top.txt",
    ]
    ran = ws("stat", f"s3://{tree}/top.txt", f"s3://{tree}/none", code=1)
    assert "top.txt" in ran.out.decode()
    assert "none" in ran.err.decode()
    assert "nothing matches" in ws("stat", f"s3://{tree}/none*", code=3).text


def test_head_is_stat_and_knows_buckets(ws, tree):
    (row,) = ws("--json", "head", f"s3://{tree}").json
    assert (row["type"], row["name"]) == ("bucket", tree)
    assert f"s3://{tree}" in ws("head", f"s3://{tree}").text
    assert ws("head", f"s3://{tree}/top.txt").out == ws("stat", f"s3://{tree}/top.txt").out
    ws("head", f"s3://{tree}-none", code=3)


def test_json_is_one_object_a_line_whatever_the_key(ws, s3, bucket):
    s3.put_object(Bucket=bucket, Key="new\nline", Body=b"1")
    for words in [["ls"], ["find"], ["stat"]]:
        target = f"s3://{bucket}/new\nline" if words == ["stat"] else f"s3://{bucket}"
        (line,) = ws("--json", *words, target).lines
        assert json.loads(line)["key"] == "new\nline"
