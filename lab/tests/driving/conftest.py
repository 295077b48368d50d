"""A server with a few objects, and the reference driver, honest or not."""

import json
import sys
import urllib.request
from pathlib import Path

import pytest
from wirespeed_lab import places
from wirespeed_lab.driving import Driver
from wirespeed_lab.origin import Origin, Synthetic
from wirespeed_lab.plans import Item, Plan

REFERENCE = Path(__file__).with_name("reference_driver.py")
#: Long enough for a driver on a machine that is busy with other things.
PATIENCE = 30


class Lab:
    """A server, and what the reference driver says of plans that it is given there."""

    def __init__(self, server):
        self.server = server

    @staticmethod
    def command(lie=""):
        return [sys.executable, str(REFERENCE), *(["--lie", lie] if lie else []), "run"]

    env = {"PYTHONPATH": str(places.step_protocol())}  # noqa: RUF012

    def driver(self, lie=""):
        return Driver(self.command(lie), self.env, name="reference")

    def line(self, plan, folder=None):
        bucket = "written" if plan.operation == "put" else "lab"
        return plan.for_driver(self.server.endpoint, "us-east-1", bucket, None, folder)

    def counts(self):
        said = self.server.counts()
        return {"requests": said["server_requests"], "bytes_out": said["server_bytes"]}

    def rounds(self, plan, lie="", count=1, verify=True, folder=None):
        """Rounds with what the server counted in each, while it held answers back."""
        held = plan.objects if verify and plan.operation != "list" else 0
        with self.driver(lie) as driver:
            driver.start(self.line(plan, folder), PATIENCE)
            self.hold_back(bool(held))
            for number in range(1, count + 1):
                before = self.counts()
                made = driver.round(number, verify, PATIENCE)
                moved = {name: n - before[name] for name, n in self.counts().items()}
                yield made, {**moved, "held_back": held}

    def hold_back(self, held):
        schedule = {"fault": [{"action": "delay:50"}] if held else []}
        body = json.dumps(schedule).encode()
        urllib.request.urlopen(f"{self.server.endpoint}/-/faults", body, timeout=10).close()


@pytest.fixture
def reference():
    """How the reference driver is started: ``.command(lie)``, ``.env``."""
    return Lab


@pytest.fixture(scope="module")
def lab():
    held = [Synthetic("lab", "small/", 65_536, 40), Synthetic("lab", "large", 3_000_001)]
    held.append(Synthetic("lab", "keys/", 0, 2300))
    with Origin(0, tuple(held), buckets=("written",)) as server:
        yield Lab(server)


def small(**fields):
    work = tuple(Item(f"small/{n:08d}", 65_536) for n in range(40))
    given = {"operation": "get", "sink": "discard", "concurrency": 4, **fields}
    return Plan("w", work=work, **given)


def ranges():
    cuts = [(0, 1), (0, 3_000_001), (3_000_000, 3_000_001), (4095, 2_000_000)]
    work = tuple(Item("large", 3_000_001, cut) for cut in cuts)
    return Plan("w", "get", "memory", work, concurrency=2)


def listing():
    return Plan("w", "list", "discard", (Item("keys/", 0, None, 2300),))


@pytest.fixture
def make():
    """Plans for the server: ``make.small(...)``, ``make.ranges()``, ``make.listing()``."""
    return Plans


class Plans:
    small = staticmethod(small)
    ranges = staticmethod(ranges)
    listing = staticmethod(listing)
