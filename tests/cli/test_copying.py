"""`cp` of many: which objects are meant, what is left alone, what is kept, and what is told."""

from __future__ import annotations

import os
import stat
import time

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


def put(s3, bucket: str, **objects: bytes) -> None:
    for key, body in objects.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body)


def tree(folder, *names: str, content: bytes | None = None):
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(name.encode() if content is None else content)
    return folder


# ------------------------------------------------------------------ which of them


def test_a_pattern_takes_what_matches_below_its_folder(ws, s3, bucket, tmp_path):
    for key in ["logs/2026-01.gz", "logs/2026-02.gz", "logs/2026/deep.gz", "logs/2025-12.gz"]:
        put(s3, bucket, **{key: key.encode()})
    put(s3, bucket, **{"logs/2026-01.txt": b"", "2026-01.gz": b""})
    ws("cp", f"s3://{bucket}/logs/2026*.gz", tmp_path / "down")
    assert set(files_below(tmp_path / "down")) == {"2026-01.gz", "2026-02.gz", "2026/deep.gz"}
    ws("cp", f"s3://{bucket}/logs/2025-??.gz", f"s3://{bucket}/old")
    assert "old/2025-12.gz" in keys_of(s3, bucket)
    ws("cp", f"s3://{bucket}/logs/2027*", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_key_with_a_star_is_named_raw(ws, s3, bucket, tmp_path):
    put(s3, bucket, **{"a*": b"star", "ab": b"b"})
    ws("cp", "--raw", f"s3://{bucket}/a*", tmp_path / "one")
    assert (tmp_path / "one").read_bytes() == b"star"


def test_the_last_rule_that_matches_decides(ws, s3, bucket, tmp_path):
    source = tree(tmp_path / "up", "a.txt", "d/b.txt", "d/secret.txt", "c.bin")
    rules = ["--exclude", "*", "--include", "*.txt", "--exclude", "d/secret*"]
    ws("cp", "-r", source, f"s3://{bucket}/in", *rules)
    assert keys_of(s3, bucket) == ["in/a.txt", "in/d/b.txt"]
    rules = ["--exclude", "*", "--exclude", "d/*", "--include", "*/b.txt"]
    ws("cp", "-r", f"s3://{bucket}/in", tmp_path / "down", *rules)
    assert set(files_below(tmp_path / "down")) == {"d/b.txt"}


def test_sizes_and_ages_choose(ws, s3, bucket, tmp_path):
    source = tmp_path / "up"
    for size in [0, 10, 1024, 5000]:
        tree(source, f"s{size}", content=b"x" * size)
    os.utime(source / "s5000", (time.time() - 864_000,) * 2)
    ws("cp", "-r", source, f"s3://{bucket}/mid", "--larger", "9", "--smaller", "1KiB")
    ws("cp", "-r", source, f"s3://{bucket}/old", "--older-than", "7d")
    ws("cp", "-r", source, f"s3://{bucket}/new", "--newer-than", "7d")
    assert keys_of(s3, bucket) == ["mid/s10", "new/s0", "new/s10", "new/s1024", "old/s5000"]


def test_names_come_from_a_file_or_standard_input(ws, s3, bucket, tmp_path):
    source = tree(tmp_path / "up", "a", "b", "d/c", "sp ace")
    (tmp_path / "names").write_text("a\nd/c\nsp ace\n")
    ws("cp", source, f"s3://{bucket}/in", "--from-file", tmp_path / "names")
    assert keys_of(s3, bucket) == ["in/a", "in/d/c", "in/sp ace"]
    down = tmp_path / "down"
    names = f"in/d/c\nin/not-there\ns3://{bucket}/in/a\n".encode()
    ran = ws("cp", f"s3://{bucket}/in", down, "--from-file", "-", stdin=names, code=1)
    assert "not-there" in ran.text
    assert set(files_below(down)) == {"a", "d/c"}


def test_links_are_followed_or_left_out(ws, s3, bucket, tmp_path):
    source = tree(tmp_path / "up", "a")
    other = tree(tmp_path / "other", "x")
    (source / "folder").symlink_to(other)
    (source / "file").symlink_to(other / "x")
    ws("cp", "-r", source, f"s3://{bucket}/with")
    ws("cp", "-r", source, f"s3://{bucket}/without", "--no-follow-symlinks")
    assert keys_of(s3, bucket) == ["with/a", "with/file", "with/folder/x", "without/a"]


# ------------------------------------------------------------------ what is there already


def test_what_is_there_is_left_alone(ws, s3, bucket, tmp_path):
    put(s3, bucket, a=b"old")
    source = tree(tmp_path / "up", "a", "b")
    ran = ws("--json", "cp", "-r", "--no-clobber", source, f"s3://{bucket}")
    assert (ran.json[-1]["objects"], ran.json[-1]["skipped"]) == (1, 1)
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"old"
    assert s3.get_object(Bucket=bucket, Key="b")["Body"].read() == b"b"
    down = tree(tmp_path / "down", "b", content=b"mine")
    ws("cp", "-r", "-n", f"s3://{bucket}", down)
    assert files_below(down) == {"a": b"old", "b": b"mine"}
    ws("cp", "-n", f"s3://{bucket}/a", down / "b")
    assert files_below(down)["b"] == b"mine"


def test_creating_only_fails_for_what_is_there(ws, s3, bucket, tmp_path):
    put(s3, bucket, a=b"old")
    source = tree(tmp_path / "up", "a", "b")
    ran = ws("cp", "-r", "--if-none-match", "*", source, f"s3://{bucket}", code=1)
    assert "412" in ran.text
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"old"
    assert keys_of(s3, bucket) == ["a", "b"]


def test_a_tree_is_described_and_kept_as_the_flags_say(ws, s3, bucket, tmp_path):
    source = tree(tmp_path / "up", "a.txt", "b.txt")
    flags = ["--storage-class", "STANDARD_IA", "--metadata", "k=v", "--cache-control", "no-store"]
    ws("cp", "-r", source, f"s3://{bucket}", *flags)
    for key in ["a.txt", "b.txt"]:
        told = s3.head_object(Bucket=bucket, Key=key)
        assert told["Metadata"] == {"k": "v"}
        assert told["CacheControl"] == "no-store"
        assert told["ContentType"] == "text/plain"


def test_time_and_mode_are_kept_and_given_back(ws, s3, bucket, tmp_path):
    source = tree(tmp_path / "up", "script", "d/secret")
    (source / "script").chmod(0o755)
    (source / "d/secret").chmod(0o600)
    os.utime(source / "script", ns=(1_600_000_000_123_456_789,) * 2)
    ws("cp", "-r", "--preserve", source, f"s3://{bucket}/in")
    ws("cp", "-r", "--preserve", f"s3://{bucket}/in", tmp_path / "down")
    for name in ["script", "d/secret"]:
        was, found = (source / name).stat(), (tmp_path / "down" / name).stat()
        assert stat.S_IMODE(found.st_mode) == stat.S_IMODE(was.st_mode)
        assert abs(found.st_mtime_ns - was.st_mtime_ns) < 1_000_000
    ws("cp", "--preserve", f"s3://{bucket}/in/script", tmp_path / "one")
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o755


# ------------------------------------------------------------------ where bytes go


def test_bytes_for_nowhere_are_received_and_dropped(ws, s3, bucket, payload):
    put(s3, bucket, **{"in/a": payload[: 9 * MIB], "in/b": b"12345"})
    rows = ws("--json", "cp", "-r", f"s3://{bucket}/in", "/dev/null").json
    assert (rows[-1]["objects"], rows[-1]["bytes"]) == (2, 9 * MIB + 5)
    assert {row["destination"] for row in rows[:-1]} == {"/dev/null"}
    (summary,) = ws("--json", "--quiet", "cp", f"s3://{bucket}/in/b", "/dev/null").json
    assert (summary["type"], summary["objects"], summary["bytes"]) == ("summary", 1, 5)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert "nothing" in ws("mv", "-r", f"s3://{bucket}/in", "/dev/null", code=2).text
    assert keys_of(s3, bucket) == ["in/a", "in/b"]


def test_folder_markers_are_no_content(ws, s3, bucket, tmp_path):
    put(s3, bucket, **{"in/": b"", "in/d/": b"", "in/d/a": b"a"})
    ws("cp", "-r", f"s3://{bucket}/in", tmp_path / "down")
    ws("cp", "-r", f"s3://{bucket}/in", f"s3://{bucket}/out")
    assert files_below(tmp_path / "down") == {"d/a": b"a"}
    assert [key for key in keys_of(s3, bucket) if key.startswith("out")] == ["out/d/a"]


def test_between_two_services_bytes_pass_through_here(
    ws, s3, bucket, payload, origin_directory, tmp_path, transcript
):
    there, name = origin_directory.boto3(), "elsewhere"
    there.create_bucket(Bucket=name)
    for key, body in {"a": b"small", "d/big": payload[: 20 * MIB]}.items():
        there.put_object(Bucket=name, Key=key, Body=body, Metadata={"m": "1"})
    (tmp_path / "config").write_text(
        f"[profile other]\naws_access_key_id = {origin_directory.access_key}\n"
        f"aws_secret_access_key = {origin_directory.secret_key}\n"
    )
    both = ws.with_env(AWS_CONFIG_FILE=str(tmp_path / "config"))
    source = ["--source-endpoint-url", origin_directory.endpoint, "--source-profile", "other"]
    both("cp", "-r", f"s3://{name}", f"s3://{bucket}/copy", *source)
    assert keys_of(s3, bucket) == ["copy/a", "copy/d/big"]
    copied = s3.get_object(Bucket=bucket, Key="copy/d/big")
    assert copied["Body"].read() == payload[: 20 * MIB]
    assert copied["Metadata"] == {"m": "1"}
    rows = both("--json", "sync", f"s3://{name}", f"s3://{bucket}/copy", *source).json
    assert rows[-1]["objects"] == 0
    both("cp", f"s3://{name}/a", f"s3://{bucket}/one", *source)
    assert s3.get_object(Bucket=bucket, Key="one")["Body"].read() == b"small"
    ws("cp", "-r", tmp_path, f"s3://{bucket}", *source, code=2)


# ------------------------------------------------------------------ what is told


def test_what_failed_is_a_file_of_commands(ws, server, s3, bucket, tmp_path):
    put(s3, bucket, **{"in/a": b"a", "in/b c*": b"b", "in/d": b"d"})
    file, down = tmp_path / "failed", tmp_path / "down"
    fault = {"verb": "get", "key": "in/b c*", "action": "error:403:AccessDenied"}
    with server.misbehaving(fault):
        ran = ws("cp", "-r", f"s3://{bucket}/in", down, "--failures", file, code=1)
    assert "in/b c*" in ran.text
    assert set(files_below(down)) == {"a", "d"}
    comment, command = file.read_text().splitlines()
    assert comment.startswith("# ")
    assert command == f"cp 's3://{bucket}/in/b c*' '{down}/b c*' --raw"
    ws("run", file)
    assert set(files_below(down)) == {"a", "b c*", "d"}


def test_commands_that_failed_keep_their_flags(ws, server, s3, bucket, tmp_path):
    source, file = tree(tmp_path / "up", "a"), tmp_path / "failed"
    with server.misbehaving({"verb": "put", "action": "error:403:AccessDenied"}):
        flags = ["--storage-class", "STANDARD_IA", "--metadata", "k=v w", "--failures", file]
        ws("cp", "-r", source, f"s3://{bucket}", *flags, code=3)
    ws("run", file)
    assert s3.head_object(Bucket=bucket, Key="a")["Metadata"] == {"k": "v w"}


def test_the_first_failure_ends_it_where_that_is_asked(ws, server, bucket, tmp_path):
    source = tree(tmp_path / "up", *(f"{n:03}" for n in range(300)))
    with server.misbehaving({"verb": "put", "action": "error:403:AccessDenied"}):
        knobs = ["--concurrency", "1", "--set", "max_attempts=1"]
        on = ws(*knobs, "cp", "-r", source, f"s3://{bucket}", code=3)
        stopped = ws(*knobs, "cp", "-r", source, f"s3://{bucket}", "--fail-fast", code=3)
    assert len(on.err.splitlines()) == 300
    assert len(stopped.err.splitlines()) < 10, str(stopped)


def test_requests_are_told_of_in_a_table(ws, s3, bucket, tmp_path):
    source = tree(tmp_path / "up", *(f"{n}" for n in range(20)))
    ran = ws("cp", "-r", source, f"s3://{bucket}", "--stat")
    assert any(line.startswith("put") and "200: 20" in line for line in ran.lines), str(ran)
    rows = ws("--json", "--quiet", "cp", "-r", f"s3://{bucket}", "/dev/null", "--stat").json
    assert [row["type"] for row in rows] == ["requests", "summary"]
    operations = {row["operation"]: row for row in rows[0]["operations"]}
    assert operations["get"]["requests"] == 20
    for times in ["first_byte_ms", "total_ms"]:
        percentiles = operations["get"][times]
        assert 0 < percentiles["p50"] <= percentiles["p95"] <= percentiles["p99"]
        assert percentiles["p99"] <= percentiles["max"]


def test_progress_is_told_in_lines_where_there_is_no_terminal(ws, s3, bucket, payload):
    put(s3, bucket, a=payload[: 6 * MIB])
    slow = ["cp", "-r", f"s3://{bucket}", "/dev/null", "--bwlimit", "2MiB"]
    ran = ws(*slow, "--progress")
    assert "of 1 objects" in ran.err.decode(), str(ran)
    # What is held back cannot have been fast, however slow the machine is.
    assert ran.seconds > 1.5
    assert ws("cp", "-r", f"s3://{bucket}", "/dev/null").err == b""


def test_a_second_run_is_refused_while_the_first_one_lasts(ws, s3, bucket, payload, tmp_path):
    put(s3, bucket, a=payload[: 8 * MIB])
    lock, refused = tmp_path / "lock", []
    words = ["cp", "-r", f"s3://{bucket}", "/dev/null", "--lock", lock]

    def second(process) -> None:
        while not (lock.exists() and lock.read_text()):
            time.sleep(0.01)
        refused.append(ws(*words, code=4))
        process.kill()

    ws(*words, "--bwlimit", "1MiB", code=None, meanwhile=second)
    assert "another run" in refused[0].text
    ws(*words)


def test_a_job_that_was_killed_goes_on(ws, s3, bucket, payload, tmp_path):
    put(s3, bucket, **{"in/a": b"a", "in/big": payload, "in/z": b"z"})
    state, down = tmp_path / "state", tmp_path / "down"
    words = ["cp", "-r", f"s3://{bucket}/in", down, "--state", state]

    def kill(process) -> None:
        """Once a tenth of the large object is there."""
        while sum(part.stat().st_blocks for part in down.glob(".*-partial")) * 512 < 4 * MIB:
            time.sleep(0.02)
        process.kill()

    ws(*words, "--bwlimit", "5MiB", code=137, meanwhile=kill)
    assert not (down / "big").exists()
    assert "another job" in ws("cp", "-r", f"s3://{bucket}", down, "--state", state, code=2).text
    rows = ws("--json", "-q", *words, "--stat").json
    assert rows[-1]["objects"] + rows[-1].get("done_before", 0) == 3
    (got,) = [row for row in rows[0]["operations"] if row["operation"] == "get"]
    assert got["bytes"] < len(payload) - 2 * MIB, "what was there is not asked for again"
    assert files_below(tmp_path) == {"down/a": b"a", "down/big": payload, "down/z": b"z"}


def test_a_dry_run_lists_and_changes_nothing(ws, s3, bucket, tmp_path):
    put(s3, bucket, **{"in/a": b"a", "in/b.txt": b"b"})
    before = files_below(tmp_path)
    down = ["cp", "-r", f"s3://{bucket}/in", tmp_path / "down", "--exclude", "*.txt"]
    assert ws(*down, "--dry-run").lines == [
        f"(dryrun) download: s3://{bucket}/in/a to {tmp_path}/down/a"
    ]
    assert ws("cp", f"s3://{bucket}/in/*", f"s3://{bucket}/out", "--dryrun").lines == [
        f"(dryrun) copy: s3://{bucket}/in/{name} to s3://{bucket}/out/{name}"
        for name in ["a", "b.txt"]
    ]
    row = ws("--json", "-q", *down, "--dryrun").json[-1]
    assert (row["objects"], row["bytes"], row["dryrun"]) == (1, 1, True)
    assert files_below(tmp_path) == before
    assert keys_of(s3, bucket) == ["in/a", "in/b.txt"]
