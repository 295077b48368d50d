"""Where workloads are found: the lab's own by name, anyone's by the path of a file."""

from __future__ import annotations

import tomllib
from pathlib import Path

from ..places import REPOSITORY
from .workload import BadWorkload, Workload

#: The lab's own workloads, one file each.
FOLDER = REPOSITORY / "lab" / "workloads"
#: Bytes of a workload's file at most: it is read whole.
SIZE_LIMIT = 4 << 20


def names() -> list[str]:
    """Names of the lab's own workloads, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name_or_path: str | Path) -> Workload:
    """The workload of that name, or in that file when it ends in ``.toml`` or has a folder.
    Raises BadWorkload where there is none, or it cannot be understood."""
    text = str(name_or_path)
    by_path = isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text
    path = Path(text) if by_path else FOLDER / f"{text}.toml"
    if not by_path and text not in names():
        raise BadWorkload(
            f"there is no workload {text!r}: there are {', '.join(names())}; "
            "a file of your own is named with its path"
        )
    return Workload.from_table(_table(path), path.stem, str(path))


def _table(path: Path) -> dict:
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
        if len(content) > SIZE_LIMIT:
            raise BadWorkload(f"{path}: longer than {SIZE_LIMIT} bytes: no workload is")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise BadWorkload(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadWorkload(f"{path}: is not UTF-8 at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise BadWorkload(f"{path}: is not TOML: {error}") from None
