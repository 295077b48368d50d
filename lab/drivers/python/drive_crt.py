"""awscrt's S3Client as it is: bodies come to a callback as bytes objects that the runtime copied.

Operations follow one another in the runtime's own callbacks, so no thread of Python waits. What is
wanted whole in memory is put in its place in memory that each worker uses over and over; files are
written and read by the runtime itself. There is no listing.
"""

from __future__ import annotations

import io
import urllib.parse

import crt_client
import lab_protocol
from awscrt.http import HttpHeaders, HttpRequest
from awscrt.s3 import (
    S3ChecksumAlgorithm,
    S3ChecksumConfig,
    S3ChecksumLocation,
    S3RequestType,
)
from lab_protocol import Operation, Plan, version


class Crt:
    completes = True

    def __init__(self, plan: Plan):
        self._plan = plan
        self.workers = plan.concurrency or lab_protocol.DEFAULT_WORKERS
        self._client = crt_client.made(plan)
        self._memory: dict[int, bytearray] = {}
        self._largest = max(item.size for item in plan.work)

    def get(self, operation: Operation) -> None:
        headers = HttpHeaders([("host", self._plan.host)])
        if operation.item.range_header:
            headers.add("range", operation.item.range_header)
        checked = S3ChecksumConfig(validate_response=True) if self._plan.checksums else None
        self._request(
            operation,
            S3RequestType.GET_OBJECT,
            HttpRequest("GET", self._path(operation), headers),
            checksum_config=checked,
            **self._receiver(operation),
        )

    def _receiver(self, operation: Operation) -> dict:
        if self._plan.files:
            return {
                "recv_filepath": operation.path,
                "on_done": _end(operation, operation.wrote),
            }
        if self._plan.sink != "memory":
            return {
                "on_body": lambda chunk, **_: operation.part(chunk),
                "on_done": _end(operation, lambda: None),
            }
        into, at = memoryview(self._memory_of(operation.worker)), 0

        def on_body(chunk: bytes, **_: object) -> None:
            nonlocal at
            if not at:
                operation.first()
            into[at : at + len(chunk)] = chunk
            at += len(chunk)

        done = _end(operation, lambda: operation.whole(into[:at]))
        return {"on_body": on_body, "on_done": done}

    def _memory_of(self, worker: int) -> bytearray:
        return self._memory.setdefault(worker, bytearray(0)) or self._grown(worker)

    def _grown(self, worker: int) -> bytearray:
        self._memory[worker] = bytearray(self._largest)
        return self._memory[worker]

    def put(self, operation: Operation) -> None:
        size = operation.item.size
        headers = HttpHeaders([("host", self._plan.host), ("content-length", str(size))])
        body = None if self._plan.files else io.BytesIO(self._plan.body(size))
        sums = None
        if self._plan.checksums:
            sums = S3ChecksumConfig(
                algorithm=S3ChecksumAlgorithm.CRC32, location=S3ChecksumLocation.TRAILER
            )
        self._request(
            operation,
            S3RequestType.PUT_OBJECT,
            HttpRequest("PUT", self._path(operation), headers, body),
            send_filepath=operation.path if self._plan.files else None,
            checksum_config=sums,
            on_done=_end(operation, operation.sent),
        )

    def _request(self, operation: Operation, kind: S3RequestType, request, **more) -> None:
        # The request lives as long as the operation: without it nobody is told of its end.
        operation.body = self._client.make_request(type=kind, request=request, **more)

    def _path(self, operation: Operation) -> str:
        return f"/{self._plan.bucket}/{urllib.parse.quote(operation.key)}"

    def effective(self) -> dict:
        return {
            # Left alone, the runtime has its own number of connections.
            "concurrency": self._plan.concurrency,
            "part_size": self._plan.part_size,
            "checksums": bool(self._plan.checksums),
        }


def _end(operation: Operation, whole):
    completed = operation.completed

    def on_done(error: BaseException | None, **_: object) -> None:
        if error is None:
            try:
                whole()
            except Exception as failure:
                error = failure
        completed(error)

    return on_done


if __name__ == "__main__":
    lab_protocol.main(
        {
            "name": "crt-python-bytes",
            "client": "awscrt",
            "version": version("awscrt"),
            "operations": ["get", "put"],
            "settings": ["concurrency", "part_size", "checksums"],
        },
        Crt,
    )
