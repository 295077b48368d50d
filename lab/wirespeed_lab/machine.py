"""What a record says about the machine and the programs it was made with."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from . import places

SYSCTLS = (
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_congestion_control",
)


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _cpu_model() -> str:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor()


def _first_line(*command: str | os.PathLike[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return None
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else None


def _memory_bytes() -> int | None:
    for line in (_read("/proc/meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def describe() -> dict:
    """CPU, cores, memory, kernel and socket settings, as read now."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory_bytes(),
        "kernel": platform.release(),
        "huge_pages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "sysctl": {
            name: (_read("/proc/sys/" + name.replace(".", "/")) or "").replace("\t", " ")
            for name in SYSCTLS
        },
        "load_at_start": list(os.getloadavg()),
    }


def versions() -> dict:
    """Versions of what was measured and of what measured it."""
    git = ("git", "-C", str(places.REPOSITORY))
    changed = subprocess.run(
        [*git, "status", "--porcelain", "--untracked-files=no"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = {
        "commit": _first_line(*git, "rev-parse", "HEAD"),
        "uncommitted_changes": bool(changed.stdout.strip()),
        "python": platform.python_version(),
        "cc": _first_line("cc", "--version"),
        "rustc": _first_line("rustc", "--version"),
    }
    for name, program in (("wirespeed", places.wirespeed), ("wirespeed-origin", places.origin)):
        try:
            found[name] = _first_line(program(), "--version")
        except places.MissingProgram:
            found[name] = None
    return found
