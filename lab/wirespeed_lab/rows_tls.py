"""The rows over TLS: the same work as over plain HTTP, against a limit whose TLS is
aws-lc with the engine's cipher, and against the peers, each as its own defaults have it."""

from __future__ import annotations

import sys

from . import places
from .checks import Check
from .contender import Contender
from .rounds import Row
from .rows import BUCKET, LARGE, LARGE_CONNECTIONS, LARGE_KEY, PART, UPLOADS, Site, engine, peer

#: SO_RCVLOWAT while a body is outstanding, and how much ciphertext is received at once.
GRID = (("0", "256KiB"), ("0", "1MiB"), ("256KiB", "256KiB"), ("256KiB", "1MiB"), ("1MiB", "1MiB"))
#: SO_SNDBUF, and how much content is sealed at once.
SEND_GRID = (("0", "64KiB"), ("256KiB", "64KiB"), ("512KiB", "64KiB"), ("512KiB", "128KiB"))

_LARGE = ("--bucket", BUCKET, "--key", LARGE_KEY, "--size", str(LARGE))
_SHAPE = ("--part", PART, "--connections", str(LARGE_CONNECTIONS))


def _limit(site: Site, name: str, *arguments: str) -> Contender:
    command = (
        *(str(places.rust_driver("limit-tls")), "--endpoint", site.endpoint),
        *("--ca", str(site.ca_file), *arguments, *_SHAPE, "--step"),
    )
    return Contender(name, "limit", command)


def _script(site: Site, name: str, path: str, *arguments: str) -> Contender:
    command = (sys.executable, path, "--endpoint", site.endpoint, *arguments, "--step")
    environment = {**site.environment, "PYTHONPATH": str(places.step_protocol())}
    return Contender(name, "peer", command, environment)


def _go(site: Site, name: str) -> Contender:
    command = (str(places.go_driver(name)), "-endpoint", site.endpoint, "-bucket", BUCKET)
    command += ("-key", LARGE_KEY, "-size", str(LARGE), "-part", str(8 << 20))
    command += ("-connections", str(LARGE_CONNECTIONS), "-step")
    return Contender(name, "peer", command, {**site.environment, "GOMAXPROCS": "1"})


def peers(site: Site) -> tuple[Contender, ...]:
    """Every peer that reads one large object, its body discarded, certificates verified."""
    return (
        peer(site, "rust-sdk", *_LARGE, *_SHAPE),
        peer(site, "rust-tm", *_LARGE, *_SHAPE),
        peer(site, "object-store", *_LARGE, *_SHAPE),
        _go(site, "go-manager"),
        _go(site, "minio-go"),
        _script(
            *(site, "awscrt", str(places.python_driver("awscrt")), "--mode", "null"),
            *(*_LARGE, *_SHAPE),
        ),
        _script(
            *(site, "boto3", str(places.boto3_driver())),
            *("--mode", "memory", "--bucket", BUCKET, "--prefix", LARGE_KEY),
        ),
    )


def get_memory(site: Site) -> Row:
    return Row(
        "get-memory-tls",
        "GET 1 GiB to memory over TLS",
        (
            engine(site, "get", f"s3://{BUCKET}/{LARGE_KEY}", "--sink", "memory"),
            *(
                _limit(
                    site,
                    f"limit rcvlowat {mark}, {scratch} at once",
                    *("--mode", "get", *_LARGE, "--rcvlowat", mark, "--scratch", scratch),
                )
                for mark, scratch in GRID
            ),
            *peers(site),
        ),
        (
            Check("core_s_per_gib", ("limit",), 1.25),
            Check("core_s_per_gib", ("best peer",), 0.75),
        ),
        LARGE,
        1,
    )


def put_memory(site: Site) -> Row:
    upload = ("--mode", "put", "--bucket", UPLOADS, "--key", "limit-", "--size", str(LARGE))
    return Row(
        "put-memory-tls",
        "PUT 1 GiB from memory over TLS",
        (
            engine(
                site,
                *("put", f"s3://{UPLOADS}/engine", "--size", str(LARGE), "--unsigned-payload"),
            ),
            *(
                _limit(
                    site,
                    f"limit sndbuf {size}, {seal} sealed at once",
                    *(*upload, "--sndbuf", size, "--seal", seal),
                )
                for size, seal in SEND_GRID
            ),
        ),
        (Check("core_s_per_gib", ("limit",), 1.25),),
        LARGE,
        1,
    )
