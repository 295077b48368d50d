"""boto3 on a workload of the lab, with its default transfer settings.

Large files go through the transfer manager (``upload_file``, ``download_file``,
``download_fileobj``); many small objects through a pool of as many threads as
the transfer manager's own default, one call an object, as boto3's users write it.
Speaks the lab's step protocol: ``ready``, then one JSON line per ``go``.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import io
import json
import os
import resource
import sys
import time
from pathlib import Path

import boto3
import botocore.config
from boto3.s3.transfer import TransferConfig

THREADS = TransferConfig().max_concurrency


def _upload(client, work) -> tuple[int, int]:
    def one(path: Path) -> int:
        client.upload_file(str(path), work.bucket, work.prefix + path.name)
        return path.stat().st_size

    paths = [path for path in _sources(work) if path.is_file()]
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        sizes = list(pool.map(one, paths))
    return sum(sizes), len(sizes)


def _download(client, work) -> tuple[int, int]:
    target = Path(work.path)
    target.mkdir(parents=True, exist_ok=True)

    def one(key: str) -> int:
        to = target / key.rpartition("/")[2]
        client.download_file(work.bucket, key, str(to))
        return to.stat().st_size

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        sizes = list(pool.map(one, _keys(work)))
    return sum(sizes), len(sizes)


def _memory(client, work) -> tuple[int, int]:
    if not work.count:
        into = io.BytesIO()
        client.download_fileobj(work.bucket, work.prefix, into)
        # Ranges land out of order: the position is that of the last one to land.
        return into.getbuffer().nbytes, 1

    def one(key: str) -> int:
        return len(client.get_object(Bucket=work.bucket, Key=key)["Body"].read())

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        sizes = list(pool.map(one, _keys(work)))
    return sum(sizes), len(sizes)


def _list(client, work) -> tuple[int, int]:
    found = 0
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=work.bucket, Prefix=work.prefix)
    for page in pages:
        for entry in page.get("Contents", ()):
            found += bool(entry["Key"] and entry["ETag"] and entry["Size"] >= 0)
    return 0, found


MODES = {"upload": _upload, "download": _download, "memory": _memory, "list": _list}


def _keys(work) -> list[str]:
    if not work.count:
        return [work.prefix]
    return [f"{work.prefix}{n:0{work.digits}d}{work.suffix}" for n in range(work.count)]


def _sources(work) -> list[Path]:
    root = Path(work.path)
    if not work.count:
        return [root]
    return [root / f"{n:0{work.digits}d}{work.suffix}" for n in range(work.count)]


def _peak_rss_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmHWM in /proc/self/status")


def _cpu() -> tuple[float, float]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime, usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--prefix", default="", help="the key, or with --count the keys' beginning")
    parser.add_argument("--suffix", default="", help="what follows the number in a key")
    parser.add_argument("--digits", type=int, default=8)
    parser.add_argument("--count", type=int, default=0, help="objects; 0 for the one named")
    parser.add_argument("--path", help="file or folder to upload, folder to download into")
    parser.add_argument("--step", action="store_true")
    work = parser.parse_args()

    session = boto3.session.Session(
        aws_access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        region_name=os.environ.get("AWS_REGION", "us-east-1"),
    )
    config = botocore.config.Config(
        s3={"addressing_style": "path"}, max_pool_connections=THREADS, retries={"max_attempts": 1}
    )
    client = session.client("s3", endpoint_url=work.endpoint, config=config)
    requests: collections.deque[None] = collections.deque()
    client.meta.events.register("before-send.s3", lambda **_: requests.append(None))

    def once() -> dict:
        requests.clear()
        before, start = _cpu(), time.perf_counter()
        moved, objects = MODES[work.mode](client, work)
        seconds, after = time.perf_counter() - start, _cpu()
        return {
            "seconds": seconds,
            "bytes": moved,
            "objects": objects,
            "requests": len(requests),
            "user_s": after[0] - before[0],
            "system_s": after[1] - before[1],
            "peak_rss_bytes": _peak_rss_bytes(),
        }

    if not work.step:
        rounds = [once()]
        settings = {"client": "boto3", "version": boto3.__version__, "threads": THREADS}
        print(json.dumps({"operation": work.mode, "rounds": rounds, "config": settings}))
        return
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() != "go":
            sys.exit("standard input takes lines that say go")
        print(json.dumps(once()), flush=True)


if __name__ == "__main__":
    main()
