"""`mv`: what is copied is removed, and nothing else; `rm` of what filters and patterns choose."""

from __future__ import annotations

import pytest
import servers
from files import files_below

MIB = 1 << 20


@pytest.fixture
def server(origin_memory) -> servers.Server:
    """What flags mean is the client's affair: one server tells as much as three."""
    return origin_memory


@pytest.fixture
def s3(server):
    return server.boto3()


def keys_of(s3, bucket: str) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def put(s3, bucket: str, *keys: str) -> None:
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())


def test_one_goes_each_way(ws, s3, bucket, tmp_path):
    (tmp_path / "f").write_bytes(b"f")
    assert ws("mv", tmp_path / "f", f"s3://{bucket}/d/").lines == [
        f"move: {tmp_path}/f to s3://{bucket}/d/f"
    ]
    assert files_below(tmp_path) == {}
    ws("mv", f"s3://{bucket}/d/f", f"s3://{bucket}/e/g")
    assert keys_of(s3, bucket) == ["e/g"]
    ws("mv", f"s3://{bucket}/e/g", tmp_path / "back" / "h")
    assert files_below(tmp_path) == {"back/h": b"f"}
    assert keys_of(s3, bucket) == []
    assert "none" in ws("mv", f"s3://{bucket}/none", tmp_path / "x", code=3).text


def test_a_tree_goes_each_way(ws, s3, bucket, tmp_path):
    for name in ["a", "d/b", "d/e/c"]:
        (tmp_path / "up" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "up" / name).write_bytes(name.encode())
    tree = files_below(tmp_path / "up")
    ws("mv", "-r", tmp_path / "up", f"s3://{bucket}/in")
    assert files_below(tmp_path / "up") == {}
    ws("mv", "-r", f"s3://{bucket}/in", f"s3://{bucket}/out", "--exclude", "a")
    assert keys_of(s3, bucket) == ["in/a", "out/d/b", "out/d/e/c"]
    ws("mv", f"s3://{bucket}/out/d/*", tmp_path / "down")
    ws("mv", "-r", f"s3://{bucket}/in", tmp_path / "down")
    assert keys_of(s3, bucket) == []
    assert files_below(tmp_path / "down") == {
        "a": tree["a"], "b": tree["d/b"], "e/c": tree["d/e/c"],
    }  # fmt: skip


def test_what_failed_stays_where_it_was(ws, server, s3, bucket, tmp_path):
    put(s3, bucket, "in/a", "in/b", "in/c")
    fault = {"verb": "get", "key": "in/b", "action": "error:403:AccessDenied"}
    with server.misbehaving(fault):
        ws("mv", "-r", f"s3://{bucket}/in", tmp_path / "down", code=1)
    assert set(files_below(tmp_path / "down")) == {"a", "c"}
    assert keys_of(s3, bucket) == ["in/b"]


def test_nothing_is_moved_onto_itself(ws, s3, bucket):
    put(s3, bucket, "in/a")
    for words in [
        ["in/a", "in/a"],
        ["in/a", "in/"],
        ["-r", "in", "in/"],
        ["-r", "in", "in/deeper"],
    ]:
        *flags, source, target = words
        ran = ws("mv", *flags, f"s3://{bucket}/{source}", f"s3://{bucket}/{target}", code=2)
        assert "itself" in ran.text or "within" in ran.text
    assert keys_of(s3, bucket) == ["in/a"]


def test_a_dry_move_moves_nothing(ws, s3, bucket, tmp_path):
    put(s3, bucket, "in/a")
    told = ws("mv", "-r", f"s3://{bucket}/in", tmp_path / "down", "--dryrun").lines
    assert told == [f"(dryrun) move: s3://{bucket}/in/a to {tmp_path}/down/a"]
    assert keys_of(s3, bucket) == ["in/a"]
    assert not (tmp_path / "down").exists()


# ------------------------------------------------------------------ rm


def test_only_what_is_chosen_is_removed(ws, s3, bucket):
    put(s3, bucket, "t/a.gz", "t/b.gz", "t/keep.gz", "t/c.txt", "u/a.gz", "t/a*")
    told = ws("rm", f"s3://{bucket}/t/*.gz", "--exclude", "keep*", "--dryrun").lines
    assert told == [f"(dryrun) delete: s3://{bucket}/t/{name}.gz" for name in "ab"]
    ws("rm", f"s3://{bucket}/t/*.gz", "--exclude", "keep*")
    assert keys_of(s3, bucket) == ["t/a*", "t/c.txt", "t/keep.gz", "u/a.gz"]
    ws("rm", "-r", f"s3://{bucket}/t", "--newer-than", "1d", "--larger", "6")
    assert keys_of(s3, bucket) == ["t/a*", "u/a.gz"]
    ws("rm", "--raw", f"s3://{bucket}/t/a*")
    ws("rm", "-r", f"s3://{bucket}", "--older-than", "1d")
    assert keys_of(s3, bucket) == ["u/a.gz"]


def test_a_folder_marker_is_removed_with_its_folder(ws, s3, bucket):
    put(s3, bucket, "d/a")
    s3.put_object(Bucket=bucket, Key="d/", Body=b"")
    ws("rm", "-r", f"s3://{bucket}/d")
    assert keys_of(s3, bucket) == []


def test_deletions_go_a_thousand_to_a_request(ws, s3, bucket, tmp_path):
    (tmp_path / "up").mkdir()
    for n in range(2100):
        (tmp_path / "up" / f"{n:04}").write_bytes(b"")
    ws("-q", "cp", "-r", tmp_path / "up", f"s3://{bucket}")
    rows = ws("--json", "-q", "rm", "-r", f"s3://{bucket}", "--stat").json
    assert rows[-1]["objects"] == 2100
    requests = {row["operation"]: row["requests"] for row in rows[0]["operations"]}
    assert requests["delete"] == 3, requests
    assert keys_of(s3, bucket) == []


def test_one_key_of_a_bucket_with_versions(ws, s3, bucket):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    put(s3, bucket, "k", "k", "k2")
    ws("rm", "--all-versions", f"s3://{bucket}/k")
    left = s3.list_object_versions(Bucket=bucket)
    assert [one["Key"] for one in left.get("Versions", [])] == ["k2"]
    ws("rm", "-r", "--all-versions", f"s3://{bucket}")
    assert "Versions" not in s3.list_object_versions(Bucket=bucket)


def test_what_could_not_be_removed_is_a_file_of_commands(ws, server, s3, bucket, tmp_path):
    put(s3, bucket, "in/a", "in/b")
    fault = {"verb": "delete-many", "action": "error:403:AccessDenied"}
    with server.misbehaving(fault):
        ws("rm", "-r", f"s3://{bucket}/in", "--failures", tmp_path / "failed", code=3)
    commands = [line for line in (tmp_path / "failed").read_text().splitlines() if line[0] != "#"]
    assert commands == [f"rm s3://{bucket}/in/{name}" for name in "ab"]
    ws("run", tmp_path / "failed")
    assert keys_of(s3, bucket) == []
