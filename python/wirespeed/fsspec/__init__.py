"""S3 for all that takes an fsspec file system.

``wirespeed://bucket/key`` works wherever fsspec's URLs do, once the package is installed::

    pandas.read_parquet("wirespeed://bucket/table.parquet")

`take_over_s3` makes ``s3://`` and ``s3a://`` mean this too, for programs that can't be changed,
until `give_back_s3`; importing anything never does. pyarrow and polars have clients of their own
for ``s3://``, which this doesn't reach: hand pyarrow ``filesystem=fs``, and see `scan_polars` and
`arrow_filesystem`. `WirespeedFileSystem` says what it can be told.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

from __future__ import annotations

import threading
from typing import Any

from fsspec.registry import (
    _registry as registered,  # pyright: ignore[reportPrivateUsage]
)
from fsspec.registry import (
    register_implementation,  # pyright: ignore[reportUnknownVariableType]
)

from .arrow import arrow_filesystem, scan_polars
from .file import FileExpired, S3File
from .filesystem import WirespeedFileSystem
from .objects import DeletionError
from .reading import ReadFile
from .s3 import S3FileSystem, S3Map
from .writing import WriteFile

__all__ = [
    "DeletionError",
    "FileExpired",
    "ReadFile",
    "S3File",
    "S3FileSystem",
    "S3Map",
    "WirespeedFileSystem",
    "WriteFile",
    "arrow_filesystem",
    "give_back_s3",
    "scan_polars",
    "take_over_s3",
]

# The installed package says so too; this is for those who import it from elsewhere.
register_implementation("wirespeed", WirespeedFileSystem, clobber=True)

_SCHEMES = ("s3", "s3a")
_lock = threading.Lock()
_before: dict[str, Any] = {}


def take_over_s3() -> None:
    """From now on ``s3://`` and ``s3a://`` mean `S3FileSystem` to fsspec, in this process and the
    children it forks. File systems that were made before stay what they are. `give_back_s3`
    undoes it.
    """
    with _lock:
        for scheme in _SCHEMES:
            if scheme not in _before:
                _before[scheme] = registered.get(scheme)
            register_implementation(scheme, S3FileSystem, clobber=True)


def give_back_s3() -> None:
    """Undoes `take_over_s3`: ``s3://`` means what it meant before."""
    with _lock:
        for scheme, former in _before.items():
            if former is None:
                registered.pop(scheme, None)
            else:
                register_implementation(scheme, former, clobber=True)
        _before.clear()
