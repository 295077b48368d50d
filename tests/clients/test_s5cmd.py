"""s5cmd does its ordinary work against the embedded server."""

from __future__ import annotations

import pytest
import servers
from shell import Shell

KEYS = ["plain", "deep/er/key", "two  spaces", "pl+us", "per%cent", "ümläut", "🚀"]


@pytest.fixture
def s5cmd(origin, transcript) -> Shell:
    argv = [servers.TOOLS / "s5cmd", "--endpoint-url", origin.endpoint, "--retry-count", "0"]
    return Shell(argv, origin.environment(), transcript)


def test_small_objects(s5cmd, origin_bucket, tmp_path):
    for key in KEYS:
        source = tmp_path / "up" / key
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(key)
    s5cmd("cp", f"{tmp_path}/up/", f"s3://{origin_bucket}/some/")
    listed = s5cmd("ls", f"s3://{origin_bucket}/some/*").lines
    assert sorted(line.split(maxsplit=3)[3] for line in listed) == sorted(KEYS)
    s5cmd("cp", f"s3://{origin_bucket}/some/*", f"{tmp_path}/down/")
    for key in KEYS:
        assert (tmp_path / "down" / key).read_text() == key
        assert s5cmd("cat", f"s3://{origin_bucket}/some/{key}").out == key.encode()
    s5cmd("rm", f"s3://{origin_bucket}/some/plain")
    s5cmd("rm", f"s3://{origin_bucket}/some/*")
    assert "no object found" in s5cmd("ls", f"s3://{origin_bucket}/some/*", code=1).text


def test_a_multipart_upload_and_ranged_gets(s5cmd, origin_bucket, payload, tmp_path):
    (tmp_path / "up").write_bytes(payload)
    s5cmd("cp", "--part-size", "8", f"{tmp_path}/up", f"s3://{origin_bucket}/big")
    (line,) = s5cmd("ls", "--etag", f"s3://{origin_bucket}/big").lines
    assert f"-5 {len(payload)} " in " ".join(line.split()) + " "
    s5cmd("cp", "--part-size", "6", f"s3://{origin_bucket}/big", f"{tmp_path}/down")
    assert (tmp_path / "down").read_bytes() == payload


def test_more_than_one_page(s5cmd, origin_bucket, tmp_path):
    for n in range(1050):
        (tmp_path / f"k{n:05}").write_text(str(n))
    s5cmd("cp", f"{tmp_path}/", f"s3://{origin_bucket}/")
    assert len(s5cmd("ls", f"s3://{origin_bucket}/*").lines) == 1050
    assert s5cmd("du", f"s3://{origin_bucket}/*").out.split()[3] == b"1050"
    s5cmd("rm", f"s3://{origin_bucket}/*")
    s5cmd("rb", f"s3://{origin_bucket}")
    s5cmd("ls", f"s3://{origin_bucket}", code=1)


def test_a_copy_and_a_move(s5cmd, origin_bucket):
    s5cmd("pipe", f"s3://{origin_bucket}/a", stdin=b"moved")
    s5cmd("cp", f"s3://{origin_bucket}/a", f"s3://{origin_bucket}/b c")
    s5cmd("mv", f"s3://{origin_bucket}/a", f"s3://{origin_bucket}/d")
    assert s5cmd("cat", f"s3://{origin_bucket}/b c").out == b"moved"
    assert s5cmd("cat", f"s3://{origin_bucket}/d").out == b"moved"
    s5cmd("head", f"s3://{origin_bucket}/a", code=1)


def test_buckets(s5cmd, origin_bucket):
    other = f"s3://{origin_bucket}-2"
    s5cmd("mb", other)
    assert any(line.endswith(other) for line in s5cmd("ls").lines)
    s5cmd("rb", other)
    assert not any(line.endswith(other) for line in s5cmd("ls").lines)
