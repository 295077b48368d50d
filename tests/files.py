"""What lies in a folder, and folders that are full or read-only."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too: what a transfer left there."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


@contextlib.contextmanager
def small_disk(where: Path, size: str, *, read_only: bool = False) -> Iterator[Path]:
    """A file system of its own of so many bytes; the test is skipped where none may be mounted."""
    where.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    options = f"size={size}" + (",ro" if read_only else "")
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(where)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", str(where)], check=True)
