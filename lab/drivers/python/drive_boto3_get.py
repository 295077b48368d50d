"""boto3's ``get_object`` and ``put_object``: one request an operation, from a pool of threads.

A body that is not wanted whole is read into one buffer of the thread's own; one that is wanted
whole is what ``read`` returns.
"""

from __future__ import annotations

import botocore_client
import lab_protocol
from lab_protocol import Operation, Plan, read_into


class Boto3Get:
    def __init__(self, plan: Plan):
        self.workers = plan.concurrency or lab_protocol.DEFAULT_WORKERS
        self._plan = plan
        self._client = botocore_client.made(plan, self.workers)

    def get(self, operation: Operation) -> None:
        ranged = {"Range": operation.item.range_header} if operation.item.range_header else {}
        body = self._client.get_object(Bucket=self._plan.bucket, Key=operation.key, **ranged)[
            "Body"
        ]
        if self._plan.sink == "memory":
            # boto3 shows the head of the answer, not its first byte.
            operation.whole(body.read())
        else:
            read_into(operation, body.readinto)

    def put(self, operation: Operation) -> None:
        if self._plan.files:
            with open(operation.path, "rb") as body:
                self._put(operation, body)
        else:
            self._put(operation, self._plan.body(operation.item.size))
        operation.sent()

    def _put(self, operation: Operation, body) -> None:
        self._client.put_object(Bucket=self._plan.bucket, Key=operation.key, Body=body)

    def list(self, operation: Operation) -> None:
        botocore_client.listing(self._client, operation)

    def effective(self) -> dict:
        return {
            "concurrency": self.workers,
            "checksums": botocore_client.checksums(self._client),
        }


if __name__ == "__main__":
    lab_protocol.main(botocore_client.description("boto3-get"), Boto3Get)
