"""The examples of the Python chapters run, in their order, against a server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHAPTERS = Path(__file__).parents[2] / "docs" / "python"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples(chapter: Path) -> str:
    """The chapter's code as one program whose lines are where they are in the chapter."""
    text = chapter.read_text()
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        for number, line in enumerate(block.group(1).splitlines()):
            lines[first + number] = line
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", ["start", "from-boto3", "from-s3fs"])
def test_the_examples_of_a_chapter_run(
    name: str, environment: dict[str, str], s3: Any, tmp_path: Path
) -> None:
    if name == "from-s3fs":
        pytest.importorskip("fsspec")
    if "bucket" not in (bucket["Name"] for bucket in s3.list_buckets()["Buckets"]):
        s3.create_bucket(Bucket="bucket")
    code = examples(CHAPTERS / f"{name}.md")
    assert "assert " in code
    program = tmp_path / f"{name}.py"
    program.write_text(code)
    done = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
