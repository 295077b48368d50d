"""A job cut into shards by `wirespeed plan`, which `wirespeed run-shard` runs."""

from __future__ import annotations

import json

import pytest
import servers
from files import files_below
from shell import Shell

WIRESPEED = servers.TARGET / "wirespeed"

KEYS = [f"d{n % 3}/f{n:02}" for n in range(30)] + ["a", "a.b"]


@pytest.fixture
def s3(server):
    return server.boto3()


@pytest.fixture
def filled(s3, bucket):
    for key in KEYS:
        s3.put_object(Bucket=bucket, Key=f"p/{key}", Body=key.encode())
    s3.put_object(Bucket=bucket, Key="p2", Body=b"not below the prefix")
    return bucket


def shards_of(ws, *arguments):
    return ws("plan", *arguments).lines


def run_shard(ws, tmp_path, line, *flags):
    file = tmp_path / "shard.json"
    file.write_text(line)
    [result] = ws("run-shard", file, *flags).json
    return result


def test_the_shards_of_a_sync_do_what_the_sync_does(ws, s3, filled, tmp_path):
    target = tmp_path / "t"
    lines = shards_of(ws, f"s3://{filled}/p", target, "--shards", 4)
    assert [json.loads(line)["shard"] for line in lines] == [0, 1, 2, 3]
    results = [run_shard(ws, tmp_path, line) for line in reversed(lines)]
    assert files_below(target) == {key: key.encode() for key in KEYS}
    assert sum(result["transferred"] for result in results) == len(KEYS)
    again = [run_shard(ws, tmp_path, line) for line in lines]
    assert sum(result["unchanged"] for result in again) == len(KEYS)
    assert sum(result["transferred"] for result in again) == 0


def test_shards_up_delete_what_the_source_has_no_more(ws, s3, bucket, tmp_path):
    source = tmp_path / "s"
    for key in KEYS:
        (source / key).parent.mkdir(parents=True, exist_ok=True)
        (source / key).write_text(key)
    for key in ["q/!", "q/d1/x", "q/zz", "r"]:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    lines = shards_of(
        ws,
        source,
        f"s3://{bucket}/q",
        "--delete",
        "--exclude",
        "d2/*",
        "--metadata",
        "k=v",
        "--shards",
        3,
    )
    (tmp_path / "shards").write_text("\n".join(lines) + "\n")
    ran = ws("run-shard", tmp_path / "shards")
    assert sum(result["deleted"] for result in ran.json) == 3
    wanted = sorted(f"q/{key}" for key in KEYS if not key.startswith("d2/"))
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert keys == [*wanted, "r"]
    assert s3.head_object(Bucket=bucket, Key="q/a")["Metadata"]["k"] == "v"


def test_a_shard_brings_the_endpoint_of_its_plan_and_no_secret(
    ws, server, filled, transcript, tmp_path
):
    [line] = shards_of(ws, f"s3://{filled}/p", tmp_path / "t", "--shards", 1)
    assert server.secret_key not in line
    assert server.access_key not in line
    anywhere = Shell([WIRESPEED], server.environment(), transcript)
    [result] = anywhere("run-shard", "-", stdin=line.encode()).json
    assert result["transferred"] == len(KEYS)
    # A flag of the worker's counts for more.
    (tmp_path / "shard").write_text(line)
    anywhere("run-shard", tmp_path / "shard", "--endpoint-url", "http://127.0.0.1:1", code=3)


def test_names_of_a_file_and_those_that_are_not_there(ws, filled, tmp_path):
    names = tmp_path / "names"
    names.write_text("a\nd0/f00\nmissing\n")
    lines = shards_of(
        ws, f"s3://{filled}/p", tmp_path / "t", "--verb", "cp", "--from-file", names, "--shards", 2
    )
    (tmp_path / "shards").write_text("\n".join(lines))
    ran = ws("run-shard", tmp_path / "shards", code=1)
    assert sorted(files_below(tmp_path / "t")) == ["a", "d0/f00"]
    [failure] = [failure for result in ran.json for failure in result["failures"]]
    assert failure["source"] == f"s3://{filled}/p/missing"
    assert failure["kind"] == "not_found"


def test_a_dry_run_changes_nothing(ws, filled, tmp_path):
    [line] = shards_of(ws, f"s3://{filled}/p", tmp_path / "t", "--dryrun", "--shards", 1)
    assert run_shard(ws, tmp_path, line)["transferred"] == len(KEYS)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("line", "says"),
    [("", "no shard to run"), ("{}", "wirespeed plan"), ('{"version": 9}', "plan it again")],
)
def test_what_is_no_shard_is_refused(ws, tmp_path, line, says):
    (tmp_path / "shard").write_text(line)
    ran = ws("run-shard", tmp_path / "shard", code=2)
    assert says in ran.text


def test_plans_that_make_no_sense_are_refused(ws, bucket, tmp_path):
    for arguments in [
        (tmp_path, tmp_path),
        ("-", f"s3://{bucket}/"),
        (tmp_path, f"s3://{bucket}/", "--verb", "cp", "--delete"),
        (tmp_path, f"s3://{bucket}/", "--if-match", "x"),
    ]:
        ran = ws("plan", *arguments, code=2)
        assert ran.out == b""


def test_a_source_that_cannot_be_listed_has_no_plan(ws, tmp_path):
    ran = ws("plan", "s3://no-such-bucket-anywhere/p", tmp_path, code=3)
    assert ran.out == b""
    ran = ws("plan", tmp_path / "missing", "s3://bucket/p", code=3)
    assert "check the path" in ran.text
