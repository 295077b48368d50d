"""A client that shares nothing with the engine, the server or the drivers: plain sockets and one
loop. It asks, reads and notes the time, to check what a model claims. Speaks plain HTTP to
loopback, and only as much of it as it needs."""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import select
import socket
import time
from collections.abc import Iterator, Sequence

LIMIT = 60.0
#: Seconds before a connection that was told to slow down asks again.
PAUSE = 0.02
_PIECE = 256 << 10


class BadAnswer(Exception):
    """The server said something that is not what was asked for, or nothing."""


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One request and its answer: its status, and when (seconds of the monotonic clock) it was
    sent and its answer's first byte came."""

    status: int
    sent: float
    first: float

    @property
    def seconds(self) -> float:
        return self.first - self.sent


def call(
    address: tuple[str, int],
    method: str,
    path: str,
    connections: int,
    *,
    calls: int | None = None,
    seconds: float | None = None,
) -> list[Call]:
    """Sends the same request again and again on so many connections, each as soon as it has its
    answer, until there are so many answers or so many seconds are over since the first one. The
    answers must have no body, as those to HEAD, or say how long it is. Raises BadAnswer."""
    host = f"{address[0]}:{address[1]}"
    request = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n".encode()
    found: list[Call] = []
    until = time.monotonic() + LIMIT
    with _connected(address, connections) as (loop, sockets):
        sent: dict[int, float] = {}
        heads: dict[int, tuple[float, bytes]] = {}
        later: list[tuple[float, int]] = [(0.0, number) for number in sockets]
        while time.monotonic() < until and (calls is None or len(found) < calls):
            now = time.monotonic()
            while later and later[0][0] <= now:
                number = heapq.heappop(later)[1]
                sent[number] = time.monotonic()
                sockets[number].send(request)
            wait = min([until - now, 1.0, *(at - now for at, _ in later[:1])])
            for number, _ in loop.poll(max(0.0, wait)):
                first, head = heads.pop(number, (time.monotonic(), b""))
                head += sockets[number].recv(65536)
                status = _whole(head, method)
                if status is None:
                    heads[number] = first, head
                    continue
                if not found and seconds is not None:
                    until = first + seconds
                found.append(Call(status, sent[number], first))
                if status == 503:
                    heapq.heappush(later, (time.monotonic() + PAUSE, number))
                else:
                    sent[number] = time.monotonic()
                    sockets[number].send(request)
        if len(found) < (calls or 1):
            raise BadAnswer(f"{method} {path}: {len(found)} of {calls or 1} answers in {LIMIT:g} s")
    return found


def download(
    address: tuple[str, int], path: str, connections: int, seconds: float
) -> list[tuple[float, int]]:
    """Reads an object that does not end in that time on so many connections at once: when
    (seconds from the first byte of any) how many bytes came. Raises BadAnswer."""
    host = f"{address[0]}:{address[1]}"
    request = f"GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode()
    found: list[tuple[float, int]] = []
    into = bytearray(_PIECE)
    with _connected(address, connections) as (loop, sockets):
        for one in sockets.values():
            one.send(request)
        until = time.monotonic() + LIMIT
        while (now := time.monotonic()) < until:
            for number, _ in loop.poll(max(0.0, until - now)):
                count = sockets[number].recv_into(into)
                if not count:
                    raise BadAnswer(f"GET {path} ended before its time: {bytes(into[:200])!r}")
                if not found:
                    until = time.monotonic() + seconds
                    if not into.startswith(b"HTTP/1.1 20"):
                        raise BadAnswer(f"GET {path}: {bytes(into[:200])!r}")
                found.append((time.monotonic(), count))
    began = found[0][0] if found else 0.0
    return [(at - began, count) for at, count in found]


def upload(address: tuple[str, int], path: str, size: int) -> float:
    """Sends so many bytes on one connection: seconds until the answer's first byte. Raises
    BadAnswer."""
    host = f"{address[0]}:{address[1]}"
    head = f"PUT {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {size}\r\n\r\n".encode()
    piece = memoryview(bytes(_PIECE))
    with socket.create_connection(address, timeout=LIMIT) as one:
        began = time.monotonic()
        one.sendall(head)
        for at in range(0, size, _PIECE):
            one.sendall(piece[: min(_PIECE, size - at)])
        said = one.recv(65536)
        took = time.monotonic() - began
    if not said.startswith(b"HTTP/1.1 200"):
        raise BadAnswer(f"PUT {path}: {said[:200]!r}")
    return took


def rate(came: Sequence[tuple[float, int]], start: float, end: float) -> float:
    """Bytes a second between two moments."""
    return sum(count for at, count in came if start <= at < end) / (end - start)


@contextlib.contextmanager
def _connected(
    address: tuple[str, int], connections: int
) -> Iterator[tuple[select.epoll, dict[int, socket.socket]]]:
    with contextlib.ExitStack() as stack:
        loop = stack.enter_context(select.epoll())
        sockets = {}
        for _ in range(connections):
            one = stack.enter_context(socket.create_connection(address, timeout=LIMIT))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            loop.register(one, select.EPOLLIN)
            sockets[one.fileno()] = one
        yield loop, sockets


def _whole(answer: bytes, method: str) -> int | None:
    """The status of an answer that has come in whole."""
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        if not answer:
            raise BadAnswer(f"{method}: the connection was closed")
        return None
    length = 0
    if method != "HEAD":
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line[15:])
    return int(head[9:12]) if len(body) >= length else None
