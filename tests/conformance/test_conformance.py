"""The conformance suite against every server that can be started here, and the suite itself."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
import servers
from conftest import fresh_bucket
from shell import LIMIT_SECONDS, Shell

SUITE = servers.TARGET / "wirespeed-conformance"
# From now on every connection ends without an answer.
CLOSE = json.dumps({"fault": [{"action": "close"}]}).encode()
# fixture -> the list of what is known of the server.
SERVERS = {
    "origin_memory": "wirespeed-origin",
    "origin_directory": "wirespeed-origin-dir",
    "versitygw": "versitygw",
    "minio": "minio",
    "moto": "moto",
    "rclone_server": "rclone",
    "s3mock": "s3mock",
}


@pytest.fixture
def suite(transcript) -> Callable[..., Shell]:
    """The suite in a bucket of a server, for so many seconds at most."""

    def at(server: servers.Server, bucket: str, limit: float = LIMIT_SECONDS) -> Shell:
        argv = [SUITE, "--endpoint-url", server.endpoint, "--bucket", bucket]
        return Shell(argv, server.environment(), transcript, limit)

    return at


@pytest.fixture
def bucket(origin_memory):
    """An empty bucket on the embedded server."""
    yield from fresh_bucket(origin_memory)


def _is_there(s3, bucket: str, upload: dict) -> bool:
    """Aborts an upload that is listed: rclone lists some that it no longer has."""
    try:
        s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    except s3.exceptions.ClientError as error:
        return error.response["Error"]["Code"] != "NoSuchUpload"
    return True


def left_in(server: servers.Server, bucket: str) -> list[str]:
    """What lies in the bucket, and which buckets of the suite's own are left."""
    s3 = server.boto3()
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
    listed = s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    uploads = [one["Key"] for one in listed if _is_there(s3, bucket, one)]
    names = [one["Name"] for one in s3.list_buckets()["Buckets"]]
    return keys + uploads + [name for name in names if name.startswith("conformance-")]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fixture", SERVERS)
def test_every_server_does_what_is_known_of_it(fixture, request, suite):
    server = request.getfixturevalue(fixture)
    # Not removed: versitygw keeps a folder of a key that it refused, and then its bucket.
    bucket = f"b-{uuid.uuid4().hex[:16]}"
    server.boto3().create_bucket(Bucket=bucket)
    ran = suite(server, bucket, limit=200)(
        "--server", SERVERS[fixture], "--own-buckets", "--yes", "--json", code=None
    )
    document = json.loads(ran.out)
    cases = document["cases"]
    red = [case for case in cases if case["outcome"] in ("fail", "vanished")]
    assert not red, "\n".join(f"{c['outcome']} {c['name']}: {c['detail']}" for c in red)
    assert ran.code == 0, str(ran)
    assert sum(case["outcome"] == "pass" for case in cases) > 100
    declared = sum(document["declared"][kind] for kind in ("writes", "reads", "deletes"))
    assert 0 < document["spent"]["requests"] <= declared
    assert left_in(server, bucket) == []


def test_it_asks_before_it_sends_anything(origin_memory, suite, bucket):
    unasked = suite(origin_memory, bucket)("--only", "objects/empty", code=2)
    assert "--yes" in unasked.text
    assert re.search(r"at most \d+ PUT, COPY, POST and LIST requests", unasked.text)
    master, slave = pty.openpty()
    argv = [SUITE, "--endpoint-url", origin_memory.endpoint, "--bucket", bucket]
    argv += ["--only", "objects/empty"]
    with os.fdopen(master, "wb", buffering=0) as person:
        process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=origin_memory.environment(),
        )
        os.close(slave)
        person.write(b"n\n")
        out, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert b"Go on?" in err
    assert out == b""


def test_a_new_failure_and_a_vanished_deviation_are_red(origin_memory, suite, bucket, tmp_path):
    known = tmp_path / "known"
    known.write_text("differs objects/empty it is said to differ\n")
    ran = suite(origin_memory, bucket)
    vanished = ran("--only", "objects/empty", "--known", known, "--yes", code=1)
    assert vanished.lines[0].startswith("VANISHED")
    known.write_text("# nothing is known\n")
    passed = ran("--only", "objects/empty", "--known", known, "--yes", code=0)
    assert passed.lines[0].startswith("pass")


def test_a_failure_that_no_list_knows_is_red(moto, suite, tmp_path):
    known = tmp_path / "known"
    known.write_text("# nothing is known\n")
    for bucket in fresh_bucket(moto):
        ran = suite(moto, bucket)
        failed = ran("--only", "objects/wrong-content-md5", "--known", known, "--yes", code=1)
        assert failed.lines[0].startswith("FAIL")
        assert "accepted" in failed.lines[0]


def test_an_interrupt_leaves_nothing_behind(origin_memory, suite, bucket):
    def press(process: subprocess.Popen) -> None:
        deadline = time.monotonic() + 20
        while not left_in(origin_memory, bucket) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)

    ran = suite(origin_memory, bucket)("--own-buckets", "--yes", code=130, meanwhile=press)
    assert "cases:" in ran.text
    assert left_in(origin_memory, bucket) == []


def test_what_can_not_be_removed_is_named_beside_the_result(origin_memory, suite, bucket):
    ran = suite(origin_memory, bucket)
    with origin_memory.misbehaving(
        {"action": "error:403:AccessDenied", "verb": "delete-many"},
        {"action": "error:403:AccessDenied", "verb": "delete"},
    ):
        passed = ran("--only", "objects/empty", "--yes", code=0)
    assert "1 cases: 1 pass" in passed.text
    (key,) = left_in(origin_memory, bucket)
    said = [line for line in passed.text.splitlines() if "left behind" in line]
    assert f"{bucket}/{key}" in said[0]
    assert "AccessDenied" in said[0]
    with origin_memory.misbehaving({"action": "error:403:AccessDenied", "verb": "delete-many"}):
        document = json.loads(ran("--only", "objects/empty", "--yes", "--json").out)
    # One by one it went.
    assert (document["left_behind"], document["not_run"]) == ([], 0)


def test_a_server_that_is_gone_is_not_asked_on_and_on(suite, tmp_path):
    with servers.origin(tmp_path) as server:
        server.boto3().create_bucket(Bucket="bucket")

        def stop(process: subprocess.Popen) -> None:
            line = process.stdout.readline()
            assert line.startswith(b"pass"), line
            with urllib.request.urlopen(f"{server.endpoint}/-/faults", data=CLOSE):
                pass

        quick = ("--set", "max_attempts=2")
        ran = suite(server, "bucket")("--yes", *quick, code=3, meanwhile=stop)
        assert re.search(r"answers no longer \(.*\): \d+ cases were not run", ran.text)
        assert re.search("left behind: what is in bucket/conformance-", ran.text)
        assert ran.seconds < 20
    gone = suite(server, "bucket")("--yes", *quick, "--json", code=2)
    document = json.loads(gone.out)
    assert len(document["cases"]) == 1
    assert document["not_run"] > 100


def test_cases_are_named_without_a_server(tmp_path, transcript):
    ran = Shell([SUITE], {"PATH": os.environ["PATH"]}, transcript)("--list", "--only", "ranges/")
    assert len(ran.lines) > 10
    assert all(line.startswith("ranges/") for line in ran.lines)


def test_the_lists_say_why():
    for path in (Path(servers.ROOT) / "conformance" / "known").glob("*.txt"):
        for line in path.read_text().splitlines():
            assert line.startswith("#") or not line or len(line.split(maxsplit=2)) == 3, line
