"""obstore's asynchronous functions, from one event loop: one GET for each object or range, which
obstore does not split; uploads in parts of its own choice. Listings
come page by page."""

from __future__ import annotations

from pathlib import Path

import lab_protocol
import obstore
from lab_protocol import Operation, Plan, version
from obstore.store import S3Store

#: A page of the service.
PAGE = 1000


class Obstore:
    def __init__(self, plan: Plan):
        self._plan = plan
        self.workers = plan.concurrency or lab_protocol.DEFAULT_WORKERS
        access, secret = lab_protocol.credentials()
        options: dict = {"allow_http": True, "timeout": "600s"}
        if plan.ca_file:
            options["root_certificate"] = Path(plan.ca_file).read_bytes()
        self._store = S3Store(
            plan.bucket,
            endpoint=plan.endpoint,
            region=plan.region,
            access_key_id=access,
            secret_access_key=secret,
            virtual_hosted_style_request=False,
            client_options=options,
        )

    async def get(self, operation: Operation) -> None:
        item = operation.item
        options = None if item.first is None else {"range": (item.first, item.end)}
        found = await obstore.get_async(self._store, operation.key, options=options)
        operation.first()
        if self._plan.sink == "memory":
            operation.whole(memoryview(await found.bytes_async()))
            return
        async for chunk in found.stream(min_chunk_size=lab_protocol.PIECE):
            operation.part(memoryview(chunk))

    async def put(self, operation: Operation) -> None:
        body = Path(operation.path) if self._plan.files else self._plan.body(operation.item.size)
        await obstore.put_async(self._store, operation.key, body)
        operation.sent()

    def list(self, operation: Operation) -> None:
        for page in obstore.list(self._store, operation.item.prefix, chunk_size=PAGE):
            if operation.first_ns is None:
                operation.first()
            operation.listed([entry["path"] for entry in page])

    def effective(self) -> dict:
        return {"concurrency": self.workers}


if __name__ == "__main__":
    lab_protocol.main(
        {"name": "obstore", "client": "obstore", "version": version("obstore")}, Obstore
    )
