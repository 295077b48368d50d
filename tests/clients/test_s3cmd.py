"""s3cmd, which signs for the region US until the server says which it is in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from shell import Shell


@pytest.fixture
def s3cmd(origin, transcript, tmp_path) -> Shell:
    address = origin.endpoint.removeprefix("http://")
    hosts = [f"--host={address}", f"--host-bucket={address}", "--no-ssl"]
    settings = tmp_path / "s3cfg"
    settings.write_text("[default]\n")
    argv = [Path(sys.executable).parent / "s3cmd", f"--config={settings}", "--no-progress", *hosts]
    return Shell(argv, origin.environment(), transcript)


def test_its_ordinary_work(s3cmd, origin_bucket, payload, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(payload)
    key = f"s3://{origin_bucket}/ümläut 😀"
    s3cmd("put", there, key)
    assert key in s3cmd("ls", f"s3://{origin_bucket}").out.decode()
    s3cmd("get", key, back)
    assert back.read_bytes() == payload
    s3cmd("del", key)
    assert s3cmd("ls", f"s3://{origin_bucket}").out == b""


def test_a_bucket_is_made_and_removed(s3cmd, origin):
    s3cmd("mb", "s3://made-by-s3cmd")
    s3cmd("rb", "s3://made-by-s3cmd")
    assert "made-by-s3cmd" not in [one["Name"] for one in origin.boto3().list_buckets()["Buckets"]]
