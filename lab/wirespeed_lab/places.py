"""Where the things that the lab runs are found in this repository."""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDS = REPOSITORY / "lab" / "records"
DRIVERS = REPOSITORY / "lab" / "drivers"


class MissingProgram(Exception):
    """A program that a measurement needs was not built; the text says how to build it."""


def _built(path: Path, how: str) -> Path:
    if not path.is_file():
        raise MissingProgram(f"{path} is missing: {how}")
    return path


def target() -> Path:
    """Where cargo builds."""
    chosen = os.environ.get("CARGO_TARGET_DIR")
    return Path(chosen) if chosen else REPOSITORY / "target"


def _release() -> Path:
    return target() / "release"


def wirespeed() -> Path:
    return _built(_release() / "wirespeed", "build it with `make release`")


def origin() -> Path:
    chosen = os.environ.get("WIRESPEED_LAB_ORIGIN")
    path = Path(chosen) if chosen else _release() / "wirespeed-origin"
    return _built(path, "build it with `make release`")


def limit() -> Path:
    return _built(
        DRIVERS / "limit" / "build" / "limit", "build it with `make -C lab/drivers/limit`"
    )


def rust_driver(name: str) -> Path:
    folder = os.environ.get("WIRESPEED_LAB_DRIVERS", DRIVERS / "rust" / "target" / "release")
    return _built(Path(folder) / name, "build it with `make -C lab/drivers`")


def go_driver(name: str) -> Path:
    return _built(DRIVERS / "go" / "build" / name, "build it with `make -C lab/drivers`")


def go_tool(name: str) -> Path:
    """s5cmd or rclone, as the tests run them."""
    return _built(REPOSITORY / ".tools" / "bin" / name, "build it with `make setup`")


def awscli() -> Path:
    return _built(REPOSITORY / ".tools" / "awscli" / "aws", "fetch it with `make awscli`")


def environments() -> Path:
    """Where the environments of the drivers in Python are made."""
    chosen = os.environ.get("WIRESPEED_LAB_ENVIRONMENTS")
    return Path(chosen) if chosen else REPOSITORY / ".tools" / "python"


def boto3_driver() -> Path:
    return DRIVERS / "boto3" / "driver.py"


def python_driver(folder: str, file: str = "driver.py") -> Path:
    return DRIVERS / folder / file


def step_protocol() -> Path:
    """The folder that drivers in Python import what they share from."""
    return DRIVERS / "python"
