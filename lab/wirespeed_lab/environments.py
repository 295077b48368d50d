"""The environments of the drivers that are written in Python: one for each, made from exact
versions, looked at before every measurement.

    python -m wirespeed_lab.environments [--wheel FILE] [NAME...]

makes those that are missing or out of date, each from its driver's ``requirements.txt``;
the one of our own package also holds the wheel. An environment that holds anything else than
its file says, or another version, is refused when it is asked for: a figure beside an
unknown version says nothing.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from . import places

OURS = "wirespeed-python"
OUR_PACKAGE = "wirespeed"
STAMP = "made-from"
HOW = "make it with `make environments`"
#: Prints what is installed where it runs.
LOOK = (
    "import importlib.metadata as m, json;"
    "print(json.dumps({d.name: d.version for d in m.distributions()}))"
)


class CannotMake(Exception):
    """An environment could not be made; the text holds what pip said."""


def names() -> list[str]:
    """All drivers that have an environment."""
    return sorted(file.parent.name for file in places.DRIVERS.glob("*/requirements.txt"))


def normal(name: str) -> str:
    """A distribution's name as PyPA's specifications compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """Exact versions by name, from a requirements file. Raises ValueError for any other line."""
    found = {}
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if not line:
            continue
        name, exactly, version = line.partition("==")
        if not exactly or not re.fullmatch(r"[0-9][0-9A-Za-z.+!]*", version):
            raise ValueError(f"{line!r} names no exact version")
        found[normal(name)] = version
    return found


def _requirements(name: str) -> Path:
    return places.DRIVERS / name / "requirements.txt"


def make(name: str, wheel: Path | None = None) -> bool:
    """Makes the environment anew unless it is as it should be. False when there was nothing to
    do. Raises CannotMake."""
    requirements = _requirements(name)
    of = hashlib.sha256(requirements.read_bytes())
    if name == OURS:
        if wheel is None:
            raise CannotMake(f"{name} needs --wheel, the package as it is built for release")
        of.update(wheel.read_bytes())
    folder = places.environments() / name
    stamp = folder / STAMP
    if stamp.is_file() and stamp.read_text() == of.hexdigest():
        return False
    shutil.rmtree(folder, ignore_errors=True)
    python = folder / "bin" / "python"
    _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    pip = (sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check")
    _run(*pip, "install", "--quiet", "--no-deps", "-r", str(requirements))
    if wheel is not None and name == OURS:
        _run(*pip, "install", "--quiet", "--no-deps", str(wheel))
    _run(*pip, "check")
    stamp.write_text(of.hexdigest())
    return True


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-1500:]
        raise CannotMake(f"`{' '.join(command)}` ended with {done.returncode}: {said}")


def unexpected(wanted: dict[str, str], found: dict[str, str]) -> list[str]:
    """How what is installed differs from what is pinned."""
    complaints = [
        f"{name} {found.get(name, 'is missing')} instead of {version}"
        for name, version in sorted(wanted.items())
        if found.get(name) != version
    ]
    return complaints + [
        f"{name} {found[name]} is not pinned" for name in sorted(found.keys() - wanted.keys())
    ]


@functools.cache
def python(name: str) -> Path:
    """The interpreter of a driver's environment. Raises MissingProgram when it is not there, or
    holds other packages than its requirements say."""
    path = places.environments() / name / "bin" / "python"
    if not path.is_file():
        raise places.MissingProgram(f"{path} is missing: {HOW}")
    packages(name)
    return path


@functools.cache
def packages(name: str) -> dict[str, str]:
    """The exact version of every package in the environment, which are those pinned."""
    path = places.environments() / name / "bin" / "python"
    look = subprocess.run([path, "-c", LOOK], capture_output=True, text=True, check=True)
    found = {normal(key): version for key, version in json.loads(look.stdout).items()}
    wanted = pins(_requirements(name).read_text())
    if name == OURS and OUR_PACKAGE in found:
        wanted[OUR_PACKAGE] = found[OUR_PACKAGE]
    elif name == OURS:
        wanted[OUR_PACKAGE] = "of this repository"
    if complaints := unexpected(wanted, found):
        raise places.MissingProgram(f"the environment {name}: {'; '.join(complaints)}. {HOW}")
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="wirespeed_lab.environments",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )
    parser.add_argument("--wheel", type=Path, help="our package as built for release")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    chosen = parser.parse_args(argv)
    for name in chosen.names or names():
        if name not in names():
            parser.error(f"no driver {name!r}; there are {', '.join(names())}")
        try:
            made = make(name, chosen.wheel)
        except (CannotMake, OSError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
        print(f"{name}: {'made' if made else 'as it should be'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
