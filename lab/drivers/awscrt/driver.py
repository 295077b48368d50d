"""The AWS Common Runtime's S3 client on one large object.

``memory`` copies every piece of the body, which Python is handed as fresh bytes, to its place
in memory that is used over and over; ``callback`` drops them; with ``null`` the runtime
writes to /dev/null itself, so that nothing but the C client is measured. Checksums are off.
One event loop thread.
"""

from __future__ import annotations

import functools
import os
import sys
import urllib.parse
from pathlib import Path

import step_protocol
from awscrt.auth import AwsCredentialsProvider
from awscrt.http import HttpHeaders, HttpRequest
from awscrt.io import (
    ClientBootstrap,
    ClientTlsContext,
    DefaultHostResolver,
    EventLoopGroup,
    TlsContextOptions,
)
from awscrt.s3 import S3Client, S3RequestTlsMode, S3RequestType, create_default_s3_signing_config
from step_protocol import Round

WORK = step_protocol.arguments(__doc__, ("memory", "callback", "null"))
URL = urllib.parse.urlsplit(WORK.endpoint)
#: Seconds for one round.
PATIENCE = 120


@functools.cache
def _client() -> S3Client:
    loops = EventLoopGroup(num_threads=1)
    bootstrap = ClientBootstrap(loops, DefaultHostResolver(loops))
    credentials = AwsCredentialsProvider.new_static(
        os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    )
    region = os.environ.get("AWS_REGION", "us-east-1")
    secure = URL.scheme == "https"
    connection = None
    if secure:
        options = TlsContextOptions()
        options.override_default_trust_store(Path(os.environ["AWS_CA_BUNDLE"]).read_bytes())
        connection = ClientTlsContext(options).new_connection_options()
    return S3Client(
        bootstrap=bootstrap,
        region=region,
        signing_config=create_default_s3_signing_config(
            region=region, credential_provider=credentials
        ),
        tls_mode=S3RequestTlsMode.ENABLED if secure else S3RequestTlsMode.DISABLED,
        tls_connection_options=connection,
        part_size=WORK.part,
        max_active_connections_override=WORK.connections,
    )


def _fetch(**receiver: object) -> None:
    path = f"/{WORK.bucket}/{WORK.key}"
    _client().make_request(
        type=S3RequestType.GET_OBJECT,
        request=HttpRequest("GET", path, HttpHeaders([("host", URL.netloc)])),
        **receiver,
    ).finished_future.result(PATIENCE)


@functools.cache
def _memory() -> bytearray:
    return bytearray(WORK.size)


def _to_memory(done: Round) -> None:
    into, arrived = memoryview(_memory()), 0

    def on_body(chunk: bytes, offset: int, **_: object) -> None:
        nonlocal arrived
        into[offset : offset + len(chunk)] = chunk
        arrived += len(chunk)

    with done.clock:
        _fetch(on_body=on_body)
    if arrived != WORK.size:
        sys.exit(f"received {arrived} bytes, not {WORK.size}")
    done.received(WORK.key, into)
    done.objects = 1


def _counted(done: Round, how: str) -> None:
    def on_body(chunk: bytes, **_: object) -> None:
        done.bytes += len(chunk)

    def on_progress(progress: int, **_: object) -> None:
        done.bytes += progress

    with done.clock:
        if how == "null":
            _fetch(recv_filepath="/dev/null", on_progress=on_progress)
        else:
            _fetch(on_body=on_body)
    done.objects, done.requests = 1, -(-WORK.size // WORK.part)


MODES = {
    "memory": _to_memory,
    "callback": lambda done: _counted(done, "callback"),
    "null": lambda done: _counted(done, "null"),
}

if __name__ == "__main__":
    step_protocol.serve(WORK, MODES)
