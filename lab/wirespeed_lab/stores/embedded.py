"""The embedded server as a store: its objects are computed, so that any plan is there at once."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from ..origin import ACCESS_KEY, REGION, SECRET_KEY, Origin, Synthetic
from ..plans import Plan, Series
from ..server import ServerFailed, free_port
from . import uploads
from .clashes import clashing
from .preset import Preset
from .store import Store, StoreFailed

READ, WRITTEN, DISCARDED = "lab-read", "lab-written", "lab-discarded"
#: Bytes of arguments that a program can be started with, less what the rest of them takes.
ARGUMENTS_LIMIT = 1 << 20
#: The fault that holds an answer back, and for how many milliseconds: so many, and so many more
#: for each request that is to be in flight, which the slowest of clients takes to send one.
HELD, HELD_MS, HELD_MS_EACH = "delay", 50, 2
#: What the slowest of clients uploads, on one core.
SLOWEST_BYTES_A_MS = 250_000
_NOW = ("connections_open", "requests_in_flight")
_PEAKS = ("connections_open_peak", "requests_in_flight_peak")


class EmbeddedStore(Store):
    """wirespeed-origin with a model, or as fast as it can be."""

    kind = "origin"
    region = REGION

    def __init__(self, cpus: tuple[int, ...], preset: Preset | None = None, tls: bool = False):
        """Starts it. Raises ServerFailed and places.MissingProgram."""
        self.preset = preset
        self._cpus = cpus
        self._port = free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="wirespeed-lab-")
        self.ca_file = Path(self._folder.name) / "ca.pem" if tls else None
        self._series: dict[Series, None] = {}
        self._bucket = READ
        self._past: dict[str, int] = {}
        self._cpu_past = 0.0
        try:
            self._start()
        except BaseException:
            self._folder.cleanup()
            raise

    @property
    def endpoint(self) -> str:
        return self._server.endpoint

    @property
    def bucket(self) -> str:
        return self._bucket

    @property
    def credentials(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
        }

    def prepare(self, plan: Plan) -> None:
        """A server that lacks some of the series, or has others that a listing would find, is
        started anew on the same port. Puts are kept in memory where a quarter of what is free
        holds them, and else counted and dropped."""
        if plan.operation == "put":
            fits = plan.bytes <= psutil.virtual_memory().available // 4
            self._bucket = WRITTEN if fits else DISCARDED
            return
        self._bucket = READ
        wanted = dict.fromkeys(plan.contents())
        clashes = clashing(self._series, wanted)
        if not clashes and all(series in self._series for series in wanted):
            return
        kept = {series: None for series in self._series if series not in clashes}
        series = {**kept, **wanted}
        if _arguments(series) > ARGUMENTS_LIMIT:
            series = wanted
        if _arguments(series) > ARGUMENTS_LIMIT:
            raise StoreFailed(
                f"{plan.workload}: {len(series)} objects of sizes of their own are more than the "
                "embedded server can be told of: take a smaller scale, or fewer sizes"
            )
        self._series = series
        try:
            self._stop()
            self._start()
        except ServerFailed as error:
            raise StoreFailed(f"{plan.workload}: origin cannot be started: {error}") from None

    def forget_uploads(self, plan: Plan) -> None:
        uploads.forget(self, plan)

    def check_uploads(self, plan: Plan, most: int = 5) -> list[str]:
        if self._bucket == DISCARDED:
            return uploads.wrong_heads(self, plan, most)
        return uploads.wrong(self, plan, most)

    @property
    def pid(self) -> int:
        return self._server.pid

    def cpu_seconds(self) -> float:
        return self._cpu_past + self._server.cpu_seconds()

    def renew(self) -> None:
        if self.preset and self.preset.claims.nic and self.preset.claims.nic.credit:
            self._post("/-/refill")

    def hold_back(self, in_flight: int, bytes: int = 0) -> None:
        wait = HELD_MS + (HELD_MS_EACH + bytes // SLOWEST_BYTES_A_MS) * in_flight
        held = {"action": f"{HELD}:{wait}", "times": 2 * in_flight}
        self._post("/-/faults", json.dumps({"fault": [held] if in_flight else []}))

    def counts(self) -> dict[str, int]:
        """Raises StoreFailed when the server is gone."""
        said = self._look()
        found = {
            name: self._past.get(name, 0) + value
            for name, value in said.items()
            if name not in _NOW + _PEAKS
        }
        self._past = {**self._past, **found}
        for name in _NOW + _PEAKS:
            # The lab's own look has a connection, and no request that is counted. A server of
            # before there were peaks says nothing of them.
            if name in said:
                found[name] = said[name] - (1 if name.startswith("connections") else 0)
        return {**self._past, **found}

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "tls": self.ca_file is not None,
            "cpus": list(self._cpus),
            "preset": self.preset.as_json() if self.preset else None,
        }

    def close(self) -> None:
        self._stop()
        self._folder.cleanup()

    def _start(self) -> None:
        self._server = Origin(
            self._cpus,
            tuple(_synthetic(series) for series in self._series),
            buckets=(WRITTEN, *(() if self._series else (READ,))),
            discarding=(DISCARDED,),
            ca_file=self.ca_file,
            model=self.preset.flags() if self.preset else (),
            port=self._port,
        )
        self._control = _connection(self._server.endpoint, self.ca_file)
        self._look()

    def _stop(self) -> None:
        with contextlib.suppress(StoreFailed):
            self.counts()
        with contextlib.suppress(ServerFailed):
            self._cpu_past += self._server.cpu_seconds()
        self._control.close()
        self._server.close()

    def _look(self) -> dict[str, int]:
        """Counts since the last look, on a connection of its own that stays open, so that looks
        are not among the connections that a client has opened."""
        opens = self._control.sock is None
        said = self._post("/-/reset")
        verbs = said.pop("requests")
        said["held_back"] = said.pop("faults").get(HELD, 0)
        said["requests"] = said.pop("requests_total")
        said |= {f"requests_{verb.replace('-', '_')}": count for verb, count in verbs.items()}
        if opens:
            said["connections_accepted"] -= 1
            said["tls_handshakes_full"] -= 1 if self.ca_file else 0
        return said

    def _post(self, path: str, body: str | None = None) -> dict[str, Any]:
        try:
            self._control.request("POST", path, body)
            return json.load(self._control.getresponse())
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._control.close()
            raise StoreFailed(
                f"origin at {self.endpoint} does not answer POST {path}: {error!r}"
            ) from None


def _synthetic(series: Series) -> Synthetic:
    return Synthetic(READ, series.prefix, series.size, series.count, series.digits)


def _arguments(series: Iterable[Series]) -> int:
    """Bytes of arguments, with what each takes beside its text."""
    return sum(len(_synthetic(one).argument().encode()) + 24 for one in series)


def _connection(endpoint: str, ca_file: Path | None) -> http.client.HTTPConnection:
    at = urlsplit(endpoint)
    if ca_file is None:
        return http.client.HTTPConnection(at.hostname or "", at.port, timeout=10)
    trust = ssl.create_default_context(cafile=ca_file)
    return http.client.HTTPSConnection(at.hostname or "", at.port, timeout=10, context=trust)
