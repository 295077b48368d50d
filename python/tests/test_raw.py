"""Raw requests: an operation that has no verb, as its bytes."""

from __future__ import annotations

import asyncio

import pytest

import wirespeed


@pytest.mark.every_store
def test_an_operation_without_a_verb_is_sent_and_answered(verbs, bucket, client, s3):
    client.put("k ü+%/x", b"body", bucket=bucket)
    body = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
    answer = verbs.raw("PUT", bucket, "k ü+%/x", query={"tagging": ""}, body=bytearray(body))
    assert answer.status in (200, 204)
    tags = s3.get_object_tagging(Bucket=bucket, Key="k ü+%/x")["TagSet"]
    assert tags == [{"Key": "a", "Value": "b"}]
    answer = verbs.raw("GET", bucket, "k ü+%/x", query={"tagging": ""})
    assert b"<Key>a</Key>" in answer.body
    assert answer.headers["content-type"] == "application/xml"
    assert "RawAnswer, 2" not in repr(answer)
    assert repr(answer).startswith("<wirespeed.RawAnswer 200")
    assert verbs.raw("HEAD", bucket, "k ü+%/x").headers["content-length"] == "4"


def test_headers_and_the_service_can_be_asked(verbs, bucket, client):
    client.put("k", b"body", bucket=bucket)
    answer = verbs.raw("GET", bucket, "k", headers={"Range": "bytes=1-2"})
    assert (answer.status, answer.body) == (206, b"od")
    assert bucket.encode() in verbs.raw("GET").body


def test_refusals_are_errors_of_their_kinds(verbs, bucket):
    with pytest.raises(wirespeed.NotFoundError) as caught:
        verbs.raw("GET", bucket, "none", query={"tagging": ""})
    assert caught.value.code == "NoSuchKey"
    for wrong, message in (
        (("PATCH", bucket), "POST"),
        (("GET", "", "k"), "bucket"),
    ):
        with pytest.raises(wirespeed.ConfigError, match=message):
            verbs.raw(*wrong)
    with pytest.raises(wirespeed.ConfigError, match="PUT and POST"):
        verbs.raw("GET", bucket, body=b"x")
    with pytest.raises(TypeError):
        verbs.raw("PUT", bucket, "k", body="text")
    with pytest.raises(wirespeed.ConfigError):
        verbs.raw("GET", bucket, headers={"x-a": "1\r\nx-b: 2"})


def test_the_verb_of_the_module_awaits(environment, bucket):
    async def main() -> int:
        return (await wirespeed.aio.raw("HEAD", bucket)).status

    wirespeed.set_default_client(None)
    try:
        assert asyncio.run(main()) == 200
        assert wirespeed.raw("HEAD", bucket).status == 200
    finally:
        wirespeed.set_default_client(None)


def test_a_presigned_get_sets_headers_of_its_answer(client, bucket):
    import urllib.request

    client.put("k", b"body", bucket=bucket)
    response = {"Content-Disposition": "attachment; filename=a.txt", "cache-control": "no-store"}
    url = client.presign("k", bucket=bucket, response=response)
    with urllib.request.urlopen(url) as answer:
        assert answer.headers["Content-Disposition"] == "attachment; filename=a.txt"
        assert answer.headers["Cache-Control"] == "no-store"
    with pytest.raises(wirespeed.ConfigError, match="x-other"):
        client.presign("k", bucket=bucket, response={"x-other": "1"})
    with pytest.raises(wirespeed.ConfigError, match="GET or HEAD"):
        client.presign("k", bucket=bucket, method="PUT", response=response)
