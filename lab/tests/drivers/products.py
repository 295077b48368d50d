"""What the tests of drivers that are compiled share: the built product, or why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from wirespeed_lab import places
from wirespeed_lab.driving.conformance import conform


def built(path: str, how: str) -> Path:
    """A product below .tools/lab. Skips the test where it was not built."""
    product = places.REPOSITORY / ".tools" / "lab" / path
    if not product.is_file():
        pytest.skip(f"{product.name} is not built: {how}")
    return product


def conforms(*command: str | Path) -> None:
    report = conform([str(word) for word in command])
    assert report.failures == []
    assert "describe" in report.passed
