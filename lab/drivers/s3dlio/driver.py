"""s3dlio: ``get``, which hands over memory of its own, and ``get_into_async``, which fills one
numpy array over and over."""

from __future__ import annotations

import asyncio
import functools

import s3dlio
import step_protocol
from step_protocol import Round

WORK = step_protocol.arguments(__doc__, ("get", "get-into"))
URI = f"s3://{WORK.bucket}/{WORK.key}"
s3dlio.configure_s3(endpoint_url=WORK.endpoint)


def _get(done: Round) -> None:
    with done.clock:
        body = s3dlio.get(URI)
    done.received(WORK.key, body.memoryview())
    done.objects = 1
    with done.clock:
        del body


@functools.cache
def _memory():
    import numpy

    return numpy.ones(WORK.size, dtype=numpy.uint8)


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


async def _filled(into) -> int:
    return await s3dlio.get_into_async(URI, into, expected_len=WORK.size)


def _get_into(done: Round) -> None:
    into, loop = _memory(), _loop()
    with done.clock:
        loop.run_until_complete(_filled(into))
    done.received(WORK.key, into)
    done.objects = 1


MODES = {"get": _get, "get-into": _get_into}

if __name__ == "__main__":
    step_protocol.serve(WORK, MODES)
