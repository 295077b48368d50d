"""The step protocol around a whole command: one process a round, measured from outside.

    python -m wirespeed_lab.whole --proof PROOF [--cpu N] [--step] -- COMMAND...

The driver itself sleeps while the command runs; CPU time and peak memory are the command's own,
as the kernel counts them when it is reaped. What a round did is proven, not believed, outside the
clock:

``folder:PATH``     the files below PATH, counted and removed again
``stored:URL``      the objects that the embedded server at URL stored
``summary``         the summary that `wirespeed --json` printed last
``lines``           the lines that were printed
``total``           the number of objects in the last line of `wirespeed --json du`
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

from . import measured

#: Seconds that one command may take.
LIMIT = 900
#: What the embedded server calls the requests that make an object.
OBJECTS = ("put", "complete-multipart")


class NotProven(Exception):
    """What the command did can't be told; the text says why."""


def folder(path: Path) -> tuple[int, int]:
    """Bytes and number of the files below the folder, which is emptied."""
    total = count = 0
    for root, _, names in os.walk(path):
        for name in names:
            total += os.lstat(os.path.join(root, name)).st_size
            count += 1
    shutil.rmtree(path, ignore_errors=True)
    return total, count


def stats(endpoint: str) -> dict:
    with urllib.request.urlopen(f"{endpoint}/-/stats", timeout=10) as answer:
        return json.load(answer)


def last_record(output: str) -> dict:
    """The last line of JSON in the output. Raises NotProven."""
    for line in reversed(output.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    raise NotProven(f"the output ends with no JSON: {output[-200:]!r}")


class Proof:
    """What a command moved, by one of the ways above."""

    def __init__(self, text: str, size: int):
        kind, _, where = text.partition(":")
        ways: dict[str, Callable[[str], tuple[int, int]]] = {
            "folder": lambda _: folder(Path(where)),
            "stored": self._stored,
            "summary": lambda output: _fields(output, "bytes", "objects"),
            "lines": lambda output: (0, int(output)),
            "total": lambda output: (0, _fields(output, "bytes", "objects")[1]),
        }
        if kind not in ways:
            raise NotProven(f"no way {kind!r} to prove what was done; there are {', '.join(ways)}")
        self._way, self._where, self._size = ways[kind], where, size
        self.counts_lines = kind == "lines"
        self._before: dict = {}
        if kind == "folder":
            shutil.rmtree(where, ignore_errors=True)

    def begin(self) -> None:
        if self._way == self._stored:
            self._before = stats(self._where)

    def of(self, output: str) -> tuple[int, int]:
        """Bytes and objects."""
        return self._way(output)

    def _stored(self, _: str) -> tuple[int, int]:
        after = stats(self._where)

        def grown(verbs: tuple[str, ...]) -> int:
            return sum(
                after["requests"].get(verb, 0) - self._before["requests"].get(verb, 0)
                for verb in verbs
            )

        objects = grown(OBJECTS)
        received = after["bytes_in"] - self._before["bytes_in"]
        # Heads and chunk signatures come on top of the bytes of the objects.
        if objects and received < objects * self._size:
            raise NotProven(f"{objects} objects of {self._size} bytes, but {received} arrived")
        return objects * self._size, objects


def _fields(output: str, *names: str) -> tuple[int, int]:
    record = last_record(output)
    try:
        first, second = (int(record[name]) for name in names)
    except (KeyError, TypeError, ValueError):
        raise NotProven(
            f"the last record says nothing of {' and '.join(names)}: {record}"
        ) from None
    return first, second


def one_round(command: list[str], cpu: int, proof: Proof) -> dict:
    proof.begin()
    result = measured.run(command, cpu, {}, LIMIT, proof.counts_lines)
    moved, objects = proof.of(str(result.pop("lines" if proof.counts_lines else "output")))
    return {**result, "bytes": moved, "objects": objects, "requests": 0}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="wirespeed_lab.whole",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )
    parser.add_argument("--proof", required=True)
    parser.add_argument("--size", type=int, default=0, help="bytes of each object, for `stored`")
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--step", action="store_true", help="one round for each line `go`")
    parser.add_argument("command", nargs="+")
    chosen = parser.parse_args(argv)
    try:
        proof = Proof(chosen.proof, chosen.size)
        if not chosen.step:
            print(json.dumps(one_round(chosen.command, chosen.cpu, proof)))
            return 0
        print("ready", flush=True)
        for line in sys.stdin:
            if line.strip() != "go":
                print("standard input takes lines that say go", file=sys.stderr)
                return 2
            print(json.dumps(one_round(chosen.command, chosen.cpu, proof)), flush=True)
    except (NotProven, measured.CommandFailed, OSError) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
