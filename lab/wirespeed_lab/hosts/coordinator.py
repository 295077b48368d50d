"""The coordinator: connects to every agent, starts them together, and stops all when one fails.

All agents must answer, hold the token, run the same version of the lab, have a clock that is known
well enough, and have every client in the same version, before anything starts. From then on an
error at one ends the session at all of them: numbers of the rest would be another measurement.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from ..records import from_root
from . import clocks, wire
from .addresses import Address
from .agent import BEAT, SILENCE
from .rounds import HostRound
from .versions import differences, fingerprint

#: Seconds for a connection, a look at the host, the start of a driver.
CONNECT_LIMIT = 10.0
LOOK_LIMIT = 60.0
START_LIMIT = 120.0
#: From the order to the common start, at least, in ns; and this many round trips.
LEAD_NS = 100_000_000
LEAD_ROUND_TRIPS = 10

Result = TypeVar("Result")


class HostsFailed(Exception):
    """A host is missing, differs or failed, and the session was ended at all of them. The text
    names the host and what to try."""


class ClientSkipped(Exception):
    """A client can't do the plan, or isn't installed, on at least one host."""


class _Peer:
    """One agent, as the coordinator sees it."""

    def __init__(self, address: Address):
        self.name = str(address)
        self.address = address
        self.line: wire.Line
        self.offset: clocks.Offset
        self.look: dict = {}

    async def connect(self, token: bytes) -> None:
        try:
            async with asyncio.timeout(CONNECT_LIMIT):
                reader, writer = await asyncio.open_connection(self.address.host, self.address.port)
        except (OSError, TimeoutError) as error:
            raise HostsFailed(
                f"{self.name} can't be reached ({error or 'no answer'}): is "
                f"`wirespeed-lab agent --listen HOST:{self.address.port}` running there?"
            ) from None
        self.line = wire.Line(reader, writer, f"agent {self.name}")
        try:
            await wire.greet(self.line, token)
        except BaseException:
            await self.line.close()
            raise

    async def answer(self, message: dict, limit_s: float) -> dict:
        """Sends, and waits for what is no sign of life; a host that gives none is lost long
        before the limit."""
        await self.line.send(message)
        return await self.next(time.monotonic() + limit_s)

    async def next(self, until: float) -> dict:
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise HostsFailed(f"{self.name}: its step took longer than its limit")
            message = await self.line.receive(min(SILENCE, max(left, BEAT * 2)))
            if message["type"] == "failed":
                raise HostsFailed(f"{self.name}: {str(message.get('reason'))[:2000]}")
            if message["type"] == "skip":
                reason = from_root(str(message.get("reason"))[:2000])
                raise ClientSkipped(f"{self.name}: {reason}")
            if message["type"] != "beat":
                return message

    async def measure_clock(self) -> clocks.Offset:
        found = []
        for _ in range(clocks.EXCHANGES):
            asked, wall = time.monotonic_ns(), time.time_ns()
            said = await self.answer({"type": "clock"}, LOOK_LIMIT)
            answered = time.monotonic_ns()
            theirs = _whole(self, said, "monotonic_ns")
            # Their wall clock was read at some moment of the exchange: the middle is compared.
            ahead = _whole(self, said, "wall_ns") - (wall + (answered - asked) // 2)
            found.append(clocks.Exchange(asked, theirs, theirs, answered, ahead))
        return clocks.estimate(found)


class Coordinator:
    """A session with all agents; an asynchronous context manager. Every method raises HostsFailed,
    after which all agents have been told to abort."""

    def __init__(
        self,
        hosts: Sequence[Address],
        token: bytes,
        *,
        wall_bound_ns: int = clocks.WALL_BOUND_NS,
    ):
        self._peers = [_Peer(address) for address in hosts]
        self._token = token
        self._wall_bound_ns = wall_bound_ns
        self._beats: asyncio.Task | None = None
        self._connected: list[_Peer] = []

    async def __aenter__(self) -> Coordinator:
        await self._all(self._join)
        self._beats = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, kind: type | None, *_: object) -> None:
        await self._end("abort" if kind else "bye")

    @property
    def hosts(self) -> dict[str, dict]:
        """What each agent said of its machine, and how its clock stands to ours."""
        return {
            peer.name: {**peer.look, "clock": dataclasses.asdict(peer.offset)}
            for peer in self._peers
        }

    async def prepare(self, client: str, plans: Sequence[dict], store: Mapping) -> list[dict]:
        """Starts a client's driver on every host, each with the plan of its place. ``store`` has
        endpoint, region, bucket and ca_pem. Returns the drivers' descriptions. Raises
        ClientSkipped when a host can't do it: then none does."""

        async def prepare(peer: _Peer) -> dict:
            plan = plans[self._peers.index(peer)]
            message = {"type": "prepare", "client": client, "plan": plan, **store}
            said = await peer.answer(message, START_LIMIT)
            return said["description"]

        found = await self._all(prepare)
        differ = differences(
            {peer.name: said for peer, said in zip(self._peers, found, strict=True)}
        )
        if differ:
            await self._end("abort")
            raise HostsFailed(
                f"{client} is not the same on all hosts: {'; '.join(differ)}: "
                "set it up anew on each"
            )
        return found

    async def round(
        self, client: str, number: int, *, verify: bool = False, limit_s: float = 600.0
    ) -> list[HostRound]:
        """One round at once on all hosts, at a common time."""
        longest = max(peer.offset.uncertainty for peer in self._peers)
        lead = max(LEAD_NS, 2 * LEAD_ROUND_TRIPS * longest)
        start = time.monotonic_ns() + lead

        async def run(peer: _Peer) -> HostRound:
            order = {
                "type": "go",
                "client": client,
                "round": number,
                "verify": verify,
                "limit_s": limit_s,
                "at_ns": peer.offset.to_theirs(start),
            }
            return await self._round_of(peer, order)

        return await self._all(run)

    async def stop(self) -> None:
        """Ends all drivers; agents stay connected."""

        async def stop(peer: _Peer) -> None:
            await peer.answer({"type": "stop"}, START_LIMIT)

        await self._all(stop)

    async def _join(self, peer: _Peer) -> None:
        await peer.connect(self._token)
        self._connected.append(peer)
        said = await peer.answer({"type": "look"}, LOOK_LIMIT)
        if said.get("fingerprint") != fingerprint():
            raise HostsFailed(
                f"{peer.name} runs another version of the lab ({said.get('fingerprint')}, and "
                f"here {fingerprint()}): install the same on both"
            )
        peer.look = {name: said[name] for name in ("host", "fingerprint", "machine", "cpus")}
        peer.offset = await peer.measure_clock()
        clocks.check(peer.name, peer.offset, self._wall_bound_ns)

    async def _round_of(self, peer: _Peer, order: dict) -> HostRound:
        await peer.line.send(order)
        until = time.monotonic() + order["limit_s"] + START_LIMIT
        rows: list[dict] = []
        while (said := await peer.next(until))["type"] == "samples":
            rows += said["rows"]
        if said["type"] != "round" or said.get("round") != order["round"]:
            raise HostsFailed(f"{peer.name} answered a round with {said['type'][:40]!r}")
        if said["samples"] != len(rows):
            raise HostsFailed(f"{peer.name} sent {len(rows)} samples of {said['samples']}")
        before, peer.offset = peer.offset, await peer.measure_clock()
        clocks.check(peer.name, peer.offset, self._wall_bound_ns)
        offset = clocks.joined(peer.name, before, peer.offset)
        return HostRound(
            peer.name,
            offset.to_ours(said["go_ns"]),
            offset.to_ours(said["done_ns"]),
            offset.uncertainty,
            [_sample(row, offset) for row in rows],
            said["effective"],
            from_root(said["faults"]),
        )

    async def _all(self, step: Callable[[_Peer], Awaitable[Result]]) -> list[Result]:
        """The step at every agent at once; the first that fails ends it for all. One that is
        skipped waits for the others, which can go on with another client."""

        async def guarded(peer: _Peer) -> Result | ClientSkipped:
            try:
                return await step(peer)
            except ClientSkipped as skipped:
                return skipped
            except (wire.WireError, clocks.ClocksApart) as error:
                raise HostsFailed(str(error)) from None
            except (KeyError, TypeError, ValueError) as error:
                raise HostsFailed(f"{peer.name} sent a malformed answer: {error!r}") from None

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(guarded(peer)) for peer in self._peers]
        except* HostsFailed as failures:
            await self._end("abort")
            reasons = "; ".join(dict.fromkeys(str(one) for one in failures.exceptions))
            failed = HostsFailed(f"{reasons} (all hosts were told to stop)")
        else:
            results = [task.result() for task in tasks]
            for one in results:
                if isinstance(one, ClientSkipped):
                    raise one
            return [one for one in results if not isinstance(one, ClientSkipped)]
        raise failed

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            for peer in self._connected:
                # One that is gone is noticed by whoever waits for its answer.
                with contextlib.suppress(wire.WireError):
                    await peer.line.send({"type": "beat"})

    async def _end(self, word: str) -> None:
        if self._beats is not None:
            self._beats.cancel()
        connected, self._connected = self._connected, []
        for peer in connected:
            with contextlib.suppress(wire.WireError, TimeoutError):
                await asyncio.wait_for(peer.line.send({"type": word}), 5)
        await asyncio.gather(*(peer.line.close() for peer in connected))


def _sample(row: dict, offset: clocks.Offset) -> dict:
    """What is kept of a sample, with its times by our clock."""
    kept = {name: row[name] for name in ("n", "worker", "bytes", "count", "error")}
    for name in ("start_ns", "first_ns", "end_ns"):
        kept[name] = None if row[name] is None else offset.to_ours(row[name])
    if row.get("keys") is not None:
        kept["keys"] = row["keys"]
    return kept


def _whole(peer: _Peer, message: dict, field: str) -> int:
    value = message.get(field)
    if not isinstance(value, int):
        raise HostsFailed(f"{peer.name} said no {field}")
    return value
