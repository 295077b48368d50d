"""boto3 into memory, and the CRT as s3transfer drives it: one large object, listings.

``get-object`` reads the body whole, as most code does: fresh bytes each time.
``download-fileobj`` and ``crt`` fill one BytesIO over and over, so that its memory is warm.
``crt`` drives `s3transfer.crt` directly: boto3's own choice of it ignores ``endpoint_url``,
and falls back to the classic client without a word when another process holds its lock.
Here nothing is chosen: that the CRT's client made the request is counted, and a round in
which it did not ends the process.
"""

from __future__ import annotations

import functools
import io
import os
import sys
import urllib.parse

import awscrt.auth
import awscrt.s3
import boto3
import botocore.config
import botocore.session
import s3transfer.crt
import step_protocol
from boto3.s3.transfer import TransferConfig
from step_protocol import Round

WORK = step_protocol.arguments(
    __doc__, ("get-object", "download-fileobj", "crt", "list-keys", "list-columns")
)
#: Without checksums, like the other clients here; no body here has one.
CONFIG = botocore.config.Config(
    s3={"addressing_style": "path"},
    max_pool_connections=max(WORK.connections, TransferConfig().max_concurrency),
    retries={"max_attempts": 1},
    response_checksum_validation="when_required",
)
KEYS = {
    "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
    "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
}
REGION = os.environ.get("AWS_REGION", "us-east-1")
PATIENCE = 120


@functools.cache
def _client():
    session = boto3.session.Session(**KEYS, region_name=REGION)
    return session.client("s3", endpoint_url=WORK.endpoint, config=CONFIG)


@functools.cache
def _memory() -> io.BytesIO:
    return io.BytesIO()


def _whole(done: Round) -> None:
    done.received(WORK.key, _memory().getbuffer())
    done.objects = 1


def _get_object(done: Round) -> None:
    client = _client()
    with done.clock:
        body = client.get_object(Bucket=WORK.bucket, Key=WORK.key)["Body"].read()
    done.received(WORK.key, body)
    done.objects = 1
    with done.clock:
        del body


def _download_fileobj(done: Round) -> None:
    client, into = _client(), _memory()
    into.seek(0)
    with done.clock:
        client.download_fileobj(WORK.bucket, WORK.key, into)
    _whole(done)


class _Counted(awscrt.s3.S3Client):
    """The CRT's client, and how many transfers it was given."""

    made = 0

    def make_request(self, **options):
        _Counted.made += 1
        return super().make_request(**options)


@functools.cache
def _crt() -> s3transfer.crt.CRTTransferManager:
    secure = urllib.parse.urlsplit(WORK.endpoint).scheme == "https"
    s3transfer.crt.S3Client = _Counted
    client = s3transfer.crt.create_s3_crt_client(
        REGION,
        crt_credentials_provider=awscrt.auth.AwsCredentialsProvider.new_static(*KEYS.values()),
        num_threads=1,
        part_size=WORK.part,
        use_ssl=secure,
        verify=os.environ["AWS_CA_BUNDLE"] if secure else None,
    )
    serializer = s3transfer.crt.BotocoreCRTRequestSerializer(
        botocore.session.Session(),
        {"region_name": REGION, "endpoint_url": WORK.endpoint, "config": CONFIG, **KEYS},
    )
    return s3transfer.crt.CRTTransferManager(client, serializer)


def _through_crt(done: Round) -> None:
    manager, into = _crt(), _memory()
    into.seek(0)
    before = _Counted.made
    with done.clock:
        manager.download(WORK.bucket, WORK.key, into).result(PATIENCE)
    if _Counted.made != before + 1:
        sys.exit("the CRT's client did not make this transfer")
    _whole(done)


def _pages():
    paginator = _client().get_paginator("list_objects_v2")
    return paginator.paginate(Bucket=WORK.bucket, Prefix=WORK.prefix)


def _list_keys(done: Round) -> None:
    with done.clock:
        keys = [entry["Key"] for page in _pages() for entry in page["Contents"]]
    done.listed(keys)
    with done.clock:
        del keys


def _list_columns(done: Round) -> None:
    """Four lists, as one would fill a data frame."""
    with done.clock:
        columns: dict[str, list] = {"Key": [], "Size": [], "LastModified": [], "ETag": []}
        for page in _pages():
            for name, column in columns.items():
                column.extend(entry[name] for entry in page["Contents"])
    done.listed(columns["Key"])
    with done.clock:
        del columns


MODES = {
    "get-object": _get_object,
    "download-fileobj": _download_fileobj,
    "crt": _through_crt,
    "list-keys": _list_keys,
    "list-columns": _list_columns,
}

if __name__ == "__main__":
    step_protocol.serve(WORK, MODES)
