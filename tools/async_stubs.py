"""Writes the awaitable half of the stub from the blocking one.

    python tools/async_stubs.py [--check]

Owns the verbs of `AsyncClient` in `python/wirespeed/_wirespeed.pyi`: those between its two marks
are those of `Client` between the same marks, with the same arguments and an awaitable result, so
that neither view can have a verb or a keyword that the other lacks. With `--check` nothing is
written, and the exit status says whether something would be.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

STUB = Path(__file__).resolve().parent.parent / "python" / "wirespeed" / "_wirespeed.pyi"
BEGIN = "    # verbs: begin\n"
END = "    # verbs: end\n"
# The types that have a counterpart for `async for`, and whether it must be awaited first:
# a stream's head has been read when it is there, the others have sent nothing yet.
COUNTERPART = {
    "Listing": "AsyncListing",
    "Completions": "AsyncCompletions",
    "Writer": "AsyncWriter",
    "Stream": "Awaitable[AsyncStream]",
}


def awaitable(blocking: str) -> str:
    """The result of the awaitable verb whose blocking form returns `blocking`."""
    name, bracket, arguments = blocking.partition("[")
    if name in COUNTERPART:
        return COUNTERPART[name] + bracket + arguments
    return f"Awaitable[{blocking}]"


def _class_span(source: str, name: str) -> tuple[int, int]:
    """Where the lines of one class begin and end, as offsets into the source."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            # The closing mark is a comment: it belongs to no statement.
            following = re.compile(r"^\S", re.MULTILINE).search(
                source, starts[node.end_lineno or 0]
            )
            return starts[node.lineno - 1], following.start() if following else len(source)
    raise SystemExit(f"{STUB.name}: there is no class `{name}`")


def verbs(source: str, name: str) -> tuple[int, int]:
    """Where the verbs of one class begin and end, between its marks."""
    first, last = _class_span(source, name)
    begin, end = source.find(BEGIN, first, last), source.find(END, first, last)
    if begin < 0 or end < begin:
        raise SystemExit(f"{STUB.name}: `{name}` has no verbs between its marks")
    return begin + len(BEGIN), end


def _awaited(verbs: str) -> str:
    """The same verbs, arguments and docstrings, with awaitable results."""
    lines = verbs.splitlines(keepends=True)
    body = ast.parse("class _:\n" + verbs).body[0]
    assert isinstance(body, ast.ClassDef)
    for node in body.body:
        if not isinstance(node, ast.FunctionDef) or node.returns is None:
            raise SystemExit(f"{STUB.name}: not a verb with a result: {ast.unparse(node)}")
        if node.returns.end_lineno != node.returns.lineno:
            raise SystemExit(f"{STUB.name}: the result of `{node.name}` spans lines")
        # One line was put in front, and ast counts lines from 1 and columns in UTF-8.
        at = node.returns.lineno - 2
        line, first, last = lines[at].encode(), node.returns.col_offset, node.returns.end_col_offset
        result = awaitable(line[first:last].decode())
        lines[at] = (line[:first] + result.encode() + line[last:]).decode()
    return "".join(lines)


def generated(source: str) -> str:
    """The stub with `AsyncClient`'s verbs made from `Client`'s."""
    begin, end = verbs(source, "Client")
    made = _awaited(source[begin:end])
    begin, end = verbs(source, "AsyncClient")
    # A result that grew may want another line.
    formatter = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(STUB), "-"]
    unformatted = source[:begin] + made + source[end:]
    run = subprocess.run(formatter, input=unformatted, capture_output=True, text=True, check=True)
    return run.stdout


def main() -> int:
    """Writes the stub, or with --check says whether it is stale."""
    source = STUB.read_text()
    made = generated(source)
    if made == source:
        return 0
    if sys.argv[1:] == ["--check"]:
        print(f"{STUB.name}: AsyncClient's verbs are stale: run python tools/async_stubs.py")
        return 1
    STUB.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
