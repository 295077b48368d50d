"""Half a minute of small work in many threads: ``threads`` in this process, ``forks`` in
workers that are forked after this process has used the client itself.

Prints one JSON object: how many objects arrived, every error, and the resident size of each
process, looked at twice a second.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import sys
import threading
import time
from pathlib import Path

import step_protocol
import synthetic_bytes
from step_protocol import numbered

import wirespeed

LOOK_EVERY = 0.5
#: Seconds that a thread may take beyond its time.
PATIENCE = 30
#: As many errors as are told one by one.
TOLD = 20


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _work(work, client: wirespeed.Client, seed: int, until: float, say) -> None:
    chance = random.Random(seed)
    keys = numbered(work)
    moved = 0
    try:
        while time.monotonic() < until:
            key = chance.choice(keys)
            body = client.get(key, bucket=work.bucket)
            wrong = synthetic_bytes.first_difference(key, memoryview(body), 0, every=False)
            if wrong is not None or len(body) != work.size:
                say(f"{key}: {len(body)} bytes, wrong from {wrong} on")
            moved += 1
    except Exception as error:
        say(f"{type(error).__name__}: {error}")
    finally:
        say(moved)


def _run(work, client: wirespeed.Client, threads: int, seed: int) -> dict:
    until = time.monotonic() + work.seconds
    said: list[object] = []
    running = [
        threading.Thread(
            target=_work, args=(work, client, seed * 10_000 + n, until, said.append), daemon=True
        )
        for n in range(threads)
    ]
    for thread in running:
        thread.start()
    resident = []
    while time.monotonic() < until:
        time.sleep(LOOK_EVERY)
        resident.append(_resident_bytes())
    for thread in running:
        thread.join(PATIENCE)
    errors = [each for each in said if isinstance(each, str)]
    errors += ["a thread hangs" for thread in running if thread.is_alive()]
    moved = sum(each for each in said if isinstance(each, int))
    return {"objects": moved, "errors": errors[:TOLD], "resident_bytes": [resident]}


def _worker(work, client: wirespeed.Client, seed: int, answers) -> None:
    answers.put(_run(work, client, work.threads // work.workers, seed))


def _forks(work, client: wirespeed.Client) -> dict:
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    workers = [
        context.Process(target=_worker, args=(work, client, seed, answers), daemon=True)
        for seed in range(work.workers)
    ]
    for worker in workers:
        worker.start()
    found = [answers.get(timeout=work.seconds + PATIENCE) for _ in workers]
    for worker in workers:
        worker.join(PATIENCE)
    whole = {
        name: [each for answer in found for each in answer[name]]
        for name in ("errors", "resident_bytes")
    }
    whole["errors"] += [f"a worker ended with {w.exitcode}" for w in workers if w.exitcode != 0]
    return {"objects": sum(answer["objects"] for answer in found), **whole}


def main() -> None:
    parser = step_protocol.parser(__doc__, ("threads", "forks"))
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--workers", type=int, default=8)
    work = parser.parse_args()
    client = wirespeed.Client(
        endpoint_url=work.endpoint, concurrency=work.connections, part_size=work.part
    )
    # Before the fork: what a child must not inherit is there.
    client.get(numbered(work)[0], bucket=work.bucket)
    if work.mode == "threads":
        result = _run(work, client, work.threads, 0)
    else:
        result = _forks(work, client)
        client.get(numbered(work)[0], bucket=work.bucket)
    if result["objects"] == 0:
        result["errors"].append("not one object arrived")
    print(json.dumps(result))
    sys.exit(0)


if __name__ == "__main__":
    main()
