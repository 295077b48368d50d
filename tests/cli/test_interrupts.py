"""Ctrl-C at any moment: the command stops within a second and leaves nothing half done."""

from __future__ import annotations

import endpoints
import pytest
from files import files_below

MIB = 1 << 20
# Before anything is sent, while the first bytes move, and in the thick of it.
MOMENTS = [0.02, 0.1, 0.3, 0.8, 1.3]
# A line on which the 40 MiB of a test take about three seconds.
RATE = 14 * MIB


@pytest.fixture
def s3(server):
    return server.boto3()


@pytest.mark.parametrize("after", MOMENTS)
def test_during_a_download(server, wirespeed_at, s3, bucket, payload, tmp_path, after):
    s3.put_object(Bucket=bucket, Key="k", Body=payload)
    (tmp_path / "k").write_bytes(b"older")
    with endpoints.slow(server.port, RATE) as endpoint:
        ws = wirespeed_at(server, endpoint)
        ran, more = ws.interrupted(after, "cp", f"s3://{bucket}/k", tmp_path / "k")
    assert ran.code == 130, str(ran)
    assert more < 1.0
    assert files_below(tmp_path) == {"k": b"older"}


@pytest.mark.parametrize("after", MOMENTS)
def test_during_an_upload(server, wirespeed_at, s3, bucket, payload, tmp_path, after):
    (tmp_path / "k").write_bytes(payload)
    with endpoints.slow(server.port, RATE) as endpoint:
        ws = wirespeed_at(server, endpoint)
        ran, more = ws.interrupted(after, "cp", tmp_path / "k", f"s3://{bucket}/k")
    assert ran.code == 130, str(ran)
    assert more < 1.0
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


@pytest.mark.parametrize("after", MOMENTS)
def test_during_a_recursive_download(server, wirespeed_at, s3, bucket, payload, tmp_path, after):
    whole = {f"k{n:03}": payload[n * MIB // 4 : (n + 1) * MIB // 4] for n in range(120)}
    for key, body in whole.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body)
    with endpoints.slow(server.port, RATE) as endpoint:
        ws = wirespeed_at(server, endpoint)
        ran, more = ws.interrupted(after, "cp", f"s3://{bucket}", tmp_path / "d", "--recursive")
    assert ran.code == 130, str(ran)
    assert more < 1.0
    left = files_below(tmp_path)
    assert left.items() <= {f"d/{key}": body for key, body in whole.items()}.items()
    assert len(left) < len(whole)


@pytest.mark.parametrize("after", MOMENTS)
def test_during_a_recursive_upload(server, wirespeed_at, s3, bucket, payload, tmp_path, after):
    whole = {f"k{n:03}": payload[n * MIB // 4 : (n + 1) * MIB // 4] for n in range(120)}
    for key, body in whole.items():
        (tmp_path / key).write_bytes(body)
    with endpoints.slow(server.port, RATE) as endpoint:
        ws = wirespeed_at(server, endpoint)
        ran, more = ws.interrupted(after, "cp", tmp_path, f"s3://{bucket}", "--recursive")
    assert ran.code == 130, str(ran)
    assert more < 1.0
    stored = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
    assert len(stored) < len(whole)
    for key in stored:
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == whole[key]


@pytest.mark.parametrize("verb", [["cat", "s3://bucket/k"], ["ls", "s3://bucket"]])
def test_while_the_endpoint_says_nothing(versitygw, wirespeed_at, verb):
    with endpoints.silent() as endpoint:
        ran, more = wirespeed_at(versitygw, endpoint).interrupted(0.5, *verb)
    assert ran.code == 130, str(ran)
    assert more < 1.0
