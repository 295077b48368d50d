"""Command lines that know no protocol: `drive_cli TOOL PROGRAM describe | run`.

A round of gets or puts is one command on a whole tree, as its users call it, and one sample of all
items: files below a common prefix, or the one object that the plan has. Each listing is a command.
While it runs this process sleeps. What it did is looked at when the clock has stopped: files are
counted, and moved to the names that the plan has for them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import lab_protocol
from command_lines import TOOLS, Tool
from lab_protocol import Operation, Plan

#: Of what a command said on standard error, so many characters are told.
TOLD = 500


class Cli:
    def __init__(self, plan: Plan, tool: Tool):
        if any(item.first is not None for item in plan.work):
            raise lab_protocol.Skip(f"{tool.name} copies whole objects, no ranges")
        self._plan, self._tool = plan, tool
        self._environment = {**os.environ, **tool.environment()}
        self._child: subprocess.Popen | None = None
        signal.signal(signal.SIGTERM, self._end)
        #: The prefix that is the tree's root; of one object its key.
        self._root = _root(plan, tool.single)
        if plan.operation != "list":
            # Of its own: other drivers have theirs in the same folder. One that was killed left it.
            self._tree = Path(plan.folder or "") / f".{plan.operation}-{os.getpid()}"
            for left in self._tree.parent.glob(f".{plan.operation}-*"):
                if not Path("/proc", left.name.rpartition("-")[2]).exists():
                    shutil.rmtree(left, ignore_errors=True)
        if plan.operation == "put":
            # The lab's numbered files under the names that their keys have, without a copy.
            for operation in (Operation(plan, item, False) for item in plan.work):
                place = self._place(operation)
                place.parent.mkdir(parents=True, exist_ok=True)
                os.link(operation.path, place)

    def _place(self, operation: Operation) -> Path:
        return self._tree if self._tool.single else self._tree / operation.key[len(self._root) :]

    def together(self, name: str, operations: list[Operation]):
        """Runs the round; returns what looks at it afterwards and gives the samples."""
        if name == "list":
            return self._lists(operations)
        start = time.monotonic_ns()
        if name == "get":
            shutil.rmtree(self._tree, ignore_errors=True)
            error = self._run(self._tool.get(self._root, str(self._tree)))
        else:
            error = self._run(self._tool.put(str(self._tree), self._root))
        end = time.monotonic_ns()

        def samples() -> list[dict]:
            return [_sample(operations, start, end, error or self._moved(name, operations))]

        return samples

    def _moved(self, name: str, operations: list[Operation]) -> str | None:
        """Takes each file to where the plan has it. What is wrong with them, or None."""
        if name == "put":
            for operation in operations:
                operation.bytes = operation.item.size
            return None
        lost = []
        for operation in operations:
            try:
                os.replace(self._place(operation), operation.path)
                operation.bytes = os.stat(operation.path).st_size
            except OSError:
                lost.append(operation.key)
        more = 0 if self._tool.single else sum(len(files) for _, _, files in os.walk(self._tree))
        shutil.rmtree(self._tree, ignore_errors=True)
        if lost:
            return f"{len(lost)} of {len(operations)} objects did not arrive, first {lost[0]!r}"
        return f"{more} files came that the plan does not have" if more else None

    def _lists(self, operations: list[Operation]):
        said = []
        for operation in operations:
            out = tempfile.TemporaryFile()  # noqa: SIM115 (closed when looked at)
            operation.start_ns = time.monotonic_ns()
            error = self._run(self._tool.list(operation.item.prefix), out)
            operation.end_ns = time.monotonic_ns()
            said.append((operation, out, error))

        def samples() -> list[dict]:
            for operation, out, error in said:
                out.seek(0)
                lines = out.read().decode().splitlines()
                out.close()
                prefix = operation.item.prefix
                keys = [self._tool.key(line, prefix) for line in lines if line]
                operation.listed(keys if self._tool.ordered else sorted(keys, key=str.encode))
                # Tools differ in whether it is an error that there is nothing.
                operation.error = error if error and (keys or operation.item.keys) else None
                if operation.error is None and operation.item.keys not in (0, operation.keys):
                    operation.error = f"listed {operation.keys} keys, not {operation.item.keys}"
            return [operation.sample() for operation in operations]

        return samples

    def _run(self, command: list[str], out=subprocess.DEVNULL) -> str | None:
        """Why the command failed, or None."""
        with tempfile.TemporaryFile() as errors:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                env=self._environment,
            )
            code = self._child.wait()
            self._child = None
            if not code:
                return None
            errors.seek(0)
            text = errors.read().decode(errors="replace").strip()
            return f"{command[0]} ended with {code}: {text[-TOLD:]}"

    def _end(self, *_: object) -> None:
        if self._child:
            self._child.kill()
        os._exit(128 + signal.SIGTERM)

    def effective(self) -> dict:
        return self._tool.effective()

    def close(self) -> None:
        if self._plan.operation != "list":
            shutil.rmtree(self._tree, ignore_errors=True)


def _root(plan: Plan, single: bool) -> str:
    """What all keys begin with, up to and with a slash."""
    if plan.listing is not None:
        return plan.listing
    if single:
        return plan.work[0].key
    # Of texts in order the first and the last have in common what all have.
    first, last = min(item.key for item in plan.work), max(item.key for item in plan.work)
    root = first[: first.rfind("/") + 1]
    while not last.startswith(root):
        root = root[: root.rfind("/", 0, -1) + 1]
    return root


def _sample(operations: list[Operation], start: int, end: int, error: str | None) -> dict:
    first = operations[0]
    said = {
        "type": "sample",
        "n": 0,
        "worker": None,
        "start_ns": start,
        "first_ns": None,
        "end_ns": end,
        "bytes": sum(operation.bytes for operation in operations),
        "error": error,
        "count": len(operations),
    }
    wanted = sum(operation.item.size for operation in operations)
    if not error and said["bytes"] != wanted:
        said["error"] = f"{said['bytes']} bytes, not {wanted}"
    if first.verify and not said["error"]:
        digest = 0
        for operation in operations:
            with open(operation.path, "rb") as file:
                while piece := file.read(lab_protocol.PIECE):
                    digest = zlib.crc32(piece, digest)
        said["digest"] = f"{digest:08x}"
    return said


def main() -> None:
    if len(sys.argv) != 4 or sys.argv[1] not in TOOLS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(TOOLS)} PROGRAM describe|run")
    kind, program = TOOLS[sys.argv[1]], sys.argv[2]
    version, components = "unasked", {}
    try:
        if sys.argv[3] == "describe":
            version, components = kind.version(program), kind.components(program)
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"{program} does not tell its version: {error}")
    lab_protocol.main(
        {
            "name": kind.name,
            "client": kind.client,
            "version": version,
            "language": "cli",
            "components": components,
            "sinks": ["file"],
            "sources": ["file"],
            "settings": list(kind.settings),
        },
        lambda plan: Cli(plan, kind(program, plan)),
    )


if __name__ == "__main__":
    main()
