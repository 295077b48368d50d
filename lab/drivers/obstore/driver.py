"""obstore: whole objects, ranges, listings.

``get`` is one request, as obstore makes it. ``get-parallel`` is the same object as ranges
from a pool of threads, each copied to its place in memory that is used over and over: what
a user would write who wants more than one connection. ``ranges`` sets ``coalesce`` to the
gap (the fsspec layer ignores ``max_gap``, so it is not what is measured).
"""

from __future__ import annotations

import concurrent.futures
import functools

import obstore
import step_protocol
from obstore.store import S3Store
from step_protocol import Round, parts, scattered

WORK = step_protocol.arguments(
    __doc__, ("get", "get-parallel", "ranges", "list-keys", "list-columns")
)
STORE = S3Store(
    WORK.bucket,
    endpoint=WORK.endpoint,
    virtual_hosted_style_request=False,
    client_options={"allow_http": True, "timeout": "120s"},
)
#: A page of the service.
PAGE = 1000


def _get(done: Round) -> None:
    with done.clock:
        body = obstore.get(STORE, WORK.key).bytes()
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

    def one(part: tuple[int, int]) -> None:
        start, end = part
        into[start:end] = memoryview(obstore.get_range(STORE, WORK.key, start=start, end=end))

    with done.clock:
        for _ in pool.map(one, parts(WORK)):
            pass
    done.received(WORK.key, into)
    done.objects = 1


def _ranges(done: Round) -> None:
    ranges = scattered(WORK)
    with done.clock:
        pieces = obstore.get_ranges(
            STORE,
            WORK.key,
            starts=[start for start, _ in ranges],
            ends=[end for _, end in ranges],
            coalesce=WORK.gap,
        )
    for (start, _), piece in zip(ranges, pieces, strict=True):
        done.received(WORK.key, piece, start)
    done.objects = len(pieces)
    with done.clock:
        del pieces


def _list_keys(done: Round) -> None:
    with done.clock:
        pages = obstore.list(STORE, WORK.prefix, chunk_size=PAGE)
        keys = [entry["path"] for page in pages for entry in page]
    done.listed(keys)
    with done.clock:
        del keys


def _list_columns(done: Round) -> None:
    with done.clock:
        batch = obstore.list(STORE, WORK.prefix, chunk_size=PAGE, return_arrow=True).collect()
    done.listed([key.as_py() for key in batch["path"]])
    with done.clock:
        del batch


MODES = {
    "get": _get,
    "get-parallel": _get_parallel,
    "ranges": _ranges,
    "list-keys": _list_keys,
    "list-columns": _list_columns,
}

if __name__ == "__main__":
    step_protocol.serve(WORK, MODES)
