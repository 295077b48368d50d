"""s3fs, as its users call it: ``cat_file``, ``cat_ranges``, ``find``.

s3fs refuses ``max_gap``; what its users have for ranges that lie close to each other is
fsspec's own `merge_offset_ranges`, so with ``--gap`` the ranges are merged by it and cut out
of what came, inside the clock. Listings are made afresh each time.
"""

from __future__ import annotations

import bisect
import os

import fsspec.utils
import s3fs
import step_protocol
from step_protocol import Round, scattered

WORK = step_protocol.arguments(__doc__, ("get", "ranges", "list-keys", "list-columns"))
SYSTEM = s3fs.S3FileSystem(
    key=os.environ["AWS_ACCESS_KEY_ID"],
    secret=os.environ["AWS_SECRET_ACCESS_KEY"],
    endpoint_url=WORK.endpoint,
    client_kwargs={"region_name": os.environ.get("AWS_REGION", "us-east-1")},
    config_kwargs={"s3": {"addressing_style": "path"}, "max_pool_connections": WORK.connections},
    use_listings_cache=False,
    skip_instance_cache=True,
)
PATH = f"{WORK.bucket}/{WORK.key}"


def _get(done: Round) -> None:
    with done.clock:
        body = SYSTEM.cat_file(PATH)
    done.received(WORK.key, body)
    done.objects = 1
    with done.clock:
        del body


def _cat_ranges(ranges: list[tuple[int, int]]) -> list[bytes]:
    starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
    paths = [PATH] * len(ranges)
    merged = fsspec.utils.merge_offset_ranges(paths, starts, ends, max_gap=WORK.gap, sort=True)
    blocks = SYSTEM.cat_ranges(*merged, batch_size=WORK.connections, on_error="raise")
    found = []
    for start, end in ranges:
        block = bisect.bisect_right(merged[1], start) - 1
        at = start - merged[1][block]
        found.append(blocks[block][at : at + end - start])
    return found


def _ranges(done: Round) -> None:
    ranges = scattered(WORK)
    with done.clock:
        pieces = _cat_ranges(ranges)
    for (start, _), piece in zip(ranges, pieces, strict=True):
        done.received(WORK.key, piece, start)
    done.objects = len(pieces)
    with done.clock:
        del pieces


def _found(detail: bool):
    SYSTEM.invalidate_cache()
    return SYSTEM.find(f"{WORK.bucket}/{WORK.prefix}", detail=detail)


def _list_keys(done: Round) -> None:
    with done.clock:
        paths = _found(detail=False)
    done.listed([path.removeprefix(f"{WORK.bucket}/") for path in paths])
    with done.clock:
        del paths


def _list_columns(done: Round) -> None:
    with done.clock:
        entries = _found(detail=True).values()
        columns = {
            name: [entry[name] for entry in entries]
            for name in ("Key", "size", "LastModified", "ETag")
        }
    done.listed([path.removeprefix(f"{WORK.bucket}/") for path in columns["Key"]])
    with done.clock:
        del entries, columns


MODES = {"get": _get, "ranges": _ranges, "list-keys": _list_keys, "list-columns": _list_columns}

if __name__ == "__main__":
    step_protocol.serve(WORK, MODES)
