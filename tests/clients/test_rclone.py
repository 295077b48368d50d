"""rclone does its ordinary work against the embedded server."""

from __future__ import annotations

import json
import os

import pytest
import servers
from shell import Shell

KEYS = ["plain", "deep/er/key", "two  spaces", "pl+us", "per%cent", "ümläut", "🚀"]


@pytest.fixture
def rclone(origin, transcript) -> Shell:
    env = origin.environment() | {
        "RCLONE_CONFIG": os.devnull,
        "RCLONE_CONFIG_O_TYPE": "s3",
        "RCLONE_CONFIG_O_PROVIDER": "Other",
        "RCLONE_CONFIG_O_ENV_AUTH": "true",
        "RCLONE_CONFIG_O_ENDPOINT": origin.endpoint,
        "RCLONE_CONFIG_O_REGION": servers.REGION,
        "RCLONE_S3_UPLOAD_CUTOFF": "16M",
        "RCLONE_S3_CHUNK_SIZE": "8M",
        "RCLONE_RETRIES": "1",
        "RCLONE_LOW_LEVEL_RETRIES": "1",
    }
    return Shell([servers.TOOLS / "rclone"], env, transcript)


def listed(rclone: Shell, where: str) -> list[str]:
    return sorted(o["Path"] for o in json.loads(rclone("lsjson", "-R", "--files-only", where).out))


def test_a_tree_up_and_down(rclone, origin_bucket, tmp_path):
    for key in KEYS:
        source = tmp_path / "up" / key
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(key)
    rclone("copy", tmp_path / "up", f"o:{origin_bucket}/some")
    assert listed(rclone, f"o:{origin_bucket}/some") == sorted(KEYS)
    rclone("check", "--download", tmp_path / "up", f"o:{origin_bucket}/some")
    rclone("copy", f"o:{origin_bucket}/some", tmp_path / "down")
    for key in KEYS:
        assert (tmp_path / "down" / key).read_text() == key
    rclone("deletefile", f"o:{origin_bucket}/some/plain")
    assert listed(rclone, f"o:{origin_bucket}/some") == sorted(KEYS[1:])
    rclone("delete", f"o:{origin_bucket}/some")
    assert listed(rclone, f"o:{origin_bucket}") == []


def test_a_multipart_upload_and_ranged_gets(rclone, origin_bucket, payload, tmp_path):
    (tmp_path / "up").write_bytes(payload)
    rclone("copyto", tmp_path / "up", f"o:{origin_bucket}/big")
    ranged = ["--multi-thread-cutoff", "1M", "--multi-thread-streams", "4"]
    rclone("copyto", *ranged, f"o:{origin_bucket}/big", tmp_path / "down")
    assert (tmp_path / "down").read_bytes() == payload
    middle = rclone("cat", "--offset", "9000000", "--count", "70000", f"o:{origin_bucket}/big")
    assert middle.out == payload[9_000_000:9_070_000]


def test_more_than_one_page(rclone, origin_bucket, tmp_path):
    for n in range(1050):
        (tmp_path / f"k{n:05}").write_text(str(n))
    rclone("copy", "--transfers", "16", tmp_path, f"o:{origin_bucket}")
    assert listed(rclone, f"o:{origin_bucket}") == [f"k{n:05}" for n in range(1050)]
    rclone("purge", f"o:{origin_bucket}")
    rclone("lsjson", f"o:{origin_bucket}", code=3)


def test_a_copy_on_the_server(rclone, origin, origin_bucket, tmp_path):
    (tmp_path / "a").write_text("copied")
    rclone("copyto", tmp_path / "a", f"o:{origin_bucket}/a")
    rclone("copyto", f"o:{origin_bucket}/a", f"o:{origin_bucket}/b c")
    assert rclone("cat", f"o:{origin_bucket}/b c").out == b"copied"
    copied = origin.boto3().head_object(Bucket=origin_bucket, Key="b c")
    assert "mtime" in copied["Metadata"]


def test_buckets(rclone, origin_bucket):
    rclone("mkdir", f"o:{origin_bucket}-2")
    rclone("rmdir", f"o:{origin_bucket}-2")
    rclone("lsjson", f"o:{origin_bucket}-2", code=3)
