"""The rows of the Python package against the Rust engine: what the binding adds.

Same server, same work, same memory to land in, in turns. The engine is `wirespeed bench`;
both have so much budget that the pool keeps what a round gave back, or every round would
measure memory that is touched for the first time.
"""

from __future__ import annotations

from . import environments, places
from .checks import Check
from .contender import Contender
from .rounds import Row
from .rows import (
    BUCKET,
    DIGITS,
    GIB,
    LARGE_CONNECTIONS,
    PART,
    SMALL,
    SMALL_CONNECTIONS,
    SMALL_COUNT,
    SMALL_PREFIX,
    WITHOUT_CHECKSUMS,
    Site,
    engine_command,
)

#: What the rows in Python read beside the other rows' objects.
PYTHON_BUCKET = "python"
BIG_KEY = "big"
BIG = 2 * GIB
LISTED_PREFIX = "listed/"
LISTED = 400_000
#: What clients list that would take minutes: as many keys of a series of its own.
SHARE = 10
SHARED_PREFIX = "listed-by-the-slow/"
#: The pool's budget in bytes: no round's memory goes back to the system.
POOL = 4 * GIB

ENGINE = "wirespeed bench"
GET, ON_PART, GET_INTO = "get", "get(on_part=)", "get_into numpy"
KEEPING = "wirespeed bench --keep"
MANY, COMPLETED = "get_many", "get_many(as_completed)"
MANY_BYTES, MANY_INTO = "get_many(as_bytes)", "get_many(into=)"


def driver(
    site: Site,
    name: str,
    role: str,
    folder: str,
    *arguments: str,
    file: str = "driver.py",
    share: int = 1,
) -> Contender:
    """A driver in Python, run by the environment of its own. Raises MissingProgram where that
    is missing, or holds other versions than are pinned."""
    command = (
        *(str(environments.python(folder)), str(places.python_driver(folder, file))),
        *("--endpoint", site.endpoint, *arguments, "--step"),
    )
    environment = {
        **site.environment,
        **WITHOUT_CHECKSUMS,
        # s3dlio and the connector have no argument for some of these.
        "AWS_ENDPOINT_URL": site.endpoint,
        "AWS_DEFAULT_REGION": site.credentials["AWS_REGION"],
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONPATH": str(places.step_protocol()),
    }
    return Contender(name, role, command, environment, environments.packages(folder), share)


def ours(site: Site, name: str, role: str, mode: str, *arguments: str) -> Contender:
    """A mode of the driver of our own package."""
    return driver(site, name, role, environments.OURS, "--mode", mode, *arguments)


def big(site: Site) -> tuple[str, ...]:
    """The arguments of a driver that reads the one big object."""
    return (
        *("--bucket", PYTHON_BUCKET, "--key", BIG_KEY, "--size", str(BIG)),
        *("--part", PART, "--connections", str(LARGE_CONNECTIONS)),
    )


def _engine(site: Site, name: str, *arguments: str, connections: int) -> Contender:
    command = engine_command(site, *arguments, connections=connections, memory=POOL)
    return Contender(name, "baseline", command, {**site.environment, **WITHOUT_CHECKSUMS})


def engine_get(site: Site) -> Contender:
    """The engine on the one big object."""
    where = f"s3://{PYTHON_BUCKET}/{BIG_KEY}"
    return _engine(site, ENGINE, "get", where, connections=LARGE_CONNECTIONS)


def get(site: Site) -> Row:
    pool = ("--memory", str(POOL))
    return Row(
        "python-get",
        "Python: GET 2 GiB to memory",
        (
            ours(site, GET, "engine", "get", *big(site), *pool),
            ours(site, ON_PART, "ours", "on-part", *big(site), *pool),
            ours(site, GET_INTO, "ours", "get-into", *big(site), *pool),
            engine_get(site),
        ),
        (
            Check("core_s_per_gib", (ENGINE,), 1.03, of=GET),
            Check("core_s_per_gib", (ENGINE,), 1.05, of=ON_PART),
            Check("core_s_per_gib", (GET,), 1.03, of=GET_INTO, kind="equal"),
        ),
        BIG,
        1,
        seconds=400,
    )


def many(site: Site) -> Row:
    """Objects that are handed over and dropped one by one beside the engine doing the same, and
    objects that are all kept beside the engine keeping them: memory that is not in cache costs
    either more than all of the hand-over."""
    keys = (
        *("--bucket", BUCKET, "--prefix", SMALL_PREFIX, "--digits", str(DIGITS)),
        *("--count", str(SMALL_COUNT), "--size", str(SMALL), "--part", PART),
        *("--connections", str(SMALL_CONNECTIONS), "--memory", str(POOL)),
    )
    bench = ("get", f"s3://{BUCKET}/{SMALL_PREFIX}", "--sink", "memory")

    def more(of: str, over: str) -> Check:
        return Check("core_us_per_object", (over,), 5, of=of, kind="difference")

    return Row(
        "python-many",
        "Python: GET 20,000 x 64 KiB to memory",
        (
            ours(site, MANY, "engine", "many", *keys),
            ours(site, COMPLETED, "ours", "many-completed", *keys),
            ours(site, MANY_BYTES, "ours", "many-bytes", *keys),
            ours(site, MANY_INTO, "ours", "many-into", *keys),
            _engine(site, ENGINE, *bench, connections=SMALL_CONNECTIONS),
            _engine(site, KEEPING, *bench, "--keep", connections=SMALL_CONNECTIONS),
        ),
        (more(MANY, KEEPING), more(COMPLETED, ENGINE)),
        SMALL_COUNT * SMALL,
        SMALL_COUNT,
        seconds=240,
    )
