"""The client of the S3 connector for PyTorch (Mountpoint's), without torch: a stream of bytes
objects, each copied to its place in memory that is used over and over, as the connector's own
reader does for ``readinto``."""

from __future__ import annotations

import functools
import os

import step_protocol
from s3torchconnectorclient._mountpoint_s3_client import MountpointS3Client
from step_protocol import Round

WORK = step_protocol.arguments(__doc__, ("get",))
CLIENT = MountpointS3Client(
    region=os.environ.get("AWS_REGION", "us-east-1"),
    endpoint=WORK.endpoint,
    force_path_style=True,
    part_size=WORK.part,
)


@functools.cache
def _memory() -> bytearray:
    return bytearray(WORK.size)


def _get(done: Round) -> None:
    into = memoryview(_memory())
    with done.clock:
        at = 0
        for piece in CLIENT.get_object(WORK.bucket, WORK.key):
            into[at : at + len(piece)] = piece
            at += len(piece)
    done.received(WORK.key, into[:at])
    done.objects = 1


MODES = {"get": _get}

if __name__ == "__main__":
    step_protocol.serve(WORK, MODES)
