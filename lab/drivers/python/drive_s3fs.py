"""s3fs from within its own event loop, as asynchronous users call it: ``_cat_file``, ``_get_file``,
``_pipe_file``, ``_put_file``, ``_find``. It hands bodies over whole; there is no stream in order.

Where the plan leaves the concurrency alone it is fsspec's for bulk operations.
"""

from __future__ import annotations

import asyncio

import fsspec.asyn
import lab_protocol
import s3fs
from lab_protocol import Operation, Plan, version


class S3fs:
    def __init__(self, plan: Plan):
        self._plan = plan
        self.workers = plan.concurrency or fsspec.asyn._get_batch_size()
        self.loop = asyncio.new_event_loop()
        access, secret = lab_protocol.credentials()
        checksums = {}
        if plan.checksums is not None:
            when = "when_supported" if plan.checksums else "when_required"
            names = ("request_checksum_calculation", "response_checksum_validation")
            checksums = dict.fromkeys(names, when)
        self._system = s3fs.S3FileSystem(
            key=access,
            secret=secret,
            endpoint_url=plan.endpoint,
            client_kwargs={"region_name": plan.region, "verify": plan.ca_file},
            config_kwargs={
                "s3": {"addressing_style": "path"},
                "max_pool_connections": self.workers,
                **checksums,
            },
            use_listings_cache=False,
            skip_instance_cache=True,
            asynchronous=True,
            loop=self.loop,
        )
        self._client = self.loop.run_until_complete(self._system.set_session())

    async def get(self, operation: Operation) -> None:
        path, item = self._path(operation), operation.item
        if self._plan.files and item.first is None:
            await self._system._get_file(path, operation.path)
            operation.wrote()
            return
        body = await self._system._cat_file(path, start=item.first, end=item.end)
        if self._plan.sink == "memory":
            operation.whole(body)
        else:
            operation.part(body)
            operation.first_ns = None

    async def put(self, operation: Operation) -> None:
        path = self._path(operation)
        if self._plan.files:
            await self._system._put_file(operation.path, path)
        else:
            await self._system._pipe_file(path, self._plan.body(operation.item.size))
        operation.sent()

    async def list(self, operation: Operation) -> None:
        found = await self._system._find(f"{self._plan.bucket}/{operation.item.prefix}")
        cut = len(self._plan.bucket) + 1
        operation.listed([path[cut:] for path in found])

    def _path(self, operation: Operation) -> str:
        return f"{self._plan.bucket}/{operation.key}"

    def effective(self) -> dict:
        when = self._client.meta.config.request_checksum_calculation
        return {"concurrency": self.workers, "checksums": when == "when_supported"}

    def close(self) -> None:
        self.loop.run_until_complete(self._client.close())


if __name__ == "__main__":
    lab_protocol.main(
        {
            "name": "s3fs",
            "client": "s3fs",
            "version": version("s3fs"),
            "components": {name: version(name) for name in ("aiobotocore", "aiohttp", "fsspec")},
            "sinks": ["discard", "memory", "file"],
            "settings": ["concurrency", "checksums", "listing"],
        },
        S3fs,
    )
