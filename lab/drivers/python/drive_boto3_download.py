"""boto3's own transfers: ``download_fileobj``, ``download_file``, ``upload_fileobj`` and
``upload_file``, on the classic client.

Each of them splits a large object over threads of its own, so the plan's concurrency is shared out:
as many transfers at once as there are objects for, and to each of them its part of the requests.
"""

from __future__ import annotations

import io

import botocore_client
import lab_protocol
from boto3.s3.transfer import TransferConfig
from lab_protocol import Operation, Plan


class Ordered(io.RawIOBase):
    """A sink without places: s3transfer writes to it in order."""

    def __init__(self, operation: Operation):
        self._part = operation.part

    def writable(self) -> bool:
        return True

    def write(self, piece) -> int:
        self._part(piece)
        return len(piece)


class Nowhere(Ordered):
    """A sink with places where nothing is kept: s3transfer writes to it as parts come."""

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        return place

    def tell(self) -> int:
        return 0


class Boto3Download:
    def __init__(self, plan: Plan):
        if any(item.first is not None for item in plan.work):
            raise lab_protocol.Skip("download_fileobj takes whole objects, no ranges")
        self._plan = plan
        self._asked = plan.concurrency or lab_protocol.DEFAULT_WORKERS
        self.workers = min(self._asked, len(plan.work))
        settings: dict = {"preferred_transfer_client": "classic"}
        if plan.concurrency:
            settings["max_concurrency"] = max(1, plan.concurrency // self.workers)
        if plan.part_size:
            settings["multipart_chunksize"] = plan.part_size
            settings["multipart_threshold"] = plan.part_size
        self._config = TransferConfig(**settings)
        connections = self._config.max_concurrency * self.workers
        self._client = botocore_client.made(plan, connections)

    def get(self, operation: Operation) -> None:
        where = {"Bucket": self._plan.bucket, "Key": operation.key, "Config": self._config}
        if self._plan.files:
            self._client.download_file(Filename=operation.path, **where)
            operation.wrote()
        elif self._plan.sink == "memory":
            whole = io.BytesIO()
            self._client.download_fileobj(Fileobj=whole, **where)
            operation.whole(whole.getbuffer())
        elif self._plan.sink == "discard" and not operation.verify:
            self._client.download_fileobj(Fileobj=Nowhere(operation), **where)
        else:
            self._client.download_fileobj(Fileobj=Ordered(operation), **where)

    def put(self, operation: Operation) -> None:
        where = {"Bucket": self._plan.bucket, "Key": operation.key, "Config": self._config}
        if self._plan.files:
            self._client.upload_file(Filename=operation.path, **where)
        else:
            body = io.BytesIO(self._plan.body(operation.item.size))
            self._client.upload_fileobj(Fileobj=body, **where)
        operation.sent()

    def list(self, operation: Operation) -> None:
        botocore_client.listing(self._client, operation)

    def effective(self) -> dict:
        return {
            "concurrency": self._asked,
            "part_size": self._config.multipart_chunksize,
            "checksums": botocore_client.checksums(self._client),
            "transfers": self.workers,
            "requests_a_transfer": self._config.max_concurrency,
        }


if __name__ == "__main__":
    lab_protocol.main(
        botocore_client.description(
            "boto3-download", settings=["concurrency", "part_size", "checksums", "listing"]
        ),
        Boto3Download,
    )
