"""What the kernel says about a process, read from outside it."""

from __future__ import annotations

from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads that live, from the scheduler's own clock
    (nanoseconds; `stat` counts in ticks of 10 ms). Raises OSError when the process is gone."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def peak_rss_bytes(pid: int) -> int:
    """High-water mark of the resident size of the process's address space."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"process {pid} has no VmHWM: it has ended")
