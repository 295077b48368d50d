"""``doctor``: what is installed, what is missing, and whether this machine is fit to measure on."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
from rich.table import Table

from .. import clients, places
from ..measuring import Cores, Method, quietness
from . import tables

GOOD, WARN, BAD = "ok", "warning", "missing"
#: Bytes below which a session is likely to run out.
LITTLE_MEMORY, LITTLE_DISK = 2 << 30, 2 << 30


def doctor(args: argparse.Namespace) -> int:
    """Prints one line a finding. 1 when nothing at all can be measured here."""
    console = tables.console()
    table = Table(pad_edge=False)
    for column in ("", "what", "found"):
        table.add_column(column)
    usable = 0
    for state, what, found in (*_machine(args.seconds), *_programs()):
        table.add_row(state, what, found)
    for name, client in clients.registry().items():
        reason = client.missing()
        usable += not reason
        table.add_row(BAD if reason else GOOD, name, reason or client.title)
    console.print(table)
    ready = usable and not any(state == BAD for state, _, _ in _programs())
    said = "ready" if ready else "not ready: build the server and set up a client first"
    console.print(f"{usable} clients can be measured; {said}", highlight=False)
    return 0 if ready else 1


def _machine(seconds: float) -> Iterator[tuple[str, str, str]]:
    cores = Cores.split()
    yield (
        WARN if cores.why else GOOD,
        "cores",
        cores.why or f"server {list(cores.server)}, clients {list(cores.client)}",
    )
    yield _pinning(cores)
    method = Method.choose()
    yield (
        GOOD if method.cpu == "cgroup-v2" else WARN,
        "CPU time",
        "by cgroup v2" if method.cpu == "cgroup-v2" else f"from /proc: {method.why}",
    )
    noise = quietness({*cores.server, *cores.client}, seconds)
    yield (
        WARN if noise.reasons else GOOD,
        "quiet",
        ", ".join(noise.reasons)
        or f"steal {noise.steal:.1%}, other load {noise.other:.1%}, load {noise.load:.2f}",
    )
    yield _governor()
    memory = psutil.virtual_memory().available
    yield (WARN if memory < LITTLE_MEMORY else GOOD, "memory", f"{memory / 2**30:.1f} GiB left")
    for what, folder in (("records", places.RECORDS), ("files", Path(tempfile.gettempdir()))):
        if folder.exists():
            free = shutil.disk_usage(folder).free
            state = WARN if free < LITTLE_DISK else GOOD
            yield (state, f"disk for {what}", f"{free / 2**30:.1f} GiB left")


def _pinning(cores: Cores) -> tuple[str, str, str]:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cores.client)
        os.sched_setaffinity(0, before)
    except OSError as error:
        return (WARN, "pinning", f"not allowed ({error.strerror}): cores will be shared")
    return (GOOD, "pinning", "allowed")


def _governor() -> tuple[str, str, str]:
    path = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    try:
        governor = path.read_text().strip()
    except OSError:
        return (GOOD, "frequency", "the machine does not say")
    state = GOOD if governor == "performance" else WARN
    return (state, "frequency", f"governor {governor}")


def _programs() -> Iterator[tuple[str, str, str]]:
    built: tuple[tuple[str, Callable[[], Path]], ...] = (("wirespeed-origin", places.origin),)
    for name, find in built:
        try:
            find()
            yield (GOOD, name, "built")
        except places.MissingProgram as error:
            yield (BAD, name, str(error))
