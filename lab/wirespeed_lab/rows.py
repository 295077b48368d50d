"""The table of figures: each workload, its clients and what is asked.

Thresholds are those of the project's first milestone (lab/METHODOLOGY.md says
what each means). The limit is the cheapest cell of GRID (GET) or SEND_GRID
(PUT), at the engine's number of connections.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from . import places
from .checks import Check
from .contender import Contender
from .rounds import Row

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

#: SO_RCVLOWAT while a body is outstanding; 0 is the kernel's default.
GRID = ("0", "256KiB", "1MiB", "4MiB")
#: SO_SNDBUF of the sender; 0 is the kernel's own tuning. A small one keeps what is sent in cache.
SEND_GRID = ("0", "256KiB", "512KiB", "1MiB")

BUCKET = "bench"
LARGE_KEY = "large"
LARGE = GIB
SMALL_PREFIX = "small/"
SMALL_COUNT = 20_000
SMALL = 64 * KIB
DIGITS = 8
HUGE_KEY = "huge"
HUGE = 8 * GIB
#: Long enough for the time to the first byte to be small beside it.
VAST_KEY = "vast"
VAST = 4 * GIB
UPLOADS = "uploads"
#: Holds what was uploaded with its checksum.
CHECKED = "checked"
PART = "8MiB"
LARGE_CONNECTIONS = 16
SMALL_CONNECTIONS = 32


#: What the rows that say nothing of checksums are measured with: neither limit nor peers have any.
WITHOUT_CHECKSUMS = {"WIRESPEED_CHECKSUM_ALGORITHM": "none", "WIRESPEED_VERIFY_CHECKSUMS": "false"}


@dataclasses.dataclass(frozen=True)
class Site:
    """Where a run takes place: the server, credentials, and folders for files.
    ``ca_file`` holds what clients are to trust, where the server speaks TLS."""

    endpoint: str
    credentials: dict[str, str]
    disk: Path
    tmpfs: Path
    ca_file: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What every signed client needs: credentials, and whom to trust by the
        variables that the engine, the AWS clients and the others read."""
        names = ("AWS_CA_BUNDLE", "SSL_CERT_FILE") if self.ca_file else ()
        return {**self.credentials, **dict.fromkeys(names, str(self.ca_file))}


def _limit(site: Site, name: str, *arguments: str) -> Contender:
    command = (str(places.limit()), "--endpoint", site.endpoint, *arguments, "--step")
    return Contender(name, "limit", command)


def limit_get_large(site: Site, mark: str, sink: str = "memory") -> Contender:
    return _limit(
        site,
        f"limit rcvlowat {mark}",
        *("--mode", "get", "--bucket", BUCKET, "--key", LARGE_KEY, "--size", str(LARGE)),
        *("--part", PART, "--connections", str(LARGE_CONNECTIONS)),
        *("--rcvlowat", mark, "--sink", sink),
    )


def engine_command(
    site: Site,
    *arguments: str,
    connections: int = LARGE_CONNECTIONS,
    memory: int | None = None,
    step: bool = True,
) -> tuple[str, ...]:
    """`wirespeed bench`, in step mode unless told; ``memory`` is the budget in bytes, when not
    the default."""
    return (
        str(places.wirespeed()),
        *("--endpoint-url", site.endpoint),
        *("--concurrency", str(connections), "--part-size", PART),
        *(("--memory", f"{memory // MIB}MiB") if memory else ()),
        *("bench", *arguments, "--json", *(("--step",) if step else ())),
    )


def engine(site: Site, *arguments: str, connections: int = LARGE_CONNECTIONS) -> Contender:
    """The engine without checksums."""
    command = engine_command(site, *arguments, connections=connections)
    return Contender("wirespeed", "engine", command, {**site.environment, **WITHOUT_CHECKSUMS})


def peer(site: Site, name: str, *arguments: str) -> Contender:
    """A driver of the peers' Rust workspace."""
    command = (str(places.rust_driver(name)), "--endpoint", site.endpoint, *arguments, "--step")
    return Contender(name, "peer", command, site.environment)


def get_memory(site: Site) -> Row:
    large = f"s3://{BUCKET}/{LARGE_KEY}"
    return Row(
        "get-memory",
        "GET 1 GiB to memory",
        (
            engine(site, "get", large, "--sink", "memory"),
            *(limit_get_large(site, mark) for mark in GRID),
            peer(
                site,
                "rust-sdk",
                *("--bucket", BUCKET, "--key", LARGE_KEY, "--size", str(LARGE)),
                *("--part", PART, "--connections", str(LARGE_CONNECTIONS)),
            ),
        ),
        (
            Check("core_s_per_gib", ("limit",), 1.15),
            Check("core_s_per_gib", ("rust-sdk",), 0.6),
            Check("throughput", ("limit",), 0.95, at_least=True),
        ),
        LARGE,
        1,
    )


def put_memory(site: Site) -> Row:
    return Row(
        "put-memory",
        "PUT 1 GiB from memory",
        (
            engine(
                site,
                *("put", f"s3://{UPLOADS}/engine", "--size", str(LARGE), "--unsigned-payload"),
            ),
            *(
                _limit(
                    site,
                    f"limit sndbuf {size}",
                    *("--mode", "put", "--bucket", UPLOADS, "--key", "limit-"),
                    *("--size", str(LARGE), "--part", PART),
                    *("--connections", str(LARGE_CONNECTIONS), "--sndbuf", size),
                )
                for size in SEND_GRID
            ),
        ),
        (Check("core_s_per_gib", ("limit",), 1.2),),
        LARGE,
        1,
    )


def small_objects(site: Site) -> Row:
    keys = (
        *("--bucket", BUCKET, "--keys-prefix", SMALL_PREFIX, "--digits", str(DIGITS)),
        *("--count", str(SMALL_COUNT), "--size", str(SMALL)),
        *("--connections", str(SMALL_CONNECTIONS)),
    )
    return Row(
        "small-objects",
        "GET 20,000 x 64 KiB to memory",
        (
            engine(
                site,
                *("get", f"s3://{BUCKET}/{SMALL_PREFIX}", "--sink", "memory"),
                connections=SMALL_CONNECTIONS,
            ),
            *(
                _limit(
                    site,
                    f"limit rcvlowat {mark}",
                    "--mode",
                    "get",
                    *keys,
                    "--reuse",
                    "--rcvlowat",
                    mark,
                )
                for mark in GRID
            ),
            peer(site, "object-store", *keys),
        ),
        (
            Check("core_us_per_request", ("limit",), 1.5),
            Check("core_us_per_request", ("object-store",), 0.6),
        ),
        SMALL_COUNT * SMALL,
        SMALL_COUNT,
    )


def get_file(site: Site, where: str) -> Row:
    folder = site.disk if where == "disk" else site.tmpfs
    raw = Contender(
        "pwrite",
        "pwrite",
        (
            str(places.limit()),
            *("--mode", "pwrite", "--size", str(LARGE), "--part", PART),
            *("--path", str(folder / "raw"), "--step"),
        ),
    )
    large = f"s3://{BUCKET}/{LARGE_KEY}"
    return Row(
        f"get-file-{where}",
        f"GET 1 GiB to a file on {where}",
        (
            engine(site, "get", large, "--sink", "file", "--path", str(folder)),
            *(limit_get_large(site, mark) for mark in GRID),
            raw,
        ),
        (Check("core_s_per_gib", ("limit", "pwrite"), 1.2),),
        LARGE,
        1,
    )


def first_get(site: Site) -> Row:
    large = f"s3://{BUCKET}/{LARGE_KEY}"
    return Row(
        "first-get",
        "GET 1 GiB first in a fresh process, discarded",
        (
            engine(site, "get", large, "--sink", "discard"),
            *(limit_get_large(site, mark, "discard") for mark in GRID),
        ),
        (
            Check("core_s_per_gib", ("limit",), 1.1),
            Check("seconds", ("limit",), 1.1),
        ),
        LARGE,
        1,
        fresh=True,
    )


ROWS = {
    "get-memory": get_memory,
    "put-memory": put_memory,
    "small-objects": small_objects,
    "get-file-disk": lambda site: get_file(site, "disk"),
    "get-file-tmpfs": lambda site: get_file(site, "tmpfs"),
    "first-get": first_get,
}
