"""The AWS Common Runtime's S3 client on one large object, the body discarded.

With ``--sink callback`` every piece of the body is handed to Python and dropped;
with ``--sink null`` the runtime writes it to /dev/null itself, so that nothing but
the C client is measured. Checksums are off. One event loop thread. Speaks the lab's
step protocol: ``ready``, then one JSON line per ``go``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
import urllib.parse
from pathlib import Path

import awscrt
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

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
#: Seconds for one round.
PATIENCE = 120


def _bytes(text: str) -> int:
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text)


def _client(work, secure: bool) -> S3Client:
    loops = EventLoopGroup(num_threads=1)
    bootstrap = ClientBootstrap(loops, DefaultHostResolver(loops))
    credentials = AwsCredentialsProvider.new_static(
        os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    )
    region = os.environ.get("AWS_REGION", "us-east-1")
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
        part_size=work.part,
        max_active_connections_override=work.connections,
    )


def _fetch(client: S3Client, work, host: str) -> int:
    received = 0

    def on_body(chunk: bytes, **_: object) -> None:
        nonlocal received
        received += len(chunk)

    def on_progress(progress: int, **_: object) -> None:
        nonlocal received
        received += progress

    to_null = work.sink == "null"
    request = HttpRequest("GET", f"/{work.bucket}/{work.key}", HttpHeaders([("host", host)]))
    client.make_request(
        type=S3RequestType.GET_OBJECT,
        request=request,
        recv_filepath="/dev/null" if to_null else None,
        on_body=None if to_null else on_body,
        on_progress=on_progress if to_null else None,
    ).finished_future.result(PATIENCE)
    return received


def _peak_rss_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmHWM in /proc/self/status")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--size", type=_bytes, required=True)
    parser.add_argument("--part", type=_bytes, default=8 << 20)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--sink", choices=("callback", "null"), default="null")
    parser.add_argument("--step", action="store_true")
    work = parser.parse_args()
    url = urllib.parse.urlsplit(work.endpoint)
    client = _client(work, url.scheme == "https")

    def once() -> dict:
        before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        received = _fetch(client, work, url.netloc)
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
        if received != work.size:
            sys.exit(f"received {received} bytes, not {work.size}")
        return {
            "seconds": seconds,
            "bytes": received,
            "objects": 1,
            "requests": -(-work.size // work.part),
            "user_s": after.ru_utime - before.ru_utime,
            "system_s": after.ru_stime - before.ru_stime,
            "peak_rss_bytes": _peak_rss_bytes(),
        }

    if not work.step:
        settings = {"client": "awscrt", "version": awscrt.__version__, "sink": work.sink}
        print(json.dumps({"operation": "get", "rounds": [once()], "config": settings}))
        return
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() != "go":
            sys.exit("standard input takes lines that say go")
        print(json.dumps(once()), flush=True)


if __name__ == "__main__":
    main()
