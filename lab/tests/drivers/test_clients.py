"""Drivers of real clients against the embedded server, one of each kind of work: the conformance
test has all of them. A client that is not installed is skipped with the reason."""

import sys
from pathlib import Path

import pytest
from wirespeed_lab import places
from wirespeed_lab.clients import registry
from wirespeed_lab.driving.conformance import conform

#: boto3 is among the lab's own requirements: its drivers are tried in any case.
ALWAYS = ("boto3-get",)
#: Cases that show most: bytes in a sink, what is put, and keys.
LIBRARIES = ("get memory", "put", "list")
COMMAND_LINES = ("get file", "put from files", "list")


def command(client):
    if client.id in ALWAYS:
        return [sys.executable, *client.command[1:]]
    reason = client.missing()
    if reason:
        pytest.skip(f"{client.id}: {reason}")
    return client.command


def driven():
    """Ids of the clients whose driver is written in Python."""
    return [client.id for client in registry().values() if client.in_python]


@pytest.mark.parametrize("id", driven())
def test_it_describes_itself_as_the_registry_has_it(id):
    from wirespeed_lab.driving import describe

    said = describe(command(registry()[id]), registry()[id].environment)
    assert said.name == id
    assert said.version[0].isdigit()


@pytest.mark.parametrize("id", driven())
def test_it_does_what_it_says(id):
    client = registry()[id]
    cases = COMMAND_LINES if client.language == "cli" else LIBRARIES
    if id.startswith("awscli"):
        cases = ("get file",)  # a command takes seconds to begin
    report = conform(command(client), client.environment, only=cases)
    assert report.failures == []
    assert set(cases) <= {*report.passed, *report.skipped}


@pytest.mark.parametrize(
    "case", ["get file", "get ranges", "get over TLS", "failing items", "SIGTERM"]
)
def test_the_driver_that_is_always_here_keeps_the_protocol(case):
    client = registry()["boto3-get"]
    report = conform(command(client), client.environment, only=[case])
    assert report.failures == []
    assert report.passed == ["describe", case]


def test_drivers_in_python_are_short():
    for file in Path(places.DRIVERS / "python").glob("drive_*.py"):
        limit = 250 if file.name == "drive_cli.py" else 150
        assert len(file.read_text().splitlines()) < limit, file.name
