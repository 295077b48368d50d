"""A driver that moves nothing and says it did, so that sessions can be tested without a server.

What it is to do wrong is in PRETEND: die=N (in round N), lie=N (a wrong digest or size), fail=N
(an item with an error), slow=SECONDS a round, burn=SECONDS of CPU a round, skip, own=N (says
that N are in flight), hold=MIB of memory, without=SETTING.
"""

import json
import os
import sys
import time
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "drivers" / "python"))

import synthetic_bytes

SETTINGS = ("concurrency", "part_size", "checksums", "listing")
WRONG = dict(part.partition("=")[::2] for part in os.environ.get("PRETEND", "").split())


def say(**line):
    print(json.dumps(line), flush=True)


def describe():
    say(
        type="describe",
        protocol=1,
        name="pretending",
        client="pretending",
        version="1.2.3",
        language="python",
        components={},
        operations=["get", "put", "list"],
        sinks=["discard", "memory", "stream", "file"],
        sources=["memory", "file"],
        settings=[name for name in SETTINGS if name != WRONG.get("without")],
        tls=True,
    )


def digest(plan, item):
    if plan["operation"] == "put":
        return f"{zlib.crc32(synthetic_bytes.expected('body', 0, item['size'])):08x}"
    first, end = item.get("range", (0, item["size"]))
    return f"{zlib.crc32(synthetic_bytes.expected(item['key'], first, end - first)):08x}"


def one_round(plan, number, verify):
    if WRONG.get("die") == str(number):
        sys.exit("pretended to crash")
    start = time.monotonic_ns()
    until = time.process_time() + float(WRONG.get("burn", 0))
    while time.process_time() < until:
        pass
    time.sleep(float(WRONG.get("slow", 0)))
    held = bytearray(int(WRONG.get("hold", 0)) << 20)
    samples = []
    for n, item in enumerate(plan["work"]):
        began = time.monotonic_ns()
        first, end = item.get("range", (0, item["size"]))
        sample = {"n": n, "worker": 0, "start_ns": began, "first_ns": began}
        sample["bytes"] = end - first + (WRONG.get("lie") == str(number))
        sample["error"] = "SlowDown" if WRONG.get("fail") == str(number) else None
        if plan["sink"] == "file":
            body = synthetic_bytes.expected(item["key"], first, end - first)
            Path(plan["folder"], str(n)).write_bytes(body)
        sample["end_ns"] = time.monotonic_ns()
        samples.append(sample)
    stop = time.monotonic_ns()
    del held
    for sample, item in zip(samples, plan["work"], strict=True):
        if verify:
            sample["digest"] = digest(plan, item)
        say(type="sample", **sample)
    effective = {"concurrency": int(WRONG.get("own", plan["concurrency"] or 1)), "part_size": None}
    say(type="done", round=number, start_ns=start, end_ns=stop, effective=effective)


def main():
    if sys.argv[1:] == ["describe"]:
        return describe()
    plan = json.loads(sys.stdin.readline())
    if "skip" in WRONG:
        say(type="skip", reason="pretends that it can't")
        sys.exit(77)
    say(type="ready")
    for line in sys.stdin:
        order = json.loads(line)
        one_round(plan, order["round"], order["verify"])


main()
