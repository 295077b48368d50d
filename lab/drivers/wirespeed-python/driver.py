"""The Python package itself, on every work that it is asked figures for.

`get` returns a Buffer over the client's pooled memory, which goes back to the pool inside
the clock, as it does in the Rust engine's own rounds; `get-into` fills one numpy array over
and over. ``requests`` is what the client itself counted.
"""

from __future__ import annotations

import functools
import os

import step_protocol
from step_protocol import Round, numbered, scattered

import wirespeed

WORK = step_protocol.arguments(
    __doc__,
    (
        *(
            "get",
            "get-warmed",
            "on-part",
            "get-into",
            "many",
            "many-completed",
            "many-bytes",
            "many-into",
        ),
        *("ranges", "ranges-fsspec", "list-keys", "list-columns", "list-objects"),
    ),
)
CLIENT = wirespeed.Client(
    endpoint_url=WORK.endpoint,
    concurrency=WORK.connections,
    part_size=WORK.part,
    **({"memory": WORK.memory} if WORK.memory else {}),
)
MODES: dict[str, step_protocol.Modes] = {}


def mode(name: str):
    """Registers a mode; counts the requests of each of its rounds."""

    def register(run):
        @functools.wraps(run)
        def counted(done: Round) -> None:
            before = CLIENT.metrics()["requests"]
            run(done)
            done.requests = CLIENT.metrics()["requests"] - before

        MODES[name] = counted
        return run

    return register


@functools.cache
def _array(size: int):
    """Memory of the caller's, touched once."""
    import numpy

    return numpy.ones(size, dtype=numpy.uint8)


@mode("get")
def _get(done: Round) -> None:
    with done.clock:
        body = CLIENT.get(WORK.key, bucket=WORK.bucket)
    done.received(WORK.key, body)
    done.objects = 1
    with done.clock:
        del body


@mode("get-warmed")
def _get_warmed(done: Round) -> None:
    """Beside slow clients: the pool gives back what was idle for ten seconds, and the turns of
    the others take longer."""
    CLIENT.get(WORK.key, bucket=WORK.bucket)
    _get(done)


@mode("on-part")
def _on_part(done: Round) -> None:
    arrived = 0

    def count(offset: int, part: memoryview) -> None:
        nonlocal arrived
        arrived += len(part)

    def check(offset: int, part: memoryview) -> None:
        done.received(WORK.key, part, offset)

    with done.clock:
        CLIENT.get(WORK.key, bucket=WORK.bucket, on_part=check if done.first else count)
    if not done.first:
        done.bytes = arrived
    done.objects = 1


@mode("get-into")
def _get_into(done: Round) -> None:
    into = _array(WORK.size)
    if done.first:
        into[:] = 0
    with done.clock:
        CLIENT.get_into(WORK.key, into, bucket=WORK.bucket)
    done.received(WORK.key, into)
    done.objects = 1


@mode("many")
def _many(done: Round) -> None:
    keys = numbered(WORK)
    with done.clock:
        bodies = CLIENT.get_many(keys, bucket=WORK.bucket)
    done.received_objects(keys, bodies)
    with done.clock:
        del bodies


@mode("many-completed")
def _many_completed(done: Round) -> None:
    keys = numbered(WORK)
    moved = seen = 0
    with done.clock:
        for index, body in CLIENT.get_many(keys, bucket=WORK.bucket, as_completed=True):
            moved += len(body)
            seen += 1
            if done.first:
                done.received(keys[index], body)
    done.bytes, done.objects = moved, seen


@mode("many-bytes")
def _many_bytes(done: Round) -> None:
    keys = numbered(WORK)
    with done.clock:
        bodies = CLIENT.get_many(keys, bucket=WORK.bucket, as_bytes=True)
    done.received_objects(keys, bodies)
    with done.clock:
        del bodies


@mode("many-into")
def _many_into(done: Round) -> None:
    keys = numbered(WORK)
    memory = memoryview(_array(WORK.size * WORK.count))
    with done.clock:
        slots = [memory[at : at + WORK.size] for at in range(0, len(memory), WORK.size)]
        CLIENT.get_many(keys, bucket=WORK.bucket, into=slots)
    done.received_objects(keys, slots)


@mode("ranges")
def _ranges(done: Round) -> None:
    ranges = scattered(WORK)
    with done.clock:
        pieces = CLIENT.get_ranges(WORK.key, ranges, bucket=WORK.bucket, max_gap=WORK.gap)
    for (start, _), piece in zip(ranges, pieces, strict=True):
        done.received(WORK.key, piece, start)
    done.objects = len(pieces)
    with done.clock:
        del pieces


@functools.cache
def _file_system():
    from wirespeed.fsspec import WirespeedFileSystem

    return WirespeedFileSystem(
        key=os.environ["AWS_ACCESS_KEY_ID"],
        secret=os.environ["AWS_SECRET_ACCESS_KEY"],
        endpoint_url=WORK.endpoint,
        concurrency=WORK.connections,
    )


def _ranges_fsspec(done: Round) -> None:
    ranges = scattered(WORK)
    system, path = _file_system(), f"{WORK.bucket}/{WORK.key}"
    starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
    with done.clock:
        pieces = system.cat_ranges([path] * len(ranges), starts, ends, max_gap=WORK.gap)
    for (start, _), piece in zip(ranges, pieces, strict=True):
        done.received(WORK.key, piece, start)
    done.objects = len(pieces)
    with done.clock:
        del pieces


# Its client is the file system's own: what was sent is seen by the server alone.
MODES["ranges-fsspec"] = _ranges_fsspec


@mode("list-keys")
def _list_keys(done: Round) -> None:
    with done.clock:
        keys = CLIENT.list(WORK.prefix, bucket=WORK.bucket).keys()
    done.listed(keys)
    with done.clock:
        del keys


@mode("list-columns")
def _list_columns(done: Round) -> None:
    import pyarrow

    with done.clock:
        table = pyarrow.record_batch(CLIENT.list(WORK.prefix, bucket=WORK.bucket).table())
    done.listed(table.column("key").to_pylist())
    with done.clock:
        del table


@mode("list-objects")
def _list_objects(done: Round) -> None:
    with done.clock:
        keys = [entry.key for entry in CLIENT.list(WORK.prefix, bucket=WORK.bucket)]
    done.listed(keys)
    with done.clock:
        del keys


if __name__ == "__main__":
    step_protocol.serve(WORK, MODES)
