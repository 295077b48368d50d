"""Endpoints that misbehave: one that is slow, one that never answers, one that speaks garbage.

Each listens on a loopback port of its own and lives in threads of the test process.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

CHUNK = 16 << 10


@contextlib.contextmanager
def _listening(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """The endpoint whose connections `serve` is given, one thread each."""
    listener = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def handle(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            serve(connection)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                taken.append(connection)
                threading.Thread(target=handle, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        for connection in taken:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def silent() -> contextlib.AbstractContextManager[str]:
    """Accepts, reads what it is sent, and never answers."""

    def serve(connection: socket.socket) -> None:
        while connection.recv(CHUNK):
            pass

    return _listening(serve)


def answering(answer: bytes) -> contextlib.AbstractContextManager[str]:
    """Answers every connection with the same bytes, whatever it was asked, and closes it."""

    def serve(connection: socket.socket) -> None:
        connection.recv(CHUNK)
        connection.sendall(answer)

    return _listening(serve)


def slow(port: int, bytes_a_second: int) -> contextlib.AbstractContextManager[str]:
    """A server on `port` behind a line of so many bytes a second each way, shared by all."""
    free_at = {"up": 0.0, "down": 0.0}
    lock = threading.Lock()

    def pump(source: socket.socket, sink: socket.socket, way: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                with lock:
                    now = time.monotonic()
                    free_at[way] = max(free_at[way], now) + len(data) / bytes_a_second
                    wait = free_at[way] - now
                time.sleep(wait)
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve(connection: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", port)) as server:
            up = threading.Thread(target=pump, args=(connection, server, "up"), daemon=True)
            up.start()
            pump(server, connection, "down")
            up.join()

    return _listening(serve)
