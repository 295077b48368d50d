"""The pages for those who come from another client: every row is run by both clients."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import servers
from files import files_below
from shell import Shell

DOCS = servers.ROOT / "docs"
WIRESPEED = servers.TARGET / "wirespeed"
AWS = servers.ROOT / ".tools" / "awscli" / "aws"
ROW = re.compile(r"^\| ([^|]+) \| `((?:aws s3|s5cmd|rclone) [^`]+)` \| `(wirespeed [^`]+)` \|$")

OBJECTS = {
    "photos/2025/a.jpg": b"a" * 10,
    "photos/2026/b.jpg": b"b" * 20,
    "photos/notes.txt": b"notes",
    "logs/2026-01-01.gz": b"1",
    "logs/2026-01-02.gz": b"22",
    "report.pdf": b"a report",
}
FILES = {
    "tree/2025/a.jpg": b"a" * 10,
    "tree/new/c.jpg": b"c" * 30,
    "local.txt": b"local",
    "commands.txt": b"cp local.txt s3://bucket/one\ncp local.txt s3://bucket/two\n",
}


def rows() -> Iterator:
    """Each row of each page: what it is for, their command and ours."""
    for page in ["from-aws-s3.md", "from-s5cmd.md", "from-rclone.md"]:
        for line in (DOCS / page).read_text().splitlines():
            if found := ROW.match(line):
                what, theirs, ours = found.groups()
                yield pytest.param(theirs, ours, id=f"{page.removesuffix('.md')}: {what}")


@pytest.fixture(scope="module")
def server(tmp_path_factory, transcript) -> Iterator[servers.Server]:
    with servers.origin(tmp_path_factory.mktemp("moving-over")) as server:
        transcript.keep_secret(server.secret_key)
        yield server


def begin(server: servers.Server, folder: Path) -> None:
    """The two buckets and the folder as every command finds them."""
    s3 = server.boto3()
    for one in s3.list_buckets()["Buckets"]:
        for key in s3.list_objects_v2(Bucket=one["Name"]).get("Contents", []):
            s3.delete_object(Bucket=one["Name"], Key=key["Key"])
        s3.delete_bucket(Bucket=one["Name"])
    for bucket in ["bucket", "other"]:
        s3.create_bucket(Bucket=bucket)
    for key, body in OBJECTS.items():
        s3.put_object(Bucket="bucket", Key=key, Body=body)
    folder.mkdir()
    for name, body in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
        # Older than the objects, so that none of the clients finds them changed for being new.
        os.utime(folder / name, (1_600_000_000, 1_600_000_000))


def left_behind(server: servers.Server, folder: Path) -> dict[str, bytes]:
    """What is in every bucket, and in the folder."""
    s3, found = server.boto3(), files_below(folder)
    for one in s3.list_buckets()["Buckets"]:
        found[f"s3://{one['Name']}"] = b""
        for key in s3.list_objects_v2(Bucket=one["Name"]).get("Contents", []):
            body = s3.get_object(Bucket=one["Name"], Key=key["Key"])["Body"].read()
            found[f"s3://{one['Name']}/{key['Key']}"] = body
    return found


def client(server: servers.Server, program: str, transcript) -> Shell:
    env = server.environment()
    if program == "rclone":
        env |= {
            "RCLONE_CONFIG": os.devnull,
            "RCLONE_CONFIG_S3_TYPE": "s3",
            "RCLONE_CONFIG_S3_PROVIDER": "Other",
            "RCLONE_CONFIG_S3_ENV_AUTH": "true",
            "RCLONE_CONFIG_S3_ENDPOINT": server.endpoint,
            "RCLONE_CONFIG_S3_REGION": servers.REGION,
        }
        return Shell([servers.TOOLS / "rclone"], env, transcript)
    path = {"wirespeed": WIRESPEED, "s5cmd": servers.TOOLS / "s5cmd", "aws": AWS}[program]
    return Shell([path, "--endpoint-url", server.endpoint], env, transcript)


def outcome(server: servers.Server, folder: Path, transcript, command: str) -> dict[str, bytes]:
    begin(server, folder)
    program, *words = shlex.split(command)
    ran = client(server, program, transcript)(*words, stdin=b"piped", cwd=folder, code=None)
    if program == "rclone" and "unknown command" in ran.text:
        pytest.skip("our build of rclone has few of its commands; ours was run alone")
    assert ran.code == 0, str(ran)
    return left_behind(server, folder)


@pytest.mark.parametrize(("theirs", "ours"), list(rows()))
def test_both_leave_the_same_behind(server, transcript, tmp_path, theirs, ours):
    after = outcome(server, tmp_path / "ours", transcript, ours)
    if theirs.startswith("aws ") and not AWS.exists():
        pytest.skip("AWS CLI could not be installed here; ours was run alone")
    assert outcome(server, tmp_path / "theirs", transcript, theirs) == after


def test_every_row_was_read():
    """A row that the pattern does not see would be a row that nobody runs."""
    pages = [DOCS / f"from-{name}.md" for name in ["aws-s3", "s5cmd", "rclone"]]
    told = [line for page in pages for line in page.read_text().splitlines() if "| `" in line]
    assert len(told) == len(list(rows()))
