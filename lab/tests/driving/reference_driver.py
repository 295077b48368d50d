"""A driver of the protocol in its simplest form: http.client, one connection a worker, unsigned.

With ``--lie KIND`` it breaks the protocol in one way, for tests of what catches it.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import sys
import threading
import time
import urllib.parse
import zlib
from pathlib import Path

import synthetic_bytes

VERSION = 1
CHUNK = 1 << 18
LIE = sys.argv[sys.argv.index("--lie") + 1] if "--lie" in sys.argv else ""
DESCRIPTION = {
    "type": "describe",
    "protocol": 1,
    "name": "reference",
    "client": "http.client",
    "version": ".".join(map(str, sys.version_info[:3])),
    "language": "python",
    "components": {},
    "operations": ["get", "put", "list"],
    "sinks": ["discard", "memory", "stream", "file"],
    "sources": ["memory", "file"],
    "settings": ["concurrency", "listing"],
    "tls": False,
}


def say(**said) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def body(size: int) -> bytes:
    pieces = range(0, size, synthetic_bytes.PERIOD)
    return b"".join(
        synthetic_bytes.expected("body", at, min(synthetic_bytes.PERIOD, size - at))
        for at in pieces
    )


class Worker:
    """One connection, and the items that it takes from those left."""

    def __init__(self, number: int, plan: dict):
        self.number, self.plan = number, plan
        self.host = urllib.parse.urlsplit(plan["endpoint"]).netloc
        self.connection = http.client.HTTPConnection(self.host)

    def work(self, left, samples: dict, verify: bool) -> None:
        for n, item in left:
            sample = {"type": "sample", "n": n, "worker": self.number, "error": None}
            sample |= {"start_ns": time.monotonic_ns(), "first_ns": None, "bytes": 0}
            try:
                getattr(self, self.plan["operation"])(n, item, sample, verify)
            except (OSError, http.client.HTTPException) as error:
                if LIE == "dies-on-error":
                    os._exit(1)
                sample["error"] = str(error) or type(error).__name__
                self.connection.close()
            sample["end_ns"] = time.monotonic_ns()
            samples[n] = sample

    def ask(self, method: str, key: str, headers: dict, data: bytes | None = None, query=""):
        path = f"/{self.plan['bucket']}/{urllib.parse.quote(key)}{query}"
        self.connection.request(method, path, data, headers)
        response = self.connection.getresponse()
        if response.status not in (200, 206):
            raise OSError(f"{response.status}: {response.read(200)!r}")
        return response

    def get(self, n: int, item: dict, sample: dict, verify: bool) -> None:
        headers, wanted = {}, item["size"]
        if "range" in item:
            first, end = item["range"]
            headers, wanted = {"Range": f"bytes={first}-{end - 1}"}, end - first
        if LIE == "cached" and self.plan.get("round", 1) > 1:
            sample["bytes"] = wanted
            return
        response = self.ask("GET", item["key"], headers)
        crc, kept = 0, []
        file = open(Path(self.plan["folder"]) / str(n), "wb") if self.to_file() else None  # noqa: SIM115
        while chunk := response.read(CHUNK):
            sample["first_ns"] = sample["first_ns"] or time.monotonic_ns()
            if LIE == "wrong-bytes" and n == 3 and not sample["bytes"]:
                chunk = bytes([chunk[0] ^ 1]) + chunk[1:]
            sample["bytes"] += len(chunk)
            if verify:
                crc = zlib.crc32(chunk, crc)
            if file:
                file.write(chunk)
            elif self.plan["sink"] == "memory":
                kept.append(chunk)
        if file:
            file.close()
        if sample["bytes"] != wanted:
            raise OSError(f"{sample['bytes']} bytes of {wanted}")
        if verify:
            sample["digest"] = f"{crc:08x}"

    def to_file(self) -> bool:
        return self.plan["sink"] == "file"

    def put(self, n: int, item: dict, sample: dict, verify: bool) -> None:
        data = self.plan["bodies"][item["size"]]
        if self.plan["source"] == "file":
            data = (Path(self.plan["folder"]) / str(n)).read_bytes()
        if LIE == "wrong-bytes" and n == 3:
            data = b"x" + data[1:]
        self.ask("PUT", item["key"], {"Content-Length": str(len(data))}, data).read()
        sample["bytes"] = len(data)
        if verify:
            sample["digest"] = f"{zlib.crc32(data):08x}"

    def list(self, n: int, item: dict, sample: dict, verify: bool) -> None:
        keys = self.listed(item["prefix"])
        if LIE == "wrong-bytes":
            keys[0] = keys[0] + "x"
        if LIE == "missing":
            del keys[3]
        sample["keys"] = len(keys)
        if verify:
            sample["digest"] = f"{zlib.crc32(chr(10).join(keys).encode()):08x}"

    def listed(self, prefix: str) -> list[str]:
        keys, after = [], ""
        while True:
            query = f"?list-type=2&prefix={urllib.parse.quote(prefix, safe='')}{after}"
            text = self.ask("GET", "", {}, None, query).read().decode()
            keys += re.findall("<Key>([^<]*)</Key>", text)
            more = re.search("<NextContinuationToken>([^<]*)<", text)
            if not more:
                return keys
            after = f"&continuation-token={urllib.parse.quote(more[1], safe='')}"


class Left:
    """The items that no worker has taken yet."""

    def __init__(self, items: list):
        self.rest, self.lock = iter(list(enumerate(items))), threading.Lock()

    def __iter__(self):
        while True:
            with self.lock:
                one = next(self.rest, None)
            if one is None:
                return
            yield one


def run_round(plan: dict, workers: list[Worker], order: dict) -> None:
    number, verify = order["round"], order["verify"]
    plan["round"] = number
    samples: dict[int, dict] = {}
    items, start = plan["work"], time.monotonic_ns()
    if plan["listing"] and LIE != "unlisted":
        found = workers[0].listed(plan["listing"])
        if found != [item["key"] for item in items]:
            raise SystemExit("the listing has found something else")
    left = Left(items[:-2] if LIE == "missing" and plan["operation"] != "list" else items)
    threads = [
        threading.Thread(target=worker.work, args=(left, samples, verify)) for worker in workers
    ]
    for thread in threads:
        thread.start()
    if LIE == "death" and number:
        os.kill(os.getpid(), signal.SIGKILL)
    for thread in threads:
        thread.join()
    end = time.monotonic_ns()
    say(type="stopped", round=number)
    misbehave(number)
    for n in sorted(samples):
        say(**samples[n])
        if LIE == "doubled" and n == 1:
            say(**samples[n])
        if LIE == "death-in-the-middle" and n == 1:
            sys.exit("fell over")
    if LIE == "early-finish":
        end = start + (end - start) // 2
    claimed = plan["concurrency"] or 4
    effective = {"concurrency": claimed, "part_size": None, "checksums": False}
    if LIE == "admitted":
        effective["concurrency"] = len(workers)
    say(type="done", round=number, start_ns=start, end_ns=end, effective=effective)


def misbehave(number: int) -> None:
    if LIE == "hang" and number:
        time.sleep(3600)
    if LIE == "garbage":
        print("loading...", flush=True)
    if LIE == "flood":
        while True:
            os.write(1, b'{"type":"stopped","round":1}\n' * 4096)
    if LIE == "endless-line":
        while True:
            os.write(1, b"x" * 65536)
    if LIE == "chatter":
        os.write(2, b"something is the matter\n" * 100_000)


def main() -> int:
    if "describe" in sys.argv:
        say(**DESCRIPTION)
        return 0
    try:
        plan = json.loads(sys.stdin.readline())
        if plan["version"] > VERSION and LIE != "any-version":
            raise ValueError(f"version {plan['version']} is newer than {VERSION}")
        if plan["operation"] not in DESCRIPTION["operations"]:
            raise ValueError(f"there is no {plan['operation']}")
        plan["endpoint"].startswith("http")
        for item in plan["work"]:
            item["prefix" if plan["operation"] == "list" else "key"].encode()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"bad plan: {error!r}", file=sys.stderr)
        return 65 if LIE != "wrong-code" else 1
    if plan["sink"] not in DESCRIPTION["sinks"]:
        say(type="skip", reason=f"no sink {plan['sink']}")
        return 77
    if LIE == "skip":
        say(type="skip", reason="not today")
        return 77
    if plan["operation"] == "put":
        plan["bodies"] = {size: body(size) for size in {item["size"] for item in plan["work"]}}
    workers = plan["concurrency"] or 4
    workers = {"more": workers * 2, "fewer": 1, "admitted": 1}.get(LIE, workers)
    made = [Worker(n, plan) for n in range(workers)]
    if LIE == "eager":
        made[0].listed("")
    ready = {"type": "ready"}
    # One write, so that both are there at once.
    early = '\n{"type": "stopped", "round": 1}' if LIE == "too-early" else ""
    print(json.dumps(ready) + early, flush=True)
    if LIE == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        run_round(plan, made, json.loads(line))
    if LIE == "deaf":
        time.sleep(3600)
    return 0


if __name__ == "__main__":
    sys.exit(main())
