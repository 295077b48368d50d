"""Many commands by one client: `wirespeed run`, against every server."""

from __future__ import annotations

import json

import endpoints
import pytest
from files import files_below

MIB = 1 << 20


@pytest.fixture
def s3(server):
    return server.boto3()


def keys_of(s3, bucket: str) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def test_lines_are_commands(ws, s3, bucket, tmp_path):
    (tmp_path / "a file").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    s3.put_object(Bucket=bucket, Key="old", Body=b"x")
    commands = tmp_path / "commands"
    commands.write_text(
        f"# what follows is done\n\n"
        f"cp '{tmp_path}/a file' s3://{bucket}/a\n"
        f"wirespeed cp {tmp_path}/b s3://{bucket}/in/   # keeps its name\r\n"
        f"rm s3://{bucket}/old"
    )
    ran = ws("run", commands)
    assert keys_of(s3, bucket) == ["a", "in/b"]
    assert ran.err == b""
    assert f"delete: s3://{bucket}/old" in ran.lines


def test_one_line_fails_alone_and_says_which_it_is(ws, s3, bucket, tmp_path):
    (tmp_path / "f").write_bytes(b"1")
    lines = [
        f"cp {tmp_path}/f s3://{bucket}/one",
        "fly away",
        f"cp s3://{bucket}/none {tmp_path}/none",
        f"cp {tmp_path}/missing s3://{bucket}/x",
        "cp 'open",
        "--region mars-1 ls",
        f"pipe s3://{bucket}/piped",
        f"cp {tmp_path}/f s3://{bucket}/two",
    ]
    ran = ws("run", "-", stdin="\n".join(lines).encode(), code=1)
    assert keys_of(s3, bucket) == ["one", "two"]
    errors = ran.err.decode().splitlines()
    for number, word in [
        (2, "fly"),
        (3, "none"),
        (4, "missing"),
        (5, "not closed"),
        (6, "one client"),
        (7, "standard input"),
    ]:
        (error,) = [line for line in errors if line.startswith(f"wirespeed: line {number}: ")]
        assert word in error
    assert len(errors) == 6


def test_json_has_the_line(ws, s3, bucket, tmp_path):
    (tmp_path / "f").write_bytes(b"123")
    lines = [f"cp {tmp_path}/f s3://{bucket}/k", f"cp s3://{bucket}/none {tmp_path}/none"]
    ran = ws("--json", "run", "-", stdin="\n".join(lines).encode(), code=1)
    done = [row for row in ran.json if row.get("status") == "done"]
    assert [(row["line"], row["destination"]) for row in done] == [(1, f"s3://{bucket}/k")]
    last = ran.json[-1]
    assert (last["operation"], last["commands"], last["failed"]) == ("run", 2, 1)
    errors = [json.loads(line) for line in ran.err.decode().splitlines() if line.startswith("{")]
    assert [error["error"]["line"] for error in errors] == [2]


def test_fail_fast_begins_no_more(ws, s3, bucket, tmp_path):
    (tmp_path / "f").write_bytes(b"1")
    lines = ["fly"] + [f"cp {tmp_path}/f s3://{bucket}/{n}" for n in range(50)]
    stdin = "\n".join(lines).encode()
    ws("run", "--fail-fast", "--jobs", "1", "-", stdin=stdin, code=1)
    assert keys_of(s3, bucket) == []


def test_a_line_runs_before_the_last_has_come(ws, s3, bucket, tmp_path):
    (tmp_path / "f").write_bytes(b"1")

    def type_slowly(process) -> None:
        process.stdin.write(f"cp {tmp_path}/f s3://{bucket}/first\n".encode())
        process.stdin.flush()
        for _ in range(2000):
            if keys_of(s3, bucket):
                return
        raise AssertionError("the line waits for the end of the input")

    ws("run", "-", stdin=f"cp {tmp_path}/f s3://{bucket}/second".encode(), meanwhile=type_slowly)
    assert keys_of(s3, bucket) == ["first", "second"]


def test_objects_that_are_printed_stay_whole(ws, s3, bucket, payload):
    bodies = [bytes([65 + n]) * (3 * MIB) for n in range(4)]
    for n, body in enumerate(bodies):
        s3.put_object(Bucket=bucket, Key=f"{n}", Body=body)
    lines = "\n".join(f"cat s3://{bucket}/{n}" for n in range(4))
    out = ws("run", "-", stdin=lines.encode()).out
    assert len(out) == 12 * MIB
    assert sorted(out[at : at + 3 * MIB] for at in range(0, 12 * MIB, 3 * MIB)) == bodies


def test_many_lines_share_one_client(server, wirespeed_at, s3, bucket, tmp_path):
    (tmp_path / "f").write_bytes(b"1")
    lines = "\n".join(f"cp {tmp_path}/f s3://{bucket}/{n:04}" for n in range(600))
    ws = wirespeed_at(server, server.endpoint)
    ws("--concurrency", "4", "run", "-", stdin=lines.encode())
    assert keys_of(s3, bucket) == [f"{n:04}" for n in range(600)]


def test_a_file_that_is_not_there(ws, tmp_path):
    ran = ws("run", tmp_path / "none", code=3)
    assert "none" in ran.text


def test_nobody_listens(versitygw, wirespeed_at, tmp_path):
    import servers

    ws = wirespeed_at(versitygw, f"http://127.0.0.1:{servers.free_port()}")
    lines = "\n".join(f"cp s3://bucket/{n} {tmp_path}/{n}" for n in range(3))
    ran = ws("--set", "max_attempts=2", "run", "-", stdin=lines.encode(), code=1)
    assert "127.0.0.1" in ran.text
    assert files_below(tmp_path) == {}


@pytest.mark.parametrize("after", [0.1, 0.5, 1.0])
def test_an_interrupt_stops_every_line(server, wirespeed_at, s3, bucket, payload, tmp_path, after):
    for n in range(8):
        s3.put_object(Bucket=bucket, Key=f"{n}", Body=payload[n * MIB : (n + 4) * MIB])
    commands = tmp_path / "commands"
    folder = tmp_path / "d"
    commands.write_text("\n".join(f"cp s3://{bucket}/{n} {folder}/{n}" for n in range(8)))
    with endpoints.slow(server.port, 14 * MIB) as endpoint:
        ran, more = wirespeed_at(server, endpoint).interrupted(after, "run", commands)
    assert ran.code == 130, str(ran)
    assert more < 1.0
    for name, body in files_below(folder).items():
        assert body == payload[int(name) * MIB : (int(name) + 4) * MIB]
