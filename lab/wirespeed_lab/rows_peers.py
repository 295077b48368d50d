"""The rows of the Python package beside the other clients that Python has.

Each peer as its users call it, with memory that is used over and over where its interface
has that: a client that returns fresh bytes pays for touching them, by its own design.
"""

from __future__ import annotations

from collections.abc import Iterable

from .checks import Check
from .contender import Contender
from .rounds import Row
from .rows import BUCKET, DIGITS, KIB, LARGE, LARGE_CONNECTIONS, LARGE_KEY, SMALL_CONNECTIONS, Site
from .rows_python import (
    BIG,
    GET_INTO,
    LISTED,
    LISTED_PREFIX,
    POOL,
    PYTHON_BUCKET,
    SHARE,
    SHARED_PREFIX,
    big,
    driver,
    ours,
)

RANGES = 10_000
RANGE = 8 * KIB
#: Bytes between two ranges that may be read in vain, as rows name them.
GAPS = {"0": 0, "64k": 64 * KIB}
CAT_RANGES = "wirespeed.fsspec cat_ranges"
#: The server counts both, the clock the second.
WARMED = "get (after another, which warms the pool)"
KEYS, COLUMNS = "list().keys()", "list().table()"


def _fewer(metric: str, of: str, peers: Iterable[Contender]) -> tuple[Check, ...]:
    """Fewer core-seconds than every one of the peers."""
    return tuple(Check(metric, (peer.name,), 1, of=of, kind="fewer") for peer in peers)


def _row(site: Site, name: str, title: str, peers: tuple[tuple[str, str, str, str], ...]) -> Row:
    """Both of our forms beside ``peers``: name, folder, file and mode of each."""
    beside = tuple(
        driver(site, peer, "peer", folder, "--mode", mode, *big(site), file=file)
        for peer, folder, file, mode in peers
    )
    pool = ("--memory", str(POOL))
    return Row(
        name,
        f"Python: GET 2 GiB to memory, beside {title}",
        (
            ours(site, GET_INTO, "engine", "get-into", *big(site), *pool),
            ours(site, WARMED, "ours", "get-warmed", *big(site), *pool),
            *beside,
        ),
        _fewer("core_s_per_gib", GET_INTO, beside),
        BIG,
        1,
        seconds=300,
    )


def get_crt(site: Site) -> Row:
    """Two rows, because nearly every client here keeps 2 GiB of its own between its rounds."""
    return _row(
        site,
        "python-peers-crt",
        "boto3 and those on the CRT",
        (
            ("boto3 get_object", "boto3", "memory.py", "get-object"),
            ("boto3 download_fileobj", "boto3", "memory.py", "download-fileobj"),
            ("s3transfer.crt", "boto3", "memory.py", "crt"),
            ("awscrt", "awscrt", "driver.py", "memory"),
            ("s3torchconnectorclient", "s3torchconnectorclient", "driver.py", "get"),
        ),
    )


def get_other(site: Site) -> Row:
    return _row(
        site,
        "python-peers-other",
        "the others",
        (
            ("s3fs cat_file", "s3fs", "driver.py", "get"),
            ("obstore get", "obstore", "driver.py", "get"),
            ("obstore get_range, 16 threads", "obstore", "driver.py", "get-parallel"),
            ("s3dlio get", "s3dlio", "driver.py", "get"),
            ("s3dlio get_into_async", "s3dlio", "driver.py", "get-into"),
            ("pyarrow read_buffer", "pyarrow", "driver.py", "get"),
            ("pyarrow read_at, 16 threads", "pyarrow", "driver.py", "get-parallel"),
        ),
    )


def ranges(site: Site, gap: str) -> Row:
    work = (
        *("--bucket", BUCKET, "--key", LARGE_KEY, "--size", str(LARGE)),
        *("--count", str(RANGES), "--range", str(RANGE), "--gap", str(GAPS[gap])),
        *("--connections", str(SMALL_CONNECTIONS)),
    )
    peers = (
        driver(site, "s3fs cat_ranges", "peer", "s3fs", "--mode", "ranges", *work),
        driver(site, "obstore get_ranges", "peer", "obstore", "--mode", "ranges", *work),
    )
    return Row(
        f"python-ranges-{gap}",
        f"Python: 10,000 x 8 KiB scattered in 1 GiB, max_gap {GAPS[gap] // KIB} KiB",
        (
            ours(site, CAT_RANGES, "engine", "ranges-fsspec", *work),
            ours(site, "get_ranges", "ours", "ranges", *work),
            *peers,
        ),
        _fewer("core_us_per_range", CAT_RANGES, peers),
        RANGES * RANGE,
        RANGES,
        seconds=240,
    )


def listing(site: Site) -> Row:
    """boto3 and s3fs take half a minute a round for all keys, so they list a tenth of them, which
    costs them as much a key."""

    def work(prefix: str, count: int) -> tuple[str, ...]:
        return (
            *("--bucket", PYTHON_BUCKET, "--prefix", prefix, "--digits", str(DIGITS)),
            *("--count", str(count), "--connections", str(LARGE_CONNECTIONS)),
        )

    whole, tenth = work(LISTED_PREFIX, LISTED), work(SHARED_PREFIX, LISTED // SHARE)

    def slow(name: str, folder: str, mode: str, file: str = "driver.py") -> Contender:
        return driver(*(site, name, "peer", folder, "--mode", mode, *tenth), file=file, share=SHARE)

    def fast(name: str, folder: str, mode: str) -> Contender:
        return driver(site, name, "peer", folder, "--mode", mode, *whole)

    peers = (
        slow("boto3, strings", "boto3", "list-keys", "memory.py"),
        slow("boto3, columns", "boto3", "list-columns", "memory.py"),
        slow("s3fs find, strings", "s3fs", "list-keys"),
        slow("s3fs find, columns", "s3fs", "list-columns"),
        fast("obstore list, strings", "obstore", "list-keys"),
        fast("obstore list, columns", "obstore", "list-columns"),
    )
    return Row(
        "python-list",
        "Python: listing 400,000 keys",
        (
            ours(site, KEYS, "engine", "list-keys", *whole),
            ours(site, COLUMNS, "ours", "list-columns", *whole),
            *peers,
        ),
        (
            Check("core_us_per_key", (peers[0].name,), 0.1, of=KEYS),
            Check("core_us_per_key", (peers[1].name,), 0.1, of=COLUMNS),
        ),
        0,
        LISTED,
        seconds=300,
    )
