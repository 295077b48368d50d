"""s3dlio's asynchronous functions, from one event loop. Whole objects are received in memory of
each task's own that is used over and over (``get_into_async``) or in the client's (``get_async``);
ranges in the client's. It has neither a stream nor a file of a name of the caller's choice."""

from __future__ import annotations

import lab_protocol
import s3dlio
from lab_protocol import Operation, Plan, version


class S3dlio:
    def __init__(self, plan: Plan):
        self._plan = plan
        self.workers = plan.concurrency or lab_protocol.DEFAULT_WORKERS
        self._memory: dict[int, bytearray] = {}
        self._largest = max(item.size for item in plan.work)
        s3dlio.configure_s3(
            endpoint_url=plan.endpoint, region=plan.region, ca_bundle=plan.ca_file or None
        )

    async def get(self, operation: Operation) -> None:
        item, uri = operation.item, self._uri(operation.key)
        if item.first is not None:
            self._received(operation, await s3dlio.get_range_async(uri, item.first, item.size))
        elif self._plan.sink == "memory":
            held = self._memory.setdefault(operation.worker, bytearray(self._largest))
            into = memoryview(held)[: item.size]
            await s3dlio.get_into_async(uri, into, expected_len=item.size)
            operation.whole(into)
        else:
            self._received(operation, await s3dlio.get_async(uri))

    def _received(self, operation: Operation, body) -> None:
        operation.whole(body if isinstance(body, bytes) else body.memoryview())

    async def put(self, operation: Operation) -> None:
        await s3dlio.put_bytes_async(self._uri(operation.key), self._plan.body(operation.item.size))
        operation.sent()

    def list(self, operation: Operation) -> None:
        found = s3dlio.list(self._uri(operation.item.prefix), recursive=True)
        cut = len(self._uri(""))
        operation.listed([uri[cut:] for uri in found])

    def _uri(self, key: str) -> str:
        return f"s3://{self._plan.bucket}/{key}"

    def effective(self) -> dict:
        return {"concurrency": self.workers}


if __name__ == "__main__":
    lab_protocol.main(
        {
            "name": "s3dlio",
            "client": "s3dlio",
            "version": version("s3dlio"),
            "sinks": ["discard", "memory"],
            "sources": ["memory"],
        },
        S3dlio,
    )
