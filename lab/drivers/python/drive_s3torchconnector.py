"""The client of the S3 connector for PyTorch (Mountpoint's), without torch: streams of bytes
objects from a pool of threads, each split into parts by the client itself. What is wanted whole
goes to its place in memory that is used over and over, as the connector's own reader has it.

It cannot be told which authority to trust, how many connections to have, or to leave checksums out.
"""

from __future__ import annotations

import lab_protocol
from lab_protocol import Operation, Plan, scratch, version
from s3torchconnectorclient._mountpoint_s3_client import MountpointS3Client


class S3Torch:
    def __init__(self, plan: Plan):
        self._plan = plan
        self.workers = plan.concurrency or lab_protocol.DEFAULT_WORKERS
        part = {"part_size": plan.part_size} if plan.part_size else {}
        self._client = MountpointS3Client(
            region=plan.region,
            endpoint=plan.endpoint,
            force_path_style=True,
            # It takes a connection for each 0.4 Gbit/s that it aims at.
            throughput_target_gbps=max(10.0, 0.4 * self.workers),
            **part,
        )

    def get(self, operation: Operation) -> None:
        item = operation.item
        stream = self._client.get_object(self._plan.bucket, operation.key, item.first, item.end)
        if self._plan.sink != "memory":
            for piece in stream:
                operation.part(piece)
            return
        into, at = scratch(item.size), 0
        for piece in stream:
            if not at:
                operation.first()
            into[at : at + len(piece)] = piece
            at += len(piece)
        operation.whole(into[:at])

    def put(self, operation: Operation) -> None:
        stream = self._client.put_object(self._plan.bucket, operation.key)
        stream.write(self._plan.body(operation.item.size))
        stream.close()
        operation.sent()

    def list(self, operation: Operation) -> None:
        for page in self._client.list_objects(self._plan.bucket, operation.item.prefix):
            if operation.first_ns is None:
                operation.first()
            operation.listed([entry.key for entry in page.object_info])

    def effective(self) -> dict:
        one = len(self._plan.work) == 1
        return {
            "concurrency": None if one else self.workers,
            "part_size": self._client.part_size,
        }


if __name__ == "__main__":
    lab_protocol.main(
        {
            "name": "s3torchconnector",
            "client": "s3torchconnectorclient",
            "version": version("s3torchconnectorclient"),
            "sources": ["memory"],
            "settings": ["concurrency", "part_size", "listing"],
            "tls": False,
        },
        S3Torch,
    )
