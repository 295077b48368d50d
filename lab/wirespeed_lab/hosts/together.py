"""A whole measurement on several hosts: blocks of rounds, each of all hosts at once, and a summary.

As on one machine, a block holds a round of every client in shuffled order, and block 0 warms up.
A round before it, outside every figure, compares the bytes. Every host does the whole plan, so N
hosts move N times as much; uploads of each go below a prefix of its own. What is said is throughput
over the time in which all were running, and nothing of CPU time: that is for one machine alone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import random
from collections.abc import Callable, Mapping, Sequence

from .. import stats
from ..plans import Plan
from . import merging, rounds
from .coordinator import Address, ClientSkipped, Coordinator, HostsFailed
from .record import VERSION
from .summary import Told


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
    order, told = random.Random(request.seed), Told()

    def say(event: dict) -> None:
        told.take(event)
        tell(event)

    async with Coordinator(
        request.hosts, request.token, wall_bound_ns=request.wall_bound_ns
    ) as hosts:
        say(
            {
                "type": "hosts",
                "version": VERSION,
                "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                "hosts": hosts.hosts,
                "clients": list(request.clients),
                "blocks": request.blocks,
                "segment_ns": request.segment_ns,
                "seed": request.seed,
                "plan": request.plan.as_json(),
                "store": {k: v for k, v in request.store.items() if k != "ca_pem"},
            }
        )
        for client in request.clients:
            await _prepare(hosts, request, client, say)
        for block in range(request.blocks + 1):
            turn = told.running()
            order.shuffle(turn)
            for client in turn:
                parts = await hosts.round(client, block + 1, limit_s=request.round_limit_s)
                said = [dataclasses.asdict(part) for part in parts]
                event = {"type": "round", "client": client, "block": block, "hosts": said}
                say({**event, **rounds.merged(parts, request.segment_ns)})
                _judge(client, rounds.faults(parts), say)
        await hosts.stop()
    summary = told.summary()
    say(summary)
    return summary


async def _prepare(
    hosts: Coordinator, request: Request, client: str, say: Callable[[dict], None]
) -> None:
    """Starts a client everywhere and compares its bytes."""
    plans = [
        plan_at(request.plan, place, len(request.hosts)) for place in range(len(request.hosts))
    ]
    try:
        descriptions = await hosts.prepare(client, [p.as_json() for p in plans], request.store)
    except ClientSkipped as skipped:
        say({"type": "skip", "client": client, "reason": str(skipped)})
        return
    say({"type": "client", "client": client, "description": descriptions[0]})
    parts = await hosts.round(client, 0, verify=True, limit_s=request.round_limit_s)
    faults = rounds.faults(parts)
    if request.uploads is not None and request.plan.operation == "put":
        for part, plan in zip(parts, plans, strict=True):
            wrong = await asyncio.to_thread(request.uploads, plan)
            faults += [f"{part.name}: {fault}" for fault in wrong]
    _judge(client, faults, say)


def _judge(client: str, faults: list[str], say: Callable[[dict], None]) -> None:
    """A client with a fault (failed items among them) is out from here on."""
    if faults:
        say({"type": "disqualified", "client": client, "faults": faults})


__all__ = ["HostsFailed", "Request", "measure", "plan_at"]
