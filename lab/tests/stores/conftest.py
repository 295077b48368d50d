"""Stores as tests start them: on whatever cores there are."""

import pytest
from wirespeed_lab import places
from wirespeed_lab.plans import Item, Plan
from wirespeed_lab.stores import open_store


def plan(*work, operation="get", workload="a-test"):
    return Plan(workload, operation, "discard", tuple(work))


@pytest.fixture
def plan_of():
    """Builds a plan: ``plan_of(Item(...), ..., operation="get")``."""
    return plan


@pytest.fixture
def numbered():
    """``count`` items of ``size`` bytes below a prefix."""
    return lambda prefix, count, size: tuple(Item(f"{prefix}{n:08d}", size) for n in range(count))


@pytest.fixture
def origin():
    """Opens the embedded server: ``origin(preset=..., tls=...)``. Closed with the test."""
    try:
        places.origin()
    except places.MissingProgram as error:
        pytest.skip(str(error))
    opened = []

    def open_one(**how):
        opened.append(open_store("origin", cpus=(), **how))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()
