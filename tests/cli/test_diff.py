"""`wirespeed diff`: what it says of two trees, and that it moves none of them."""

from __future__ import annotations

import pytest

MIB = 1 << 20
LEFT = {"a": b"same", "b/c": b"left!", "b/size": b"1", "left": b"x", "x.tmp": b"x"}
RIGHT = {"a": b"same", "b/c": b"right", "b/size": b"22", "right": b"x", "y.tmp": b"x"}
BETWEEN = ["* b/c (other contents)", "* b/size (1 and 2 bytes)", "- left", "+ right"]


@pytest.fixture
def left(tmp_path):
    """The left tree, a folder."""
    for name, body in LEFT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(body)
    return tmp_path


@pytest.fixture
def right(server, bucket):
    """The right tree, a prefix that somebody else's client wrote."""
    for key, body in RIGHT.items():
        server.boto3().put_object(Bucket=bucket, Key=f"t/{key}", Body=body)
    return f"s3://{bucket}/t"


def test_a_folder_and_a_prefix(ws, left, right):
    ran = ws("diff", left, right, "--exclude", "*.tmp", code=1)
    assert ran.lines == BETWEEN
    assert b"1 the same, 2 different, 1 only on the left, 1 only on the right" in ran.err
    ran = ws("diff", right, left, "--exclude", "*.tmp", "--json", code=1)
    assert [(line.get("status"), line.get("key")) for line in ran.json[:-1]] == [
        ("contents", "b/c"),
        ("size", "b/size"),
        ("only_right", "left"),
        ("only_left", "right"),
    ]
    assert ran.json[-1]["type"] == "summary"
    assert ran.json[-1]["same"] == 1


def test_quiet_leaves_the_code(ws, left, right):
    ran = ws("diff", "-q", left, right, code=1)
    assert not ran.text, str(ran)
    ran = ws("diff", "-q", left, left)
    assert not ran.text, str(ran)


def test_the_same_by_size_only(ws, left, right):
    filters = ["--exclude", "*", "--include", "a", "--include", "b/c"]
    ws("diff", left, right, *filters, "--size-only")
    ws("diff", left, right, *filters, code=1)


@pytest.mark.parametrize("wrote", ["boto3", "wirespeed"])
def test_large_objects_of_parts(ws, server, bucket, tmp_path, payload, wrote):
    """By the checksum of the whole where there is one, by the parts' ETag where there is none."""
    (tmp_path / "large").write_bytes(payload)
    if wrote == "boto3":
        server.boto3().upload_file(str(tmp_path / "large"), bucket, "large")
    else:
        ws("cp", tmp_path / "large", f"s3://{bucket}/large")
    ws("diff", tmp_path, f"s3://{bucket}", "--download")
    ran = ws("diff", tmp_path, f"s3://{bucket}", code=None)
    assert ran.code == 0, f"without a download: {ran}"
    (tmp_path / "large").write_bytes(payload[:-1] + bytes([payload[-1] ^ 1]))
    ran = ws("diff", tmp_path, f"s3://{bucket}", "--download", code=1)
    assert ran.lines == ["* large (other contents)"]


def test_trouble_has_a_code_of_its_own(ws, left, bucket, tmp_path):
    ws("diff", tmp_path / "nowhere", f"s3://{bucket}", code=3)
    ws("diff", left, "s3://no-such-bucket-anywhere", code=3)
    ws("diff", left / "a", f"s3://{bucket}", code=2)
    ws("diff", "-", left, code=2)
