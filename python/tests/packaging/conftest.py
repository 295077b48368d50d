"""What `make wheels` has built, and clean environments to put it into."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def dist() -> Path:
    """The folder with the wheels and the source distribution."""
    folder = os.environ.get("PACKAGES")
    if folder is None:
        pytest.skip("`make wheels` builds what is tested here and says where it is")
    return Path(folder)


def _one(dist: Path, pattern: str) -> Path:
    found = sorted(dist.glob(pattern))
    assert len(found) == 1, f"{pattern} matches {[p.name for p in found]}"
    return found[0]


@pytest.fixture(scope="session")
def wheel(dist) -> Path:
    """The wheel for every CPython from 3.11 on."""
    return _one(dist, "*-abi3-*.whl")


@pytest.fixture(scope="session")
def threaded_wheel(dist) -> Path:
    """The wheel for the free-threaded interpreter."""
    reason = ROOT / ".tools" / "python3.13t" / "missing"
    if reason.exists():
        pytest.skip(f"no free-threaded Python: {reason.read_text().strip()}")
    return _one(dist, "*-cp313t-*.whl")


@pytest.fixture(scope="session")
def sdist(dist) -> Path:
    """The source distribution."""
    return _one(dist, "*.tar.gz")


@pytest.fixture
def install(tmp_path):
    """A function that installs into a clean environment and gives its interpreter. What has to be
    compiled for it is not optimised: whether it builds is asked, not how fast it is."""

    def made(what: Path, python: str | Path = sys.executable) -> Path:
        folder = tmp_path / "environment"
        subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
        interpreter = folder / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet", what]
        quickly = {**os.environ, "MATURIN_PEP517_ARGS": "--profile dev"}
        subprocess.run(pip, check=True, cwd=tmp_path, env=quickly)
        return interpreter

    return made
