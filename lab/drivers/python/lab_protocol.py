"""Protocol 1 of the lab's drivers, for drivers that are written in Python.

A driver calls `main` with what ``describe`` prints and a class that is made from the `Plan`
before ``ready``. The class has a method for each operation that it can do: ``get``, ``put`` or
``list``, each of which does one `Operation`. What they are decides how they are kept in flight:

* plain methods are called from a pool of ``workers`` threads,
* coroutines run as ``workers`` tasks of one event loop,
* where the class has ``completes = True``, a method starts the operation and calls
  ``operation.completed()`` from wherever the client tells of its end: no thread waits,
* a method ``together`` is given all operations at once (a command line does them all), and returns
  what gives the samples once the clock has stopped.

``workers`` is an attribute of the object, by default the plan's concurrency or ten; ``effective``
is a method that returns the configuration in effect. The object's ``close`` is called at the end.

Clock, samples, digests, checks of what came back, and exit codes are here; nothing but the
standard library is used, so that the file runs in every client's environment. This file refuses
to time anything but the client: bytes are looked at in verified rounds only.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import io
import json
import os
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import synthetic_bytes

VERSION = 1
CANNOT, MALFORMED = 77, 65
#: Of a client without a default of its own, as many users of boto3 have it.
DEFAULT_WORKERS = 10
#: Bytes of a piece, where the driver says how much it takes at once.
PIECE = 1 << 20
OPERATIONS = ("get", "put", "list")
SINKS = ("discard", "memory", "stream", "file")
SOURCES = ("memory", "file")
#: Bodies of more sizes than this are cut from the shared buffer when they are sent.
SIZES_KEPT = 16


class Skip(Exception):
    """The client cannot do this plan; the text says why."""


class Malformed(Exception):
    """The plan is none, or of a version that this driver does not know."""


class Plan:
    """The plan's line, checked. Sizes are bytes; what may be null in the line may be None."""

    def __init__(self, line: dict[str, Any]):
        if not isinstance(line, dict) or line.get("type") != "plan":
            raise Malformed("the first line is no plan")
        if line.get("version") != VERSION:
            raise Malformed(f"the plan's version is {line.get('version')!r}, not {VERSION}")
        try:
            self.operation: str = line["operation"]
            self.endpoint: str = line["endpoint"].rstrip("/")
            self.bucket: str = line["bucket"]
            self.work = [Item(n, item) for n, item in enumerate(line["work"])]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Malformed(f"the plan lacks something or has it wrong: {error!r}") from None
        self.region: str = line.get("region") or "us-east-1"
        self.sink: str = line.get("sink") or "discard"
        self.source: str = line.get("source") or "memory"
        self.concurrency: int | None = _positive(line, "concurrency")
        self.part_size: int | None = _positive(line, "part_size")
        self.checksums: bool | None = line.get("checksums")
        self.ca_file: str | None = line.get("ca_file")
        self.folder: str | None = line.get("folder")
        self.listing: str | None = line.get("listing")
        if self.operation not in OPERATIONS or not self.work:
            raise Malformed(f"the plan has no work, or no known one: {self.operation!r}")
        on_files = self.source if self.operation == "put" else self.sink
        if self.operation != "list" and on_files == "file" and not self.folder:
            raise Malformed("the plan is about files and names no folder")
        self.files = self.operation != "list" and on_files == "file"
        self._bodies: dict[int, bytes] = {}
        self._buffer = b""

    @property
    def secure(self) -> bool:
        return self.endpoint.startswith("https:")

    @property
    def host(self) -> str:
        """The endpoint's host and port."""
        return self.endpoint.partition("://")[2]

    def make_bodies(self) -> None:
        """Before the clock: what is to be put, one buffer that all share."""
        sizes = sorted({item.size for item in self.work}, reverse=True)
        self._buffer = formula("body", sizes[0])
        kept = sizes[:SIZES_KEPT] if len(sizes) <= SIZES_KEPT else sizes[:1]
        self._bodies = {size: self._buffer[:size] for size in kept}

    def body(self, size: int) -> bytes:
        """The first ``size`` bytes of what is put."""
        kept = self._bodies.get(size)
        return self._buffer[:size] if kept is None else kept

    def path(self, n: int) -> str:
        """The file of item ``n``, as a sink or as a source."""
        return os.path.join(self.folder or "", str(n))


def _positive(line: dict[str, Any], name: str) -> int | None:
    value = line.get(name)
    if value is not None and (not isinstance(value, int) or value < 1):
        raise Malformed(f"{name} is {value!r}, which is no number above 0")
    return value


class Item:
    """One line of the work: an object, a range of one, or a prefix to list."""

    __slots__ = ("end", "first", "key", "keys", "n", "prefix", "size")

    def __init__(self, n: int, said: dict[str, Any]):
        self.n = n
        self.key: str = said.get("key", "")
        self.prefix: str = said.get("prefix", "")
        self.keys: int = int(said.get("keys", 0))
        if "prefix" not in said and not self.key:
            raise ValueError(f"item {n} has neither a key nor a prefix")
        #: Bytes that come or go; of a range those in it. The range is ``first`` to before ``end``.
        self.size: int = 0 if "prefix" in said else int(said["size"])
        self.first: int | None = None
        self.end: int | None = None
        if said.get("range") is not None:
            self.first, self.end = (int(place) for place in said["range"])
            self.size = self.end - self.first

    @property
    def range_header(self) -> str | None:
        return (
            None if self.first is None or self.end is None else f"bytes={self.first}-{self.end - 1}"
        )


class Operation:
    """One item of one round, being done. ``part``, ``whole``, ``wrote``, ``sent`` and ``listed``
    say what came or went; exactly one kind of them is used for an operation."""

    __slots__ = (
        *("body", "bytes", "completed", "digest", "end_ns", "error", "file", "first_ns"),
        *("found", "item", "keys", "n", "plan", "start_ns", "verify", "worker"),
    )

    def __init__(self, plan: Plan, item: Item, verify: bool):
        self.plan, self.item, self.n, self.verify = plan, item, item.n, verify
        self.worker = self.start_ns = self.end_ns = self.bytes = self.keys = self.digest = 0
        self.first_ns: int | None = None
        self.error: str | None = None
        self.file: io.RawIOBase | None = None
        self.body: object = None
        #: Keys that were listed, where somebody wants them.
        self.found: list[str] | None = None
        self.completed: Callable[..., None] = self._nothing

    def _nothing(self, error: BaseException | None = None) -> None:
        """Replaced where the operation's end is told."""

    @property
    def key(self) -> str:
        return self.item.key

    @property
    def path(self) -> str:
        return self.plan.path(self.n)

    def first(self) -> None:
        """The first byte is here."""
        self.first_ns = time.monotonic_ns()

    def part(self, piece: Any) -> None:
        """A piece of the body, in order: dropped, or written where the sink is a file."""
        if self.first_ns is None:
            self.first_ns = time.monotonic_ns()
        self.bytes += len(piece)
        if self.plan.files:
            if self.file is None:
                self.file = open(self.path, "wb", buffering=0)  # noqa: SIM115 (closed at the end)
            _write(self.file, piece)
        if self.verify:
            self.digest = zlib.crc32(piece, self.digest)

    def whole(self, body: Any) -> None:
        """The whole body in memory, which lives until the operation's end."""
        self.body = body
        self.bytes = len(body)
        if self.verify:
            self.digest = zlib.crc32(body)

    def wrote(self) -> None:
        """The client itself wrote the file."""
        self.bytes = os.stat(self.path).st_size
        if self.verify:
            self.digest = _digest_of_file(self.path)

    def sent(self) -> None:
        """The body of ``item.size`` bytes is stored."""
        self.bytes = self.item.size
        if self.verify:
            self.digest = (
                _digest_of_file(self.path)
                if self.plan.files
                else zlib.crc32(self.plan.body(self.bytes))
            )

    def listed(self, keys: Iterable[str]) -> None:
        """More keys, in the order in which they came. With `verify` they are joined by newlines."""
        if not isinstance(keys, list):
            keys = list(keys)
        if self.verify and keys:
            text = "\n".join(keys)
            self.digest = zlib.crc32(("\n" + text if self.keys else text).encode(), self.digest)
        self.keys += len(keys)
        if self.found is not None:
            self.found += keys

    def done(self, error: BaseException | None = None) -> None:
        """The clock of this operation stops. Closes its file, forgets its body."""
        if self.file is not None:
            self.file.close()
            self.file = None
        elif self.plan.sink == "file" and self.key and not (self.bytes or self.item.size or error):
            open(self.path, "wb").close()
        self.body = None
        self.end_ns = time.monotonic_ns()
        if error is not None:
            self.error = f"{type(error).__name__}: {error}"
        elif not self.key:
            if self.item.keys and self.keys != self.item.keys:
                self.error = f"listed {self.keys} keys, not {self.item.keys}"
        elif self.bytes != self.item.size:
            self.error = f"{self.bytes} bytes, not {self.item.size}"

    def sample(self) -> dict[str, Any]:
        said = {
            "type": "sample",
            "n": self.n,
            "worker": self.worker,
            "start_ns": self.start_ns,
            "first_ns": self.first_ns,
            "end_ns": self.end_ns,
            "bytes": self.bytes,
            "error": self.error,
        }
        if not self.key:
            said["keys"] = self.keys
        if self.verify:
            said["digest"] = None if self.error else f"{self.digest:08x}"
        return said


def formula(key: str, size: int) -> bytes:
    """The first ``size`` bytes of a synthetic object."""
    period = synthetic_bytes.PERIOD
    once = synthetic_bytes.expected(key, 0, min(size, period))
    return (once * -(-size // period))[:size] if size > period else once


def _write(file: Any, piece: Any) -> None:
    view = memoryview(piece)
    while view:
        view = view[file.write(view) :]


def _digest_of_file(path: str) -> int:
    digest = 0
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(PIECE):
            digest = zlib.crc32(piece, digest)
    return digest


_OWN = threading.local()


def scratch(size: int = PIECE) -> memoryview:
    """Memory of the calling thread's own that is used over and over."""
    held = getattr(_OWN, "held", b"")
    if len(held) < size:
        held = _OWN.held = bytearray(size)
    return memoryview(held)[:size]


def read_into(operation: Operation, readinto: Callable[[memoryview], int]) -> None:
    """Takes a body through ``readinto`` of a client's stream, as the plan's sink wants it."""
    if operation.plan.sink == "memory":
        into, at = scratch(operation.item.size), 0
        while at < len(into) and (count := readinto(into[at:])):
            if operation.first_ns is None:
                operation.first()
            at += count
        operation.whole(into[:at])
        return
    into = scratch()
    while count := readinto(into):
        operation.part(into[:count])


# ---------------------------------------------------------- how operations are kept in flight


class _Threads:
    def __init__(self, client: Any):
        self._client, self._workers = client, client.workers
        self._pool = concurrent.futures.ThreadPoolExecutor(self._workers)

    def run(self, name: str, operations: list[Operation]) -> None:
        do = getattr(self._client, name)
        waiting = deque(operations)

        def worker(number: int) -> None:
            while True:
                try:
                    operation = waiting.popleft()
                except IndexError:
                    return
                operation.worker, operation.start_ns = number, time.monotonic_ns()
                error = None
                try:
                    do(operation)
                except Exception as failure:
                    error = failure
                operation.done(error)

        for _ in self._pool.map(worker, range(min(self._workers, len(operations)))):
            pass


class _Tasks:
    def __init__(self, client: Any):
        self._client, self._workers = client, client.workers
        self._loop = getattr(client, "loop", None) or asyncio.new_event_loop()

    def run(self, name: str, operations: list[Operation]) -> None:
        self._loop.run_until_complete(self._all(getattr(self._client, name), deque(operations)))

    async def _all(self, do: Callable[..., Any], waiting: deque[Operation]) -> None:
        async def worker(number: int) -> None:
            while waiting:
                operation = waiting.popleft()
                operation.worker, operation.start_ns = number, time.monotonic_ns()
                error = None
                try:
                    await do(operation)
                except Exception as failure:
                    error = failure
                operation.done(error)

        await asyncio.gather(*map(worker, range(min(self._workers, len(waiting)))))


class _Completions:
    """The next operation of a worker starts where the client tells of the end of the last."""

    def __init__(self, client: Any):
        self._client, self._workers = client, client.workers

    def run(self, name: str, operations: list[Operation]) -> None:
        do = getattr(self._client, name)
        waiting, lock, ended = deque(operations), threading.Lock(), threading.Event()
        left = len(operations)

        def finish(operation: Operation, error: BaseException | None) -> None:
            nonlocal left
            operation.completed = operation._nothing
            operation.done(error)
            with lock:
                left -= 1
                if not left:
                    ended.set()

        def start(number: int) -> None:
            while True:
                try:
                    operation = waiting.popleft()
                except IndexError:
                    return
                once = threading.Lock()

                def completed(
                    error: BaseException | None = None,
                    operation: Operation = operation,
                    once: threading.Lock = once,
                ) -> None:
                    if once.acquire(blocking=False):
                        finish(operation, error)
                        start(number)

                operation.completed = completed
                operation.worker, operation.start_ns = number, time.monotonic_ns()
                try:
                    do(operation)
                    return
                except Exception as failure:
                    if not once.acquire(blocking=False):
                        return
                    finish(operation, failure)

        for number in range(min(self._workers, len(operations))):
            start(number)
        ended.wait()


class _Together:
    def __init__(self, client: Any):
        self.run = client.together


def _engine(driven: Any, name: str) -> Any:
    if hasattr(driven, "together"):
        return _Together(driven)
    if inspect.iscoroutinefunction(getattr(driven, name)):
        return _Tasks(driven)
    if name != "list" and getattr(driven, "completes", False):
        return _Completions(driven)
    return _Threads(driven)


# ---------------------------------------------------------- the protocol


def main(description: dict[str, Any], client: Callable[[Plan], Any]) -> None:
    """Does what the command line says: ``describe`` or ``run``. Ends the process."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    said = {
        "type": "describe",
        "protocol": VERSION,
        "language": "python",
        "components": {},
        "operations": ["get", "put", "list"],
        "sinks": list(SINKS),
        "sources": list(SOURCES),
        "settings": ["concurrency", "listing"],
        "tls": True,
        **description,
    }
    if sys.argv[-1] == "describe":
        _say(out, said)
        return
    if sys.argv[-1] != "run":
        sys.exit(f"usage: {sys.argv[0]} describe | run")
    try:
        plan = Plan(json.loads(sys.stdin.readline()))
        _can(plan, said)
        if plan.operation == "put" and plan.source == "memory":
            plan.make_bodies()
        driven = client(plan)
    except (Malformed, json.JSONDecodeError) as error:
        print(f"{said['name']}: {error}", file=sys.stderr)
        sys.exit(MALFORMED)
    except Skip as reason:
        _say(out, {"type": "skip", "reason": str(reason)})
        sys.exit(CANNOT)
    _rounds(out, plan, driven)
    close = getattr(driven, "close", None)
    if close:
        close()
    out.close()
    sys.stderr.flush()
    # Clients with threads of their own can take seconds to be taken apart.
    os._exit(0)


def _can(plan: Plan, said: dict[str, Any]) -> None:
    def among(what: str, value: str, known: list[str]) -> None:
        if value not in known:
            raise Skip(f"{said['name']} cannot {what} {value}: it can {', '.join(known)}")

    among("do", plan.operation, said["operations"])
    if plan.operation == "get":
        among("get to", plan.sink, said["sinks"])
    elif plan.operation == "put":
        among("put from", plan.source, said["sources"])
    if plan.secure and not said["tls"]:
        raise Skip(f"{said['name']} cannot be given an authority to trust, which TLS needs here")


def _found(plan: Plan, driven: Any) -> list[Item]:
    """What the client's own listing finds below the plan's prefix, in order of the keys. An item
    that the plan does not have there fails for its size, and one that is missing for its key."""
    listing = Operation(plan, Item(0, {"prefix": plan.listing}), False)
    listing.found = []
    _engine(driven, "list").run("list", [listing])
    if listing.error:
        raise RuntimeError(f"listing {plan.listing!r}: {listing.error}")
    keys = sorted(listing.found, key=str.encode)
    sizes = [item.size for item in plan.work] + [-1] * len(keys)
    return [Item(n, {"key": key, "size": sizes[n]}) for n, key in enumerate(keys)]


def _rounds(out: Any, plan: Plan, driven: Any) -> None:
    if not hasattr(driven, "workers"):
        driven.workers = plan.concurrency or DEFAULT_WORKERS
    engine = _engine(driven, plan.operation)
    lists = plan.listing is not None and not hasattr(driven, "together")
    _say(out, {"type": "ready"})
    while line := sys.stdin.readline():
        go = json.loads(line)
        if go.get("type") != "go":
            sys.exit(f"expected a line that says go, not {line.strip()[:100]!r}")
        start, number = time.monotonic_ns(), go.get("round")
        work = _found(plan, driven) if lists else plan.work
        operations = [Operation(plan, item, bool(go.get("verify"))) for item in work]
        look = engine.run(plan.operation, operations)
        end = time.monotonic_ns()
        _say(out, {"type": "stopped", "round": number})
        samples = look() if look else [operation.sample() for operation in operations]
        unknown = dict.fromkeys(("concurrency", "part_size", "checksums"))
        done = {"type": "done", "round": number, "start_ns": start, "end_ns": end}
        _say(out, *samples, {**done, "effective": {**unknown, **driven.effective()}})


def _say(out: Any, *lines: dict[str, Any]) -> None:
    out.write("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    out.flush()


def version(distribution: str) -> str:
    """What is installed here, as the packaging metadata have it."""
    import importlib.metadata

    return importlib.metadata.version(distribution)


def credentials() -> tuple[str, str]:
    """Access key and secret key."""
    return os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
