"""boto3's transfers on the Common Runtime: s3transfer's CRT manager, driven directly.

Through boto3 itself the choice of this client is silent: it ignores ``endpoint_url``, and while
another process holds a lock it falls back to the classic one. Here it is this one or none. A file
object gets the body in order; a download to a file has a temporary name first, as s3transfer does.
"""

from __future__ import annotations

import io
import threading

import botocore.session
import botocore_client
import crt_client
import lab_protocol
from botocore.config import Config
from lab_protocol import Operation, Plan, version
from s3transfer.crt import BotocoreCRTRequestSerializer, CRTTransferManager
from s3transfer.subscribers import BaseSubscriber

#: s3transfer's CRT manager lets no more be in flight, whatever it is asked.
MOST_TRANSFERS = 128


class Ended(BaseSubscriber):
    """Tells of a transfer's end. Its result is there before a file has its name."""

    def __init__(self):
        self._event = threading.Event()

    def on_done(self, future, **_) -> None:
        self._event.set()

    def wait(self, future) -> None:
        """Raises what the transfer failed with."""
        self._event.wait()
        future.result()


class Body:
    """What s3transfer writes to."""

    def __init__(self, operation: Operation):
        self.write = operation.part


class Boto3Crt:
    def __init__(self, plan: Plan):
        if any(item.first is not None for item in plan.work):
            raise lab_protocol.Skip("s3transfer's CRT client downloads whole objects, no ranges")
        self._plan = plan
        self.workers = plan.concurrency or lab_protocol.DEFAULT_WORKERS
        # Listing is not the runtime's: boto3 does it.
        self._boto3 = botocore_client.made(plan, self.workers)
        session = botocore.session.Session()
        serializer = BotocoreCRTRequestSerializer(
            session,
            {
                "endpoint_url": plan.endpoint,
                "region_name": plan.region,
                "config": Config(s3={"addressing_style": "path"}),
            },
        )
        self._manager = CRTTransferManager(crt_client.made(plan), serializer)

    def get(self, operation: Operation) -> None:
        if self._plan.files:
            self._download(operation, operation.path)
            operation.wrote()
        elif self._plan.sink == "memory":
            whole = io.BytesIO()
            self._download(operation, whole)
            operation.whole(whole.getbuffer())
        else:
            self._download(operation, Body(operation))

    def _download(self, operation: Operation, to) -> None:
        ended = Ended()
        where = (self._plan.bucket, operation.key)
        ended.wait(self._manager.download(*where, to, subscribers=[ended]))

    def put(self, operation: Operation) -> None:
        source = operation.path if self._plan.files else io.BytesIO(self._body(operation))
        ended = Ended()
        to = (self._plan.bucket, operation.key)
        ended.wait(self._manager.upload(source, *to, subscribers=[ended]))
        operation.sent()

    def _body(self, operation: Operation) -> bytes:
        return self._plan.body(operation.item.size)

    def list(self, operation: Operation) -> None:
        botocore_client.listing(self._boto3, operation)

    def effective(self) -> dict:
        # Whatever is asked, this manager checks what it gets and sends a CRC-32 with what it puts.
        asked = self._plan.concurrency
        return {
            "concurrency": asked if asked and asked <= MOST_TRANSFERS else None,
            "part_size": self._plan.part_size,
            "checksums": True,
        }


if __name__ == "__main__":
    lab_protocol.main(
        botocore_client.description(
            "boto3-crt",
            settings=["concurrency", "part_size", "listing"],
            components={
                "awscrt": version("awscrt"),
                "botocore": version("botocore"),
                "s3transfer": version("s3transfer"),
            },
        ),
        Boto3Crt,
    )
