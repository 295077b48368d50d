"""The examples of the Python chapters and of the README run, in order, against a server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import servers

README = Path(__file__).parents[2] / "README.md"
CHAPTERS = Path(__file__).parents[2] / "docs" / "python"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples(text: str) -> str:
    """A text's code as one program whose lines are where they are in the text."""
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        for number, line in enumerate(block.group(1).splitlines()):
            lines[first + number] = line
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", ["start", "from-boto3", "from-s3fs", "bulk"])
def test_the_examples_of_a_chapter_run(
    name: str, environment: dict[str, str], s3: Any, tmp_path: Path
) -> None:
    needed = {"from-s3fs": "fsspec", "bulk": "distributed"}
    if name in needed:
        pytest.importorskip(needed[name])
    if "bucket" not in (bucket["Name"] for bucket in s3.list_buckets()["Buckets"]):
        s3.create_bucket(Bucket="bucket")
    code = examples((CHAPTERS / f"{name}.md").read_text())
    assert "assert " in code
    run(code, environment, tmp_path)


def test_the_lines_of_the_readme_run(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    code = examples(README.read_text())
    assert "wirespeed.get_many(" in code
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with servers.origin(tmp_path, flags=("--bucket", "bucket")) as server:
        server.boto3().put_object(Bucket="bucket", Key="large.bin", Body=bytes(9 << 20))
        keys = {
            "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_REGION": servers.REGION,
            "AWS_ACCESS_KEY_ID": server.access_key,
            "AWS_SECRET_ACCESS_KEY": server.secret_key,
        }
        run(
            code + "assert len(parts) == 3\nassert table.b[0] == 2\n",
            os.environ | keys,
            tmp_path,
        )
        written = server.boto3().get_object(Bucket="bucket", Key="copy.bin")["Body"].read()
    assert written == bytes(9 << 20)


def run(code: str, environment: dict[str, str], folder: Path) -> None:
    """Runs it in a process of its own."""
    program = folder / "example.py"
    program.write_text(code)
    done = subprocess.run(
        [sys.executable, program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
