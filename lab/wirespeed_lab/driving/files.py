"""Files that drivers read or write: made and checked by the lab itself, whatever a driver says of
them. (Objects that they have stored are checked by the store.)"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..plans import Plan
from . import digests


def write_sources(plan: Plan, folder: Path) -> None:
    """What a put from files reads: ``folder``/n for item n. Equal ones are one file with many
    names. Raises OSError."""
    made: dict[int, Path] = {}
    for n, item in enumerate(plan.work):
        path = folder / str(n)
        if item.size in made:
            path.unlink(missing_ok=True)
            try:
                os.link(made[item.size], path)
                continue
            except OSError:
                pass  # too many names for one file, or a file system without them
        with path.open("wb") as file:
            for piece in digests.pieces(digests.BODY, 0, item.size):
                file.write(piece)
        made[item.size] = path


def empty(folder: Path) -> None:
    """Removes the files that a round has left. Raises OSError."""
    for entry in os.scandir(folder):
        if entry.name.isdecimal() and entry.is_file(follow_symlinks=False):
            os.unlink(entry)


def check_files(plan: Plan, folder: Path) -> list[str]:
    """Faults of the files that a round with a file sink has left: ``folder``/n for item n."""
    faults = []
    for n, item in enumerate(plan.work):
        start, end = item.range or (0, item.size)
        try:
            with (folder / str(n)).open("rb") as file:
                chunks = iter(lambda file=file: file.read(1 << 20), b"")
                fault = _compared(chunks, item.key, start, end)
        except OSError as error:
            fault = f"cannot be read: {error.strerror}"
        if fault:
            faults.append(f"file {n} {fault}")
    return faults


def _compared(chunks: Iterable[bytes], key: str, start: int, end: int) -> str | None:
    at, formula = start, digests.formula()
    for chunk in chunks:
        if at + len(chunk) > end:
            return f"has more than {end - start} bytes"
        different = formula.first_difference(key, memoryview(chunk), at, True)
        if different is not None:
            return f"is wrong at byte {different - start}"
        at += len(chunk)
    return None if at == end else f"has {at - start} bytes and must have {end - start}"
