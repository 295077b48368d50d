"""Writes the table of s3fs's public API in the guide.

    python tools/s3fs_table.py [--check]

The rows come from the description of s3fs that `tools/s3fs_api.py` made and from the list of what
differs, both of which `test_s3fs_api` checks. With `--check` nothing is written, and the exit
status reports whether the table is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "python" / "tests" / "fsspec"
GUIDE = ROOT / "docs" / "python" / "from-s3fs.md"
BEGIN = "<!-- s3fs: begin (written by tools/s3fs_table.py) -->\n"
END = "<!-- s3fs: end -->\n"


def call(name: str, parameters: list[list[Any]], keywords: bool) -> str:
    """A call with its parameters, as it is written."""
    shown = [
        one if default is None else f"{one}={'...' if default == '...' else default}"
        for one, default in parameters
        if one != "self"
    ]
    return f"`{name}({', '.join([*shown, '...'] if keywords else shown)})`"


def table() -> str:
    """All rows."""
    api = json.loads((TESTS / "s3fs_api.json").read_text())
    notes: dict[str, list[str]] = {}
    for one in json.loads((TESTS / "s3fs_differences.json").read_text()):
        for name in one["of"]:
            notes.setdefault(name, []).append(one["differs"])
    rows = [(call("S3FileSystem", api["constructor"], True), notes.pop("S3FileSystem", []))]
    for name, one in api["methods"].items():
        rows.append((call(name, one["parameters"], one["keywords"]), notes.pop(name, [])))
    attributes = [name for name in api["attributes"] if name != "s3"]
    rows.append(("`.s3`", notes.pop("s3", [])))
    rows.append((", ".join(f"`.{name}`" for name in attributes), []))
    for name, one in api["file_methods"].items():
        text = call(f"S3File.{name}", one["parameters"], one["keywords"])
        rows.append((text, notes.pop(f"S3File.{name}", [])))
    for name, parameters in api["module"].items():
        text = call(name, parameters, False) if parameters else f"`{name}`"
        rows.append((text, notes.pop(name, [])))
    rows += [(f"`{name}`", notes.pop(name, [])) for name in (*api["variables"], "S3File")]
    if notes:
        raise SystemExit(f"differences of what s3fs does not have: {', '.join(notes)}")
    lines = [
        f"Public methods, options and attributes of s3fs {api['s3fs']}. Each is called on both,",
        "and the results are compared. Where no difference is given, they are the same.",
        "",
        "| s3fs | what differs |",
        "|---|---|",
        *(f"| {name} | {'. '.join(said)} |".replace("|  |", "| |") for name, said in rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Writes the table, or reports whether it is stale."""
    guide = GUIDE.read_text()
    begin, end = guide.index(BEGIN) + len(BEGIN), guide.index(END)
    fresh = guide[:begin] + table() + guide[end:]
    if "--check" in sys.argv[1:]:
        if fresh != guide:
            print(f"{GUIDE.name} is stale: run python tools/s3fs_table.py")
        return 0 if fresh == guide else 1
    GUIDE.write_text(fresh)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
