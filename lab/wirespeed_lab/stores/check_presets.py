"""Measures whether the embedded server delivers what presets claim: the time to the first byte,
rates of one connection and of all, bursts and their end, refusals. The client is `independent`.

    python -m wirespeed_lab.stores.check_presets [NAME...] [--tolerance 0.05]

Ends with 1 where something is further off than the tolerance. What is off is measured up to
three times, and the nearest is shown: a machine that does something else meanwhile makes anything
late, and a model that is wrong is wrong each time."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import urlsplit

from ..plans import Item, Plan
from . import independent
from .embedded import DISCARDED, READ, EmbeddedStore
from .opening import open_store
from .preset import BadPreset, Claims, FirstByte, load_preset, preset_names
from .store import StoreFailed

SMALL, ENDLESS = "check/small", "check/endless"
#: Answers that a distribution is measured by: of 6,000 the 95th percentile is known to 2 %.
CALLS = 6_000
SECONDS = 3.0
#: Seconds at the start of a transfer, and around the end of a burst, that no rate is taken from.
UNSTEADY = 0.5
TRIES = 3
Z90, Z95 = 1.2815515655446004, 1.6448536269514722
Address = tuple[str, int]


@dataclasses.dataclass(frozen=True)
class Finding:
    """One claim and what was measured of it, in ``unit``."""

    what: str
    claimed: float
    measured: float
    unit: str

    @property
    def off(self) -> float:
        """By how much of the claim."""
        return self.measured / self.claimed - 1


Check = Callable[[EmbeddedStore, Claims, float], Iterable[Finding]]


def findings(name: str, tolerance: float, cpus: tuple[int, ...]) -> Iterator[Finding]:
    """Checks all that the preset claims, each on a server that has done nothing before. Raises
    BadPreset, StoreFailed and independent.BadAnswer."""
    preset = load_preset(name)
    bare = _bare(cpus)
    for check in _checks(preset.claims):
        nearest: dict[str, Finding] = {}
        for _ in range(TRIES):
            with _store(cpus, name) as store:
                for one in check(store, preset.claims, bare):
                    if one.what not in nearest or abs(one.off) < abs(nearest[one.what].off):
                        nearest[one.what] = one
            if all(abs(one.off) <= tolerance for one in nearest.values()):
                break
        yield from nearest.values()


def _checks(claims: Claims) -> Iterator[Check]:
    if claims.first_byte:
        yield _first_byte
    if claims.down:
        yield _connection_down
    if claims.up:
        yield _connection_up
    if claims.nic:
        yield _all_connections
    elif claims.down:
        yield _eight_connections
    if claims.reads:
        yield _reads
    if claims.writes:
        yield _writes


def _first_byte(store: EmbeddedStore, claims: Claims, bare: float) -> Iterator[Finding]:
    """Less what a request takes without a model, which is the machine's."""
    claim = claims.first_byte
    assert claim is not None
    connections = min(32, max(2, int(claim.p50 / 2)))
    calls = independent.call(_address(store), "HEAD", f"/{READ}/{SMALL}", connections, calls=CALLS)
    took = sorted(one.seconds - bare for one in calls if one.status == 200)
    for share, expected in _quantiles(claim):
        found = took[min(len(took) - 1, int(share * len(took)))]
        yield Finding(f"first byte, p{share * 100:.0f}", expected, found * 1000, "ms")


def _quantiles(claim: FirstByte) -> list[tuple[float, float]]:
    if claim.p95 is None:
        return [(0.5, claim.p50), (0.95, claim.p50)]
    sigma = math.log(claim.p95 / claim.p50) / Z95
    return [(0.5, claim.p50), (0.9, claim.p50 * math.exp(sigma * Z90)), (0.95, claim.p95)]


def _connection_down(store: EmbeddedStore, claims: Claims, _: float) -> Iterator[Finding]:
    assert claims.down is not None
    came = independent.download(_address(store), f"/{READ}/{ENDLESS}", 1, SECONDS)
    found = independent.rate(came, UNSTEADY, SECONDS)
    yield Finding("one connection, down", claims.down / 1e6, found / 1e6, "MB/s")


def _connection_up(store: EmbeddedStore, claims: Claims, bare: float) -> Iterator[Finding]:
    assert claims.up is not None
    size = int(claims.up * SECONDS)
    took = independent.upload(_address(store), f"/{DISCARDED}/check/up", size)
    # The answer to it takes its own time, which is about the median of what is claimed.
    waited = claims.first_byte.p50 / 1000 if claims.first_byte else 0.0
    found = size / (took - waited - bare)
    yield Finding("one connection, up", claims.up / 1e6, found / 1e6, "MB/s")


def _eight_connections(store: EmbeddedStore, claims: Claims, _: float) -> Iterator[Finding]:
    assert claims.down is not None
    came = independent.download(_address(store), f"/{READ}/{ENDLESS}", 8, SECONDS)
    found = independent.rate(came, UNSTEADY, SECONDS)
    yield Finding("eight connections, down", claims.down * 8 / 1e6, found / 1e6, "MB/s")


def _all_connections(store: EmbeddedStore, claims: Claims, _: float) -> Iterator[Finding]:
    nic = claims.nic
    assert nic is not None
    connections = math.ceil(1.3 * nic.burst / claims.down) if claims.down else 8
    length = nic.burst_seconds + SECONDS + 2 * UNSTEADY
    path = f"/{READ}/{ENDLESS}"
    came = independent.download(_address(store), path, connections, length)
    start = nic.burst_seconds + UNSTEADY
    baseline = independent.rate(came, start, length)
    all_of = f"{connections} connections"
    if nic.credit:
        burst = independent.rate(came, UNSTEADY, nic.burst_seconds - UNSTEADY)
        yield Finding(f"{all_of}, burst", nic.burst / 1e6, burst / 1e6, "MB/s")
        beyond = sum(count for _, count in came) - baseline * length
        yield Finding("credit of the burst", nic.credit / 1e6, beyond / 1e6, "MB")
    yield Finding(f"{all_of}, baseline", nic.baseline / 1e6, baseline / 1e6, "MB/s")


def _reads(store: EmbeddedStore, claims: Claims, _: float) -> Iterator[Finding]:
    assert claims.reads is not None
    yield from _refusals(store, claims, "HEAD", f"/{READ}/{SMALL}", claims.reads)


def _writes(store: EmbeddedStore, claims: Claims, _: float) -> Iterator[Finding]:
    assert claims.writes is not None
    yield from _refusals(store, claims, "PUT", f"/{DISCARDED}/check/up", claims.writes)


def _refusals(
    store: EmbeddedStore, claims: Claims, method: str, path: str, limit: float
) -> Iterator[Finding]:
    """As many connections as keep the prefix busy for longer than it takes requests."""
    first = claims.first_byte
    mean = (first.p50 + (first.p95 or first.p50)) / 2000 if first else 0.001
    connections = math.ceil(limit * (mean + independent.PAUSE / 2))
    before = store.counts()
    calls = independent.call(_address(store), method, path, connections, seconds=SECONDS + 1)
    start = min(one.sent for one in calls) + 1
    # By when they were sent: it is then that the prefix takes them or not.
    taken = sum(one.status == 200 and start <= one.sent < start + SECONDS - 0.2 for one in calls)
    yield Finding(f"{method}s taken", limit, taken / (SECONDS - 0.2), "a second")
    refused = sum(one.status == 503 for one in calls)
    counted = store.counts().get("throttled", 0) - before.get("throttled", 0)
    # Answers that were under way when the time was over are not seen here.
    yield Finding(f"{method}s refused", max(counted, 1), max(refused, 1), "")


def _bare(cpus: tuple[int, ...]) -> float:
    """Seconds that a request takes where there is no model."""
    with _store(cpus, None) as store:
        calls = independent.call(_address(store), "HEAD", f"/{READ}/{SMALL}", 1, calls=500)
    return statistics.median(one.seconds for one in calls)


def _store(cpus: tuple[int, ...], preset: str | None) -> EmbeddedStore:
    store = open_store("origin", cpus=cpus, preset=preset)
    assert isinstance(store, EmbeddedStore)
    store.prepare(
        Plan("check-presets", "get", "discard", (Item(SMALL, 16), Item(ENDLESS, 1 << 40)))
    )
    return store


def _address(store: EmbeddedStore) -> Address:
    at = urlsplit(store.endpoint)
    return at.hostname or "127.0.0.1", at.port or 80


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="all that there are")
    parser.add_argument("--tolerance", type=float, default=0.05, help="0.05 is 5 %%")
    told = parser.parse_args(arguments)
    cores = sorted(os.sched_getaffinity(0))
    server, own = cores[0], cores[1:] or cores
    os.sched_setaffinity(0, own)
    good = True
    try:
        for name in told.names or preset_names():
            print(f"{name}: {load_preset(name).title}", flush=True)
            for found in findings(name, told.tolerance, (server,)):
                fits = abs(found.off) <= told.tolerance
                good &= fits
                print(
                    f"  {found.what:28} {found.claimed:10.2f} {found.measured:10.2f} "
                    f"{found.unit:9} {found.off:+7.1%}  {'' if fits else 'OFF'}".rstrip(),
                    flush=True,
                )
    except (BadPreset, StoreFailed, independent.BadAnswer) as error:
        print(f"check_presets: {error}", file=sys.stderr)
        return 2
    print("all as claimed" if good else f"not all within {told.tolerance:.0%}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
