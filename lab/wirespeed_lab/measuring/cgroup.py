"""A leaf of the cgroup v2 tree that holds one client and all that it starts.

Owns the leaf: makes it, moves a process tree into it, reads its accounts, removes it. Refuses
to change any other group, and to enable controllers: what the machine has not enabled is not
read. CPU time needs no controller.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from pathlib import Path

from . import processes
from .processes import Cpu

_number = itertools.count()
#: Seconds that the kernel may take to see that a group's last process has gone.
EMPTY_WITHIN_S = 2.0
#: How often a tree is looked through for processes that are still to be moved.
LOOKS = 4


class NoLeaf(Exception):
    """No leaf can be made here; the text says why."""


def home(mounts: str | None = None, own: str | None = None) -> Path:
    """The group of this process in the v2 hierarchy. Raises NoLeaf where there is none. The texts
    are those of /proc/self/mounts and /proc/self/cgroup."""
    try:
        mounts = Path("/proc/self/mounts").read_text() if mounts is None else mounts
        own = Path("/proc/self/cgroup").read_text() if own is None else own
    except OSError as error:
        raise NoLeaf(f"the kernel shows no cgroups: {error}") from None
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) > 2 and fields[2] == "cgroup2":
            mounted = Path(fields[1])
            break
    else:
        raise NoLeaf("no cgroup v2 hierarchy is mounted")
    for line in own.splitlines():
        if line.startswith("0::/"):
            return mounted / line[4:]
    raise NoLeaf("this process is in no cgroup v2 group")


class Leaf:
    """A group of our own. Raises NoLeaf when it can't be made, or has no accounts of CPU time."""

    def __init__(self, parent: Path | None = None):
        parent = home() if parent is None else parent
        self.path = parent / f"wirespeed-lab-{os.getpid()}-{next(_number)}"
        try:
            self.path.mkdir()
        except OSError as error:
            raise NoLeaf(f"{parent} takes no group of ours: {error.strerror}") from None
        try:
            self.cpu()
        except (OSError, KeyError):
            self.close()
            raise NoLeaf(f"{parent} keeps no accounts of CPU time") from None

    def adopt(self, root: int) -> None:
        """Moves a process and all that descends from it here. Raises NoLeaf."""
        # What one starts between being seen and being moved is not here: it is looked for again.
        for _ in range(LOOKS):
            here = set(self.pids())
            for pid in (pid for pid in processes.tree(root) if pid not in here):
                try:
                    (self.path / "cgroup.procs").write_text(str(pid))
                except ProcessLookupError:
                    continue
                except OSError as error:
                    reason = f"process {pid} can't be moved to {self.path}: {error.strerror}"
                    raise NoLeaf(reason) from None

    def pids(self) -> list[int]:
        return list(map(int, (self.path / "cgroup.procs").read_text().split()))

    def cpu(self) -> Cpu:
        """CPU time of all that was ever in the group, ended processes included."""
        said = dict(line.split() for line in (self.path / "cpu.stat").read_text().splitlines())
        return Cpu(int(said["user_usec"]) / 1e6, int(said["system_usec"]) / 1e6)

    def close(self) -> None:
        """Removes the group. One that still holds a process is left to the machine."""
        until = time.monotonic() + EMPTY_WITHIN_S
        while True:
            try:
                self.path.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > until:
                    return
                time.sleep(0.01)
            else:
                return


def sweep(parent: Path | None = None) -> int:
    """Removes the empty groups that a killed session left. The number of them."""
    removed = 0
    with contextlib.suppress(NoLeaf, OSError):
        for left in (home() if parent is None else parent).glob("wirespeed-lab-*"):
            if not Path(f"/proc/{left.name.split('-')[2]}").exists():
                with contextlib.suppress(OSError):
                    left.rmdir()
                    removed += 1
    return removed
