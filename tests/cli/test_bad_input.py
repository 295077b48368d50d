"""What can go wrong outside, and how it is said: never a hang, a panic or half a file."""

from __future__ import annotations

import os
import threading
import time

import endpoints
import pytest
import servers
from files import files_below, small_disk

MIB = 1 << 20


@pytest.fixture
def s3(server):
    return server.boto3()


def one_line(ran, *words: str) -> None:
    """The message is a line for a person that has these words in it, and no trace of a panic."""
    assert "panicked" not in ran.text, str(ran)
    assert "RUST_BACKTRACE" not in ran.text, str(ran)
    message = ran.err.decode()
    for word in words:
        assert word in message, str(ran)


@pytest.mark.parametrize("name", ["A_B", "ab", "a" * 64, "-a-", "a..b", "192.168.0.1", "a b", "ä"])
def test_a_bucket_that_cannot_exist(ws, name):
    ran = ws("mb", f"s3://{name}", code=None)
    assert ran.code in (2, 3), str(ran)
    one_line(ran, name)


def test_a_key_that_cannot_exist(ws, bucket, tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    ran = ws("cp", tmp_path / "f", f"s3://{bucket}/{'k' * 1025}", code=None)
    assert ran.code in (2, 3), str(ran)
    one_line(ran, "1,024")


@pytest.mark.parametrize(
    "argv", [["cp"], ["fly"], ["ls", "--what"], ["stat", "s3://"], ["--part-size", "x", "ls"]]
)
def test_usage(ws, argv):
    one_line(ws(*argv, code=2))


def test_what_is_not_there(ws, bucket, tmp_path):
    one_line(ws("stat", f"s3://{bucket}/none", code=3), "none")
    one_line(ws("cat", f"s3://{bucket}/none", code=3), "none")
    one_line(ws("cp", f"s3://{bucket}/none", tmp_path / "f", code=3), "none")
    one_line(ws("ls", f"s3://{bucket}-none", code=3), f"{bucket}-none")
    one_line(ws("cp", tmp_path / "none", f"s3://{bucket}/k", code=3), str(tmp_path / "none"))
    assert files_below(tmp_path) == {}


def test_a_wrong_key(ws, bucket, transcript):
    _, wrong = servers.new_keys()
    transcript.keep_secret(wrong)
    liar = ws.with_env(AWS_SECRET_ACCESS_KEY=wrong)
    one_line(liar("ls", f"s3://{bucket}", code=3), "SignatureDoesNotMatch")
    liar("-vv", "ls", f"s3://{bucket}", code=3)


def test_no_signature_where_one_is_needed(ws, bucket):
    one_line(ws("--no-sign-request", "ls", f"s3://{bucket}", code=3), "AccessDenied")


def test_the_most_talkative_log_has_no_secret(ws, bucket, tmp_path, transcript):
    (tmp_path / "f").write_bytes(b"x")
    token = "/+session" + servers.new_keys()[1]
    transcript.keep_secret(token)
    ran = ws("-vv", "cp", tmp_path / "f", f"s3://{bucket}/k")
    assert len(ran.err) > 100, "the log is on"
    ws.with_env(AWS_SESSION_TOKEN=token)("-vv", "ls", f"s3://{bucket}", code=None)


def test_nobody_listens(versitygw, wirespeed_at, tmp_path):
    ws = wirespeed_at(versitygw, f"http://127.0.0.1:{servers.free_port()}")
    ran = ws("cp", "s3://bucket/k", tmp_path / "k", code=3)
    one_line(ran, "127.0.0.1")
    assert ran.seconds < 30
    assert files_below(tmp_path) == {}


def test_an_endpoint_that_never_answers(versitygw, wirespeed_at, tmp_path):
    with endpoints.silent() as endpoint:
        ws = wirespeed_at(versitygw, endpoint)
        quick = ["--set", "first_byte_timeout=1s", "--set", "max_attempts=2"]
        ran = ws(*quick, "cp", "s3://bucket/k", tmp_path / "k", code=3)
    one_line(ran, "s3://bucket/k", "timed out")
    assert ran.seconds < 20
    assert files_below(tmp_path) == {}


@pytest.mark.parametrize(
    "answer",
    [
        b"\x16\x03\x01 not HTTP at all \x00\xff\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: banana\r\n\r\n",
        b"HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 7-11/12\r\n"
        b"Content-Length: 5\r\n\r\nhello",
        b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\nETag: "a"\r\n\r\nshort',
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * (1 << 20),
        b"",
    ],
    ids=["noise", "length", "no-range", "wrong-range", "short", "chunk", "endless-head", "nothing"],
)
def test_an_endpoint_that_lies(versitygw, wirespeed_at, tmp_path, answer):
    with endpoints.answering(answer) as endpoint:
        ran = wirespeed_at(versitygw, endpoint)("cp", "s3://bucket/k", tmp_path / "k", code=3)
    one_line(ran)
    assert ran.seconds < 30
    assert files_below(tmp_path) == {}


def test_a_listing_that_is_not_xml(versitygw, wirespeed_at):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n<ListBucketResult><Key"
    with endpoints.answering(answer) as endpoint:
        one_line(wirespeed_at(versitygw, endpoint)("ls", "s3://bucket", code=3))


def test_a_target_folder_that_is_a_file(ws, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    (tmp_path / "file").write_bytes(b"here")
    one_line(ws("cp", f"s3://{bucket}/k", tmp_path / "file" / "k", code=3), "file")
    assert files_below(tmp_path) == {"file": b"here"}


def test_a_target_folder_that_cannot_be_made(ws, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    one_line(ws("cp", f"s3://{bucket}/k", "/proc/none/k", code=3), "/proc/none")


def test_a_target_folder_that_is_read_only(ws, s3, bucket, tmp_path):
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    with small_disk(tmp_path / "ro", "1m", read_only=True) as disk:
        one_line(ws("cp", f"s3://{bucket}/k", disk / "k", code=3), str(disk))


def test_a_target_folder_that_is_full(ws, s3, bucket, payload, tmp_path):
    s3.put_object(Bucket=bucket, Key="k", Body=payload)
    with small_disk(tmp_path / "small", "8m") as disk:
        (disk / "k").write_bytes(b"older")
        one_line(ws("cp", f"s3://{bucket}/k", disk / "k", code=3), "space")
        assert files_below(disk) == {"k": b"older"}


def test_keys_that_would_leave_the_target_folder(origin, wirespeed_at, origin_bucket, tmp_path):
    ws, s3 = wirespeed_at(origin, origin.endpoint), origin.boto3()
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    target.mkdir()
    (target / "link").symlink_to(outside)
    (outside / "there").write_bytes(b"untouched")
    (target / "alias").symlink_to(outside / "there")
    bad = ["../x", "/absolute", "a/../../x", "a/./b", "a//b", "link/x", "alias", "..", "trail/"]
    good = ["a/ok", "ok", "..ok", "z/ok"]
    for key in bad + good:
        s3.put_object(Bucket=origin_bucket, Key=key, Body=key.encode())
    ran = ws("cp", f"s3://{origin_bucket}", target, "--recursive", code=1)
    one_line(ran, "../x", "/absolute", "link/x")
    assert files_below(outside) == {"there": b"untouched"}
    kept = {k: v for k, v in files_below(target).items() if not k.startswith(("link", "alias"))}
    assert kept == {key: key.encode() for key in good}
    assert not (tmp_path / "x").exists()


def test_a_source_that_cannot_be_read_fails_alone(ws, s3, bucket, tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    ws("cp", tmp_path, f"s3://{bucket}", "--recursive", code=None)
    assert [one["Key"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["a"]


def test_a_source_that_shrinks(server, wirespeed_at, bucket, payload, tmp_path):
    source = tmp_path / "f"
    source.write_bytes(payload)

    def shrink() -> None:
        time.sleep(0.5)
        os.truncate(source, 1000)

    with endpoints.slow(server.port, 16 * MIB) as endpoint:
        shrinking = threading.Thread(target=shrink)
        shrinking.start()
        knobs = ["--part-size", "5MiB", "--concurrency", "1"]
        ran = wirespeed_at(server, endpoint)(*knobs, "cp", source, f"s3://{bucket}/k", code=3)
        shrinking.join()
    one_line(ran, str(source))
    s3 = server.boto3()
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
