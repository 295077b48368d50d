"""pyarrow's S3FileSystem: a whole read into Arrow's own memory, and the same as ranges from a
pool of threads, each into its place in memory that is used over and over."""

from __future__ import annotations

import concurrent.futures
import functools
import os
import urllib.parse

import step_protocol
from pyarrow import fs
from step_protocol import Round, parts

WORK = step_protocol.arguments(__doc__, ("get", "get-parallel"))
_URL = urllib.parse.urlsplit(WORK.endpoint)
SYSTEM = fs.S3FileSystem(
    access_key=os.environ["AWS_ACCESS_KEY_ID"],
    secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
    region=os.environ.get("AWS_REGION", "us-east-1"),
    scheme=_URL.scheme,
    endpoint_override=_URL.netloc,
    request_timeout=120,
)
PATH = f"{WORK.bucket}/{WORK.key}"


def _get(done: Round) -> None:
    with done.clock, SYSTEM.open_input_file(PATH) as file:
        body = file.read_buffer()
    done.received(WORK.key, body)
    done.objects = 1
    with done.clock:
        del body


@functools.cache
def _memory() -> bytearray:
    return bytearray(WORK.size)


@functools.cache
def _pool() -> concurrent.futures.Executor:
    return concurrent.futures.ThreadPoolExecutor(WORK.connections)


def _get_parallel(done: Round) -> None:
    into, pool = memoryview(_memory()), _pool()
    with done.clock, SYSTEM.open_input_file(PATH) as file:

        def one(part: tuple[int, int]) -> None:
            start, end = part
            into[start:end] = file.read_at(end - start, start)

        for _ in pool.map(one, parts(WORK)):
            pass
    done.received(WORK.key, into)
    done.objects = 1


MODES = {"get": _get, "get-parallel": _get_parallel}

if __name__ == "__main__":
    step_protocol.serve(WORK, MODES)
