"""The examples of the PyTorch chapter run, in their order, against a server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import servers

CHAPTER = Path(__file__).parents[3] / "docs" / "python" / "pytorch.md"


def test_the_examples_of_the_chapter_run(endpoint: servers.Server, tmp_path: Path) -> None:
    endpoint.boto3().create_bucket(Bucket="bucket")
    # All else becomes blank, so that a failure names the chapter's own line.
    is_code = False
    lines: list[str] = []
    for line in CHAPTER.read_text().splitlines():
        if line.startswith("```"):
            is_code = line == "```python"
            lines.append("")
        else:
            lines.append(line if is_code else "")
    code = "\n".join(lines) + "\n"
    assert len(re.findall(r"^assert ", code, re.MULTILINE)) >= 8
    program = tmp_path / "pytorch.py"
    program.write_text(code)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
