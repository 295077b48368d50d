"""Makes what clients need, from the package registries alone: environments, programs, jars, each
in a folder of its own. What cannot be made is reported with the reason, and the rest goes on."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from .. import environments, places
from .registry import Client, registry, tools

#: Seconds for one build: some compile a C library or a workspace of Rust.
LIMIT = 1800
#: Of what a build said, so many characters are told.
TOLD = 600


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of one client: ``installed``, or ``missing`` with the reason. ``made`` is whether
    anything had to be done."""

    id: str
    reason: str | None
    made: bool = False

    @property
    def installed(self) -> bool:
        return self.reason is None

    def __str__(self) -> str:
        if self.reason is not None:
            return f"{self.id}: missing: {self.reason}"
        return f"{self.id}: installed" + ("" if self.made else ", as it was")


class CannotBuild(Exception):
    """A build failed or could not begin; the text says why."""


def setup(
    ids: Iterable[str] = (), tell: Callable[[Outcome], None] = lambda outcome: None
) -> list[Outcome]:
    """Makes what the clients of those ids need, or all of them; calls ``tell`` as each is done.
    Raises KeyError for an id that nobody has."""
    clients = registry()
    chosen = [clients[id] for id in ids] if ids else list(clients.values())
    outcomes, failed = [], {}
    for client in chosen:
        outcome = _one(client, failed)
        outcomes.append(outcome)
        tell(outcome)
    return outcomes


def _one(client: Client, failed: dict[tuple[str, ...], str]) -> Outcome:
    """``failed`` remembers builds that several clients share, so that each is tried once."""
    if client.unavailable or client.build is None:
        return Outcome(client.id, client.unavailable)
    lacking = [tool for tool in client.build.tools if not shutil.which(tool)]
    if lacking and client.missing():
        return Outcome(client.id, f"no {' and no '.join(lacking)} on this machine to make it with")
    share = (client.build.name, client.pinned_by, *map(client.filled, client.build.run))
    if share not in failed:
        try:
            made = _make(client)
        except (CannotBuild, environments.CannotMake, OSError) as error:
            failed[share] = str(error)
        else:
            return Outcome(client.id, client.missing(), made)
    return Outcome(client.id, client.missing() and failed[share])


def _make(client: Client) -> bool:
    build = client.build
    assert build is not None
    places.environments().mkdir(parents=True, exist_ok=True)
    with _alone(build.name):
        if build.name == "environment":
            return _environment(client.pinned_by)
        if build.name == "package":
            return _environment(client.pinned_by, _wheel())
        if not client.missing() and build.makes:
            return False
        folder = client.filled(build.folder) if build.folder else str(places.REPOSITORY)
        # Compilers know themselves whether there is something to do.
        had = client.missing() is None
        _run([client.filled(part) for part in build.run], folder, build.without)
        return not had


def _environment(name: str, wheel: Path | None = None) -> bool:
    made = environments.make(name, wheel)
    environments.python.cache_clear()
    environments.packages.cache_clear()
    return made


def _wheel() -> Path:
    """Our package as it is released."""
    folder = places.target() / "lab-wheel"
    shutil.rmtree(folder, ignore_errors=True)
    maturin = places.REPOSITORY / ".venv" / "bin" / "maturin"
    command = [str(maturin), "build", "--quiet", "--release", "--locked", "--out", str(folder)]
    manifest = places.REPOSITORY / "python" / "Cargo.toml"
    command += ["--manifest-path", str(manifest), "--interpreter", str(maturin.parent / "python")]
    _run(command, str(places.REPOSITORY), ())
    return next(folder.glob("*.whl"))


def _run(command: list[str], folder: str, without: tuple[str, ...]) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in without}
    told = " ".join(command)
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
            check=False,
        )
    except FileNotFoundError as error:
        raise CannotBuild(f"`{told}` in {folder}: {error.strerror}: {error.filename}") from None
    except subprocess.TimeoutExpired:
        raise CannotBuild(f"`{told}` took more than {LIMIT} s") from None
    if done.returncode:
        said = done.stdout.decode(errors="replace").strip()[-TOLD:]
        raise CannotBuild(f"`{told}` in {folder} ended with {done.returncode}: {said}")


class _alone:
    """One build of a kind at a time, over all processes of this repository."""

    def __init__(self, name: str):
        folder = tools() / "lab"
        folder.mkdir(parents=True, exist_ok=True)
        self._file = open(folder / f".{name}.lock", "w")  # noqa: SIM115 (closed on leaving)

    def __enter__(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()
