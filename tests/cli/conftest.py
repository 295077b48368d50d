"""`wirespeed` as its users start it: a process, an environment, arguments."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import servers
from shell import Shell

WIRESPEED = servers.TARGET / "wirespeed"


@pytest.fixture
def wirespeed_at(transcript) -> Callable[[servers.Server, str], Shell]:
    """`wirespeed` with a server's keys, against the endpoint that is given."""

    def at(server: servers.Server, endpoint: str) -> Shell:
        return Shell([WIRESPEED, "--endpoint-url", endpoint], server.environment(), transcript)

    return at


@pytest.fixture
def ws(server, wirespeed_at) -> Shell:
    """`wirespeed` against each server."""
    return wirespeed_at(server, server.endpoint)
