"""The demo's data: generated once from a seed, compared byte for byte afterwards."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

CHUNK = 8 << 20


@dataclasses.dataclass(frozen=True)
class Part:
    """A file (``count`` 0) or a folder of ``count`` files of ``size`` bytes each."""

    name: str
    title: str
    size: int
    count: int = 0
    suffix: str = ".bin"
    digits: int = 8

    @property
    def objects(self) -> int:
        return self.count or 1

    @property
    def bytes(self) -> int:
        return self.size * self.objects

    def files(self) -> Iterator[str]:
        """Names below the folder that holds the part."""
        if not self.count:
            yield self.name
        for n in range(self.count):
            yield f"{self.name}/{n:0{self.digits}d}{self.suffix}"


PARTS = (
    Part("large.bin", "1 GiB", 1 << 30),
    Part("mid", "2,000 x 1 MiB", 1 << 20, 2_000),
    Part("tiny", "20,000 x 4 KiB", 4 << 10, 20_000),
)


def generate(folder: Path, parts: tuple[Part, ...], seed: int) -> None:
    """Writes the parts below ``folder``; bytes are the seed's and never repeat."""
    random = np.random.Generator(np.random.SFC64(seed))
    for part in parts:
        (folder / part.name).parent.mkdir(parents=True, exist_ok=True)
        if part.count:
            (folder / part.name).mkdir(parents=True, exist_ok=True)
        for name in part.files():
            with open(folder / name, "wb", buffering=0) as file:
                left = part.size
                while left:
                    chunk = random.bytes(min(left, CHUNK))
                    file.write(chunk)
                    left -= len(chunk)


def differences(expected: Path, found: Path, most: int = 5) -> list[str]:
    """What is missing, superfluous or unequal in ``found``: at most ``most`` complaints."""
    wanted, have = set(_names(expected)), set(_names(found))
    complaints = [f"{name} is missing" for name in sorted(wanted - have)]
    complaints += [f"{name} does not belong there" for name in sorted(have - wanted)]
    ours, theirs = bytearray(CHUNK), bytearray(CHUNK)
    for name in sorted(wanted & have):
        if len(complaints) >= most:
            break
        at = _first_difference(expected / name, found / name, ours, theirs)
        if at is not None:
            complaints.append(f"{name} differs from byte {at} on")
    return complaints[:most]


def _names(folder: Path) -> Iterator[str]:
    for root, _, names in os.walk(folder):
        for name in names:
            yield str((Path(root) / name).relative_to(folder))


def _first_difference(a: Path, b: Path, ours: bytearray, theirs: bytearray) -> int | None:
    with open(a, "rb", buffering=0) as left, open(b, "rb", buffering=0) as right:
        at = 0
        while True:
            n, m = left.readinto(ours), right.readinto(theirs)
            one, other = np.frombuffer(ours, np.uint8, n), np.frombuffer(theirs, np.uint8, m)
            common = min(n, m)
            unequal = np.nonzero(one[:common] != other[:common])[0]
            if unequal.size:
                return at + int(unequal[0])
            if n != m:
                return at + common
            if n == 0:
                return None
            at += n


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
