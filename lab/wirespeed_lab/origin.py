"""The embedded server as the lab starts it: a thread a core, anonymous access beside signed."""

from __future__ import annotations

import dataclasses
import json
import ssl
import urllib.request
from pathlib import Path

from . import places
from .server import Server, free_port

ACCESS_KEY, SECRET_KEY, REGION = "lab-access", "lab-secret-key", "us-east-1"


@dataclasses.dataclass(frozen=True)
class Synthetic:
    """A computed object, or with ``count`` a numbered series under a prefix. ``size`` is bytes."""

    bucket: str
    key: str
    size: int
    count: int = 0
    digits: int = 8

    def argument(self) -> str:
        if not self.count:
            return f"{self.bucket}=object:{self.key},size:{self.size}"
        return (
            f"{self.bucket}=objects:{self.count},size:{self.size},"
            f"prefix:{self.key},digits:{self.digits}"
        )


class Origin(Server):
    """wirespeed-origin on one thread for each core, with the cheapest ETags it has."""

    def __init__(
        self,
        cpu: int | tuple[int, ...],
        synthetic: tuple[Synthetic, ...] = (),
        buckets: tuple[str, ...] = (),
        discarding: tuple[str, ...] = (),
        ca_file: Path | None = None,
        model: tuple[str, ...] = (),
        port: int | None = None,
    ):
        """Serves TLS when there is a ``ca_file``, and writes there what clients are to
        trust; behaves as the flags in ``model`` say."""
        port = port or free_port()
        threads = 1 if isinstance(cpu, int) else max(1, len(cpu))
        command = [str(places.origin()), "--listen", f"127.0.0.1:{port}", "--anonymous"]
        command += ["--etag", "fast", "--threads", str(threads), "--region", REGION, *model]
        if ca_file:
            command += ["--tls", "--tls-ca-file", str(ca_file)]
        for series in synthetic:
            command += ["--synthetic", series.argument()]
        for bucket in buckets:
            command += ["--bucket", bucket]
        for bucket in discarding:
            command += ["--discard", bucket]
        self.credentials = {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
        }
        keys = {
            "WIRESPEED_ORIGIN_ACCESS_KEY": ACCESS_KEY,
            "WIRESPEED_ORIGIN_SECRET_KEY": SECRET_KEY,
        }
        super().__init__(command, port, cpu, keys, "https" if ca_file else "http")
        self._trust = ssl.create_default_context(cafile=ca_file) if ca_file else None

    def requests(self) -> int:
        """S3 requests answered so far, as the server counts them."""
        return self.counts()["server_requests"]

    def counts(self) -> dict[str, int]:
        """S3 requests answered so far, and bytes sent, heads included."""
        stats = f"{self.endpoint}/-/stats"
        with urllib.request.urlopen(stats, timeout=10, context=self._trust) as answer:
            said = json.load(answer)
        return {"server_requests": said["requests_total"], "server_bytes": said["bytes_out"]}
