"""A driver of no client at all, whose store is the formula: what `lab_protocol` does by itself.

fake_client.py threads|tasks|completions [FAULT] describe|run
"""

import asyncio
import sys
import threading

import lab_protocol
from lab_protocol import formula

FAULT = sys.argv[2] if len(sys.argv) > 3 else ""


def body(operation):
    if operation.key == "absent":
        raise LookupError("there is no such key")
    item = operation.item
    if item.first is None:
        found = formula(item.key, item.size)
    else:
        found = formula(item.key, item.end)[item.first :]
    return found[:-1] if FAULT == "short" else found


def take(operation, found):
    if operation.plan.sink == "memory":
        operation.whole(found)
    else:
        for at in range(0, len(found), 1000):
            operation.part(found[at : at + 1000])


class Threads:
    def __init__(self, plan):
        self.plan = plan
        if FAULT == "skips":
            raise lab_protocol.Skip("it does not feel like it")
        if FAULT == "prints":
            print("a library that greets", flush=True)

    def get(self, operation):
        take(operation, body(operation))

    def put(self, operation):
        if not self.plan.files:
            assert self.plan.body(operation.item.size) == formula("body", operation.item.size)
        operation.sent()

    def list(self, operation):
        prefix = operation.item.prefix
        operation.listed([f"{prefix}{n:02d}" for n in range(7)])
        operation.listed(f"{prefix}{n:02d}" for n in range(7, 10))

    def effective(self):
        return {"concurrency": self.workers}


class Tasks(Threads):
    async def get(self, operation):
        await asyncio.sleep(0)
        take(operation, body(operation))


class Completions(Threads):
    completes = True

    def get(self, operation):
        found, completed = body(operation), operation.completed

        def later():
            take(operation, found)
            completed()
            completed(RuntimeError("told twice"))

        threading.Thread(target=later).start()


if __name__ == "__main__":
    kind = {"threads": Threads, "tasks": Tasks, "completions": Completions}[sys.argv[1]]
    lab_protocol.main({"name": "fake", "client": "fake", "version": "1"}, kind)
