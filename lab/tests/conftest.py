"""The server that tests are given, and rows of a record as a measurement would leave them."""

import pytest
from wirespeed_lab import places

GIB = 1 << 30


@pytest.fixture(scope="session", autouse=True)
def built_server():
    """The embedded server as it was built for tests, else as it was built for figures."""
    built = [places.target() / kind / "wirespeed-origin" for kind in ("debug", "release")]
    found = [path for path in built if path.is_file()]
    with pytest.MonkeyPatch.context() as patch:
        if found:
            patch.setenv("WIRESPEED_LAB_ORIGIN", str(found[0]))
        yield


def sample(contender, block, core_seconds, first=False, seconds=0.2):
    return {
        "contender": contender,
        "block": block,
        "position": 0,
        "first": first,
        "seconds": seconds,
        "bytes": GIB,
        "objects": 1,
        "requests": 128,
        "user_s": core_seconds / 4,
        "system_s": core_seconds * 3 / 4,
        "server_cpu_s": 0.2,
        "peak_rss_bytes": GIB,
    }


def row(samples, dropped=(), fresh=False):
    names = {"wirespeed": "engine", "low": "limit", "high": "limit", "pwrite": "pwrite"}
    return {
        "id": "get",
        "title": "GET",
        "fresh": fresh,
        "contenders": [{"name": n, "role": r, "command": [n]} for n, r in names.items()],
        "checks": [],
        "samples": samples,
        "dropped": list(dropped),
        "failures": {},
        "stopped": "",
    }


def blocks(name, cost, count=12):
    return [sample(name, block, cost) for block in range(1, count + 1)]


@pytest.fixture
def made():
    """Builders of samples and rows: ``made.sample``, ``made.blocks``, ``made.row``."""
    return Made


class Made:
    sample = staticmethod(sample)
    blocks = staticmethod(blocks)
    row = staticmethod(row)
