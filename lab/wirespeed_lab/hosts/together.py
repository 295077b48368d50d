"""A whole measurement on several hosts: blocks of rounds, each of all hosts at once, and a summary.

As on one machine, a block holds a round of every client in shuffled order, and block 0 warms up.
A round before it, outside every figure, compares the bytes. Every host does the whole plan, so N
hosts move N times as much; uploads of each go below a prefix of its own. What is said is throughput
over the time in which all were running, and nothing of CPU time: that is for one machine alone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence

from .. import stats
from ..plans import Plan
from . import merging
from .coordinator import Address, ClientSkipped, Coordinator, HostRound, HostsFailed

#: Of the lines that `measure` tells.
VERSION = 1


@dataclasses.dataclass(frozen=True)
class Request:
    """What to measure, where. ``store`` has endpoint, region, bucket and ca_pem (or None)."""

    hosts: Sequence[Address]
    token: bytes
    plan: Plan
    clients: Sequence[str]
    store: Mapping[str, str | None]
    blocks: int = stats.FEWEST_BLOCKS
    seed: int = 1
    wall_bound_ns: int = 1_000_000_000
    round_limit_s: float = 600.0
    segment_ns: int = merging.SEGMENT_NS
    #: Faults of what a plan's uploads have left in the store; uploads are not looked at without.
    uploads: Callable[[Plan], list[str]] | None = None


@dataclasses.dataclass
class _Client:
    rates: list[float] = dataclasses.field(default_factory=list)
    operations: list[float] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)


def plan_at(plan: Plan, place: int, hosts: int) -> Plan:
    """The plan of the host at ``place``: the same for all, but that uploads of several hosts must
    not be to the same keys."""
    if plan.operation != "put" or hosts == 1:
        return plan
    work = tuple(
        dataclasses.replace(item, key=f"host-{place:03d}/{item.key}") for item in plan.work
    )
    return dataclasses.replace(plan, work=work)


async def measure(request: Request, tell: Callable[[dict], None]) -> dict:
    """Runs it all and returns the summary. ``tell`` gets every event as it happens, each an object
    that a record keeps. Raises HostsFailed, and then what was told so far stands."""
    order = random.Random(request.seed)
    found: dict[str, _Client] = {}
    out: dict[str, str] = {}
    async with Coordinator(
        request.hosts, request.token, wall_bound_ns=request.wall_bound_ns
    ) as hosts:
        tell(
            {
                "type": "hosts",
                "version": VERSION,
                "hosts": hosts.hosts,
                "plan": request.plan.as_json(),
                "seed": request.seed,
                "store": {k: v for k, v in request.store.items() if k != "ca_pem"},
            }
        )
        for client in request.clients:
            if (reason := await _prepare(hosts, request, client, tell)) is None:
                found[client] = _Client()
            else:
                out[client] = reason
        for block in range(request.blocks + 1):
            turn = [client for client in found if client not in out]
            order.shuffle(turn)
            for client in turn:
                rounds = await hosts.round(client, block + 1, limit_s=request.round_limit_s)
                reason = _take(request, client, block, rounds, found[client], tell)
                if reason is not None:
                    out[client] = reason
        await hosts.stop()
    summary = _summary(request, found, out)
    tell(summary)
    return summary


async def _prepare(
    hosts: Coordinator, request: Request, client: str, tell: Callable[[dict], None]
) -> str | None:
    """Starts a client everywhere and compares its bytes. The reason why it is left out, or None."""
    plans = [
        plan_at(request.plan, place, len(request.hosts)) for place in range(len(request.hosts))
    ]
    try:
        descriptions = await hosts.prepare(client, [p.as_json() for p in plans], request.store)
    except ClientSkipped as skipped:
        tell({"type": "skip", "client": client, "reason": str(skipped)})
        return str(skipped)
    tell({"type": "client", "client": client, "description": descriptions[0]})
    rounds = await hosts.round(client, 0, verify=True, limit_s=request.round_limit_s)
    found = []
    if request.uploads is not None and request.plan.operation == "put":
        for one, plan in zip(rounds, plans, strict=True):
            wrong = await asyncio.to_thread(request.uploads, plan)
            found += [f"{one.name}: {fault}" for fault in wrong]
    return _disqualified(client, rounds, tell, found)


def _disqualified(
    client: str,
    rounds: Sequence[HostRound],
    tell: Callable[[dict], None],
    found: Sequence[str] = (),
) -> str | None:
    """The reason why it is out: a round's faults (failed items among them) and what else was
    found; None where it is sound."""
    faults = [f"{one.name}: {fault}" for one in rounds for fault in one.faults] + list(found)
    if not faults:
        return None
    reason = "; ".join(faults[:5])
    tell({"type": "disqualified", "client": client, "reason": reason, "faults": faults})
    return reason


def _take(
    request: Request,
    client: str,
    block: int,
    rounds: Sequence[HostRound],
    kept: _Client,
    tell: Callable[[dict], None],
) -> str | None:
    """Keeps a round, and its figure. The reason why the client is out from here on, or None."""
    event: dict = {
        "type": "round",
        "client": client,
        "block": block,
        "hosts": [dataclasses.asdict(one) for one in rounds],
    }
    try:
        merged = merging.merge([one.host() for one in rounds], request.segment_ns)
    except merging.NoOverlap as error:
        tell({**event, "merged": None, "reason": str(error)})
        return str(error)
    tell({**event, "merged": merged.as_json()})
    if block > 0:
        kept.rates.append(merged.bytes_per_second)
        kept.operations.append(merged.operations_per_second)
        kept.seconds.append(merged.seconds)
        kept.warnings += [w for w in merged.warnings if w not in kept.warnings]
    return _disqualified(client, rounds, tell)


def _summary(request: Request, found: Mapping[str, _Client], out: Mapping[str, str]) -> dict:
    clients = {}
    for name, kept in found.items():
        if name in out:
            continue
        clients[name] = {
            "bytes_per_second": dataclasses.asdict(stats.median_estimate(kept.rates)),
            "operations_per_second": dataclasses.asdict(stats.median_estimate(kept.operations)),
            "common_seconds": dataclasses.asdict(stats.median_estimate(kept.seconds)),
            "warnings": kept.warnings,
        }
    return {
        "type": "summary",
        "workload": request.plan.workload,
        "hosts": [str(host) for host in request.hosts],
        "blocks": request.blocks,
        "clients": clients,
        "out": dict(out),
    }


__all__ = ["HostsFailed", "Request", "measure", "plan_at"]
