"""The embedded server as the lab starts it: one core, anonymous access beside signed."""

from __future__ import annotations

import dataclasses

from . import places
from .server import Server, free_port

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "lab-access",
    "AWS_SECRET_ACCESS_KEY": "lab-secret-key",
    "AWS_REGION": "us-east-1",
}


@dataclasses.dataclass(frozen=True)
class Synthetic:
    """A computed object, or with ``count`` a numbered series under a prefix. ``size`` is bytes."""

    bucket: str
    key: str
    size: int
    count: int = 0


class Origin(Server):
    """wirespeed-origin with an in-memory store and the cheapest ETags it has."""

    def __init__(
        self, cpu: int, synthetic: tuple[Synthetic, ...] = (), buckets: tuple[str, ...] = ()
    ):
        port = free_port()
        command = [str(places.origin()), "--listen", f"127.0.0.1:{port}", "--anonymous"]
        command += ["--etag", "fast"]
        for series in synthetic:
            times = f"*{series.count}" if series.count else ""
            command += ["--synthetic", f"{series.bucket}/{series.key}={series.size}{times}"]
        for bucket in buckets:
            command += ["--bucket", bucket]
        self.credentials = CREDENTIALS
        super().__init__(command, port, cpu, CREDENTIALS)
