"""The agent: drives clients on its host when a coordinator that holds the token says so.

It runs drivers of its own registry, by name; no command, path or variable of the environment comes
over the wire. Credentials are those of its own environment and are never sent. It serves one
coordinator at a time. When that one says `abort`, closes the connection, or is silent for too
long, every driver is killed at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

from .. import driving, machine, plans
from . import wire
from .addresses import Address
from .versions import fingerprint

#: Seconds between signs of life, and without one until the other side is given up.
BEAT = 2.0
SILENCE = 20.0
#: How long after the common start a `go` may come and still count, in ns.
LATE_NS = 5_000_000
#: Seconds that a coordinator waits for its turn before it is refused.
GRACE = 3.0
#: Seconds for a step to end once its answer is on its way.
ENDING = 2.0
#: Samples a line.
BATCH = 2000
#: Handshakes at once: whoever can't show the token must not use up memory.
STRANGERS = 16

CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
TEMPORARY = "AWS_SESSION_TOKEN"


class Client(Protocol):
    """What the agent needs of a registry's entry."""

    command: tuple[str, ...]
    environment: Mapping[str, str]

    def missing(self) -> str | None: ...


@dataclasses.dataclass(frozen=True)
class Setting:
    """How an agent works: what it may start, where, by which clocks, and which version of the lab
    it says it is."""

    token: bytes
    registry: Callable[[], Mapping[str, Client]]
    cpus: tuple[int, ...] = ()
    folder: Path | None = None
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    wall_ns: Callable[[], int] = time.time_ns
    silence_s: float = SILENCE
    version: str = dataclasses.field(default_factory=fingerprint)


class Failed(Exception):
    """A step failed; the coordinator is told, and decides. ``kind`` is the answer's type."""

    def __init__(self, reason: str, kind: str = "failed"):
        super().__init__(reason)
        self.kind = kind


class Agent:
    """Serves one coordinator after another."""

    def __init__(self, setting: Setting):
        self._setting = setting
        self._turn = asyncio.Lock()
        self._strangers = 0
        self._connections: set[asyncio.Task] = set()
        self.served = asyncio.Event()

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Begins to listen. Raises OSError."""
        return await asyncio.start_server(self._connected, host, port)

    async def close(self) -> None:
        """Ends whoever is connected, and returns when the drivers are gone. To cancel all tasks at
        once, as the end of the loop does, would close a driver under the thread that reads it."""
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        self._connections.add(this)
        try:
            await self._serve(reader, writer)
        finally:
            self._connections.discard(this)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername") or ("?", 0)
        line = wire.Line(reader, writer, f"coordinator {peer[0]}:{peer[1]}")
        try:
            if self._strangers >= STRANGERS:
                return
            self._strangers += 1
            try:
                await wire.admit(line, self._setting.token)
            finally:
                self._strangers -= 1
            try:
                # The one before may have gone already, and its drivers not yet.
                await asyncio.wait_for(self._turn.acquire(), GRACE)
            except TimeoutError:
                await line.send({"type": "refused", "reason": "busy with another coordinator"})
                return
            try:
                await _Session(line, self._setting).serve()
            finally:
                self._turn.release()
                self.served.set()
        except wire.WireError as error:
            print(f"agent: {error}", file=sys.stderr, flush=True)
        finally:
            await line.close()


async def serve(setting: Setting, address: Address, *, once: bool) -> None:
    """Listens until SIGTERM or SIGINT, or until one coordinator was served. Raises OSError when it
    can't listen there."""
    agent = Agent(setting)
    server = await agent.listen(address.host, address.port)
    where = dataclasses.replace(address, port=server.sockets[0].getsockname()[1])
    print(f"agent: listening on {where}", flush=True)
    stopped = agent.served if once else asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with server:
        await stopped.wait()
        await agent.close()


class _Session:
    """One coordinator's connection, from its welcome to its end."""

    def __init__(self, line: wire.Line, setting: Setting):
        self._line = line
        self._setting = setting
        self._drivers: dict[str, driving.Driver] = {}
        self._plans: dict[str, plans.Plan] = {}
        self._places: dict[str, int] = {}
        self._ended = False
        self._scratch = tempfile.TemporaryDirectory(prefix="wirespeed-lab-", dir=setting.folder)

    async def serve(self) -> None:
        steps: dict[str, Callable[[dict], Awaitable[dict]]] = {
            "look": self._look,
            "prepare": self._prepare,
            "go": self._go,
            "stop": self._stop,
        }
        job: asyncio.Task | None = None
        beats = asyncio.create_task(self._beat())
        try:
            while True:
                message = await self._line.receive(self._setting.silence_s)
                kind = message["type"]
                if kind == "beat":
                    continue
                if kind == "clock":
                    await self._line.send(self._clock())
                elif kind in ("abort", "bye"):
                    return
                elif kind not in steps:
                    raise wire.WireError(f"{self._line.name} asked for {kind[:40]!r}")
                elif job is not None and not (await asyncio.wait([job], timeout=ENDING))[0]:
                    raise wire.WireError(f"{self._line.name} said {kind!r} during another step")
                else:
                    job = asyncio.create_task(self._answer(steps[kind], message))
        finally:
            beats.cancel()
            self._kill()
            if job is not None:
                # Its driver is dead, so that it ends; what it would have said is of no use.
                await asyncio.gather(job, return_exceptions=True)
            await asyncio.to_thread(self._close)

    async def _answer(self, step: Callable[[dict], Awaitable[dict]], message: dict) -> None:
        try:
            answer = await step(message)
        except Failed as error:
            answer = {"type": error.kind, "reason": str(error)}
        except Exception as error:
            # An order that is malformed, a full disk: who waits for the answer must have one.
            answer = {"type": "failed", "reason": f"{message['type']} failed: {error!r}"}
        with contextlib.suppress(wire.WireError):
            await self._line.send(answer)

    async def _beat(self) -> None:
        with contextlib.suppress(wire.WireError):
            while True:
                await asyncio.sleep(BEAT)
                await self._line.send({"type": "beat"})

    def _clock(self) -> dict:
        return {
            "type": "clock",
            "monotonic_ns": self._setting.monotonic_ns(),
            "wall_ns": self._setting.wall_ns(),
        }

    async def _look(self, _: dict) -> dict:
        return {
            "type": "host",
            "host": platform.node(),
            "fingerprint": self._setting.version,
            "machine": machine.describe(),
            "cpus": list(self._setting.cpus),
        }

    async def _prepare(self, message: dict) -> dict:
        name = message["client"]
        client = self._setting.registry().get(name)
        if client is None:
            raise Failed(f"no client {name!r} in this agent's registry")
        if (reason := await asyncio.to_thread(client.missing)) is not None:
            raise Failed(f"{name} is not installed: {reason}", "skip")
        if name in self._drivers:
            raise Failed(f"{name} is running already")
        plan = plans.Plan.from_json(message["plan"])
        line = plan.for_driver(
            endpoint=message["endpoint"],
            region=message["region"],
            bucket=message["bucket"],
            ca_file=self._ca_file(message.get("ca_pem")),
            folder=self._folder(name),
        )
        return await asyncio.to_thread(self._start, name, client, plan, line)

    def _start(self, name: str, client: Client, plan: plans.Plan, line: dict) -> dict:
        environment = {**client.environment, **_credentials(), "AWS_REGION": line["region"]}
        try:
            description = driving.describe(client.command, environment)
            if (reason := driving.refusal(description, plan)) is not None:
                raise Failed(reason, "skip")
            if plan.source == "file":
                driving.write_sources(plan, self._folder(name))
            driver = driving.Driver([*client.command, "run"], environment, self._setting.cpus, name)
            self._drivers[name], self._plans[name] = driver, plan
            if self._ended:
                # It was told to end while the driver was not there yet to be killed.
                raise Failed("the session has ended")
            driver.start(line)
        except driving.Skipped as error:
            raise Failed(str(error), "skip") from None
        except (driving.DrivingError, OSError) as error:
            raise Failed(f"{name}: {error}") from None
        return {"type": "ready", "description": description.as_json(), "pinning": driver.pinning}

    async def _go(self, message: dict) -> dict:
        name, number, verify = message["client"], message["round"], message["verify"]
        if name not in self._drivers:
            raise Failed(f"{name!r} was not prepared")
        plan, folder = self._plans[name], self._folder(name)
        if plan.sink == "file":
            await asyncio.to_thread(driving.empty, folder)
        wait_ns = message["at_ns"] - self._setting.monotonic_ns()
        if wait_ns < -LATE_NS:
            raise Failed(f"the start came {-wait_ns / 1e6:.0f} ms after its time")
        await asyncio.sleep(max(wait_ns, 0) / 1e9)
        done = await asyncio.to_thread(self._round, name, number, verify, message["limit_s"])
        for begin in range(0, len(done.samples), BATCH):
            rows = done.samples[begin : begin + BATCH]
            await self._line.send({"type": "samples", "rows": list(rows)})
        faults = await asyncio.to_thread(driving.judge, plan, done, {})
        if verify and plan.sink == "file":
            faults += await asyncio.to_thread(driving.check_files, plan, folder)
        return {
            "type": "round",
            "round": number,
            "samples": len(done.samples),
            "go_ns": done.go_ns,
            "done_ns": done.done_ns,
            "effective": done.done.get("effective", {}),
            "faults": faults,
        }

    def _round(self, name: str, number: int, verify: bool, limit_s: float) -> driving.Round:
        try:
            return self._drivers[name].round(number, verify=verify, limit_s=limit_s)
        except (driving.DrivingError, OSError) as error:
            raise Failed(f"{name}: {error}") from None

    async def _stop(self, _: dict) -> dict:
        await asyncio.to_thread(self._close_drivers)
        return {"type": "stopped"}

    def _ca_file(self, pem: str | None) -> Path | None:
        if pem is None:
            return None
        file = Path(self._scratch.name) / "ca.pem"
        file.write_text(pem)
        return file

    def _folder(self, name: str) -> Path:
        """A folder of this client's own. Its name is its place: a client's name comes over the
        wire."""
        place = self._places.setdefault(name, len(self._places))
        folder = Path(self._scratch.name) / str(place)
        folder.mkdir(exist_ok=True)
        return folder

    def _kill(self) -> None:
        self._ended = True
        for driver in list(self._drivers.values()):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)

    def _close_drivers(self) -> None:
        drivers, self._drivers = self._drivers, {}
        for driver in drivers.values():
            with contextlib.suppress(OSError):
                driver.close()

    def _close(self) -> None:
        self._close_drivers()
        self._scratch.cleanup()


def _credentials() -> dict[str, str]:
    missing = [name for name in CREDENTIALS if not os.environ.get(name)]
    if missing:
        raise Failed(f"{' and '.join(missing)} must be set where the agent is started")
    return {name: os.environ[name] for name in (*CREDENTIALS, TEMPORARY) if os.environ.get(name)}
