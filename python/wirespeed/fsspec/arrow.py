"""pyarrow and polars, which read ``s3://`` by clients of their own unless they are handed a file
system."""

# pyarrow is not typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .filesystem import WirespeedFileSystem

if TYPE_CHECKING:
    import polars


def arrow_filesystem(filesystem: WirespeedFileSystem | None = None) -> Any:
    """Returns a `pyarrow.fs.PyFileSystem`, for the libraries that take no other kind.

    pyarrow's own functions take a `WirespeedFileSystem` as it is: ``filesystem=fs``. Without
    `filesystem` credentials and endpoint come from AWS's variables and files.
    """
    import pyarrow.fs

    filesystem = WirespeedFileSystem() if filesystem is None else filesystem
    return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(filesystem))


def scan_polars(
    source: str | Sequence[str],
    filesystem: WirespeedFileSystem | None = None,
    *,
    format: str = "parquet",
    partitioning: Any = None,
) -> polars.LazyFrame:
    """Returns a lazy frame of one object, of several or of all below a directory.

    The columns and rows that a query asks for are what is fetched. `format` and `partitioning` are
    those of `pyarrow.dataset.dataset`, through which polars reads: ``"parquet"``, ``"csv"``,
    ``"feather"``, ...; ``partitioning="hive"``. `filesystem` as in `arrow_filesystem`.
    """
    import polars
    import pyarrow.dataset

    paths: Any = WirespeedFileSystem._strip_protocol(
        source if isinstance(source, str) else list(source)
    )
    dataset = pyarrow.dataset.dataset(
        paths,
        filesystem=arrow_filesystem(filesystem),
        format=format,
        partitioning=partitioning,
    )
    return polars.scan_pyarrow_dataset(dataset)
