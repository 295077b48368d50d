"""Our own Python package, its asynchronous client in one event loop.

What is wanted whole in memory is a Buffer over the client's pool. What is dropped is counted as
parts come, in any order; in verified rounds it is read in order instead, as streams are.
"""

from __future__ import annotations

import lab_protocol
from lab_protocol import Operation, Plan

import wirespeed

#: Downloads to files whose sizes nobody has told: each has room reserved in the memory budget, and
#: at its default no more fit.
MOST_FILES = 64


class Wirespeed:
    def __init__(self, plan: Plan):
        self._plan = plan
        settings: dict = {"endpoint_url": plan.endpoint, "region": plan.region}
        asked = {
            "concurrency": plan.concurrency,
            "part_size": plan.part_size,
            "verify_checksums": plan.checksums,
            "ca_bundle": plan.ca_file,
        }
        settings.update({name: value for name, value in asked.items() if value is not None})
        self._client = wirespeed.AsyncClient(**settings)
        self._put_with = {"checksum": None} if plan.checksums is False else {}
        self.workers = plan.concurrency or int(self._client.settings["concurrency"])

    async def get(self, operation: Operation) -> None:
        plan, item = self._plan, operation.item
        where: dict = {"bucket": plan.bucket}
        if plan.files and item.first is None:
            await self._client.download([(operation.key, operation.path)], **where)
            operation.wrote()
            return
        if item.first is not None:
            where["range"] = (item.first, item.end)
        if plan.sink == "memory":
            operation.whole(await self._client.get(operation.key, **where))
        elif plan.sink == "discard" and not operation.verify:

            def on_part(offset: int, part: memoryview) -> None:
                operation.part(part)

            await self._client.get(operation.key, on_part=on_part, **where)
        else:
            async with await self._client.stream(operation.key, **where) as stream:
                async for part in stream:
                    operation.part(part)

    async def put(self, operation: Operation) -> None:
        where = {"bucket": self._plan.bucket, **self._put_with}
        if self._plan.files:
            await self._client.put_file(operation.key, operation.path, **where)
        else:
            body = self._plan.body(operation.item.size)
            await self._client.put(operation.key, body, **where)
        operation.sent()

    async def list(self, operation: Operation) -> None:
        listing = self._client.list(operation.item.prefix, bucket=self._plan.bucket)
        operation.listed(await listing.keys())

    def effective(self) -> dict:
        told = self._client.settings
        in_flight = int(told["concurrency"])
        fewer = self._plan.operation == "get" and self._plan.files and in_flight > MOST_FILES
        return {
            "concurrency": None if fewer else in_flight,
            "part_size": self._plan.part_size,
            "checksums": self._plan.checksums,
        }


if __name__ == "__main__":
    lab_protocol.main(
        {
            "name": "wirespeed-python",
            "client": "wirespeed",
            "version": wirespeed.__version__,
            "settings": ["concurrency", "part_size", "checksums", "listing"],
        },
        Wirespeed,
    )
