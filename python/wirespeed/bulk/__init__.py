"""Jobs of many objects over many processes and machines.

    from wirespeed import bulk

    report = bulk.sync("s3://bucket/photos", "/shared/photos", workers=4)

A job is cut into shards, ranges of keys of about the same work, which run in worker processes of
this machine, or wherever an executor of `concurrent.futures` takes them; `wirespeed.dask` runs the
same shards on a cluster. A shard that is run again, because its worker died, comes to the same as
one that is run once: nothing is lost and nothing is there twice.

One process moves what one machine can: `wirespeed.download` and `upload`, or the command line, need
none of this.
"""

from __future__ import annotations

from .jobs import BulkError, Options, copy, plan, run, sync
from .shards import FailedItem, Progress, Report, Shard, ShardResult, merge, run_shard

__all__ = [
    "BulkError",
    "FailedItem",
    "Options",
    "Progress",
    "Report",
    "Shard",
    "ShardResult",
    "copy",
    "merge",
    "plan",
    "run",
    "run_shard",
    "sync",
]
