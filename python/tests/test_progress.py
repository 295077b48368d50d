"""Progress: a callback, and bars of tqdm and rich that are ready to be given."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
import time
from typing import Any

import pytest

import wirespeed
import wirespeed.progress

MIB = 1 << 20
SIZE = 12 * MIB


@pytest.fixture
def where(s3: Any, bucket: str) -> str:
    s3.put_object(Bucket=bucket, Key="k", Body=bytes(SIZE))
    return f"s3://{bucket}/k"


def test_a_callback_sees_progress_while_it_waits(verbs: Any, origin: Any, where: str) -> None:
    bucket = where.split("/")[2]
    seen: list[tuple[float, wirespeed.Progress]] = []
    fault = {"action": "delay:700", "verb": "get", "bucket": bucket, "times": 1, "nth": 2}
    with origin.misbehaving(fault):
        verbs.get(where, progress=lambda one: seen.append((time.monotonic(), one)))
    assert len(seen) >= 2
    assert seen[0][1].bytes < SIZE
    assert seen[-1][0] - seen[0][0] > 0.3
    last = seen[-1][1]
    assert (last.bytes, last.expected, last.objects) == (SIZE, SIZE, 1)
    assert repr(last) == f"Progress(bytes={SIZE}, expected={SIZE}, objects=1)"


def test_nothing_is_told_twice(verbs: Any, where: str) -> None:
    seen: list[tuple[int, int, int]] = []
    verbs.get(where, progress=lambda one: seen.append((one.bytes, one.expected, one.objects)))
    assert len(seen) == len(set(seen))


def test_uploads_tell_what_the_server_has(verbs: Any, bucket: str) -> None:
    seen: list[wirespeed.Progress] = []
    verbs.put("up", bytes(SIZE), bucket=bucket, progress=seen.append)
    assert (seen[-1].bytes, seen[-1].objects) == (SIZE, 1)


def test_what_is_no_function_is_said(verbs: Any, where: str) -> None:
    with pytest.raises(TypeError, match="callable"):
        verbs.get(where, progress=5)
    with pytest.raises(TypeError):
        verbs.get(where, progress=lambda: None)
    with pytest.raises(TypeError, match="callable"):
        verbs.get(where, on_part="print")


def test_a_tqdm_bar_ends_full(verbs: Any, where: str) -> None:
    out = io.StringIO()
    with wirespeed.progress.tqdm(desc="weights", file=out, mininterval=0) as bar:
        verbs.get(where, progress=bar)
    assert "weights: 100%" in out.getvalue()
    assert "12.0M/12.0M" in out.getvalue()


def test_a_tqdm_bar_counts_objects(verbs: Any, where: str) -> None:
    out = io.StringIO()
    with wirespeed.progress.tqdm(file=out, mininterval=0) as bar:
        verbs.get_many([where] * 5, progress=bar)
    assert "5 objects" in out.getvalue()


def test_a_bar_needs_no_with(verbs: Any, where: str) -> None:
    out = io.StringIO()
    verbs.get(where, progress=wirespeed.progress.tqdm(file=out, mininterval=0))
    gc.collect()
    assert "100%" in out.getvalue()
    assert out.getvalue().endswith("\n")


def test_a_rich_bar_ends_full(verbs: Any, where: str) -> None:
    console = terminal()
    with wirespeed.progress.rich("weights", console=console) as bar:
        verbs.get(where, progress=bar)
    shown = console.file.getvalue()
    assert "weights" in shown
    assert "12.6/12.6 MB" in shown or "12.0/12.0 MiB" in shown


def test_several_bars_may_share_one_display_of_rich(verbs: Any, where: str) -> None:
    from rich.progress import Progress

    with Progress(console=terminal()) as display:
        for name in ("one", "two"):
            with wirespeed.progress.rich(name, within=display) as bar:
                verbs.get(where, progress=bar)
        assert [(task.description, task.completed, task.total) for task in display.tasks] == [
            ("one", SIZE, SIZE),
            ("two", SIZE, SIZE),
        ]
        assert not display.finished or display.live.is_started
        with pytest.raises(TypeError, match="leave out within"):
            wirespeed.progress.rich(within=display, transient=True)


def terminal() -> Any:
    from rich.console import Console

    return Console(file=io.StringIO(), force_terminal=True, width=120)


@pytest.mark.parametrize("library", ["tqdm", "rich"])
def test_a_library_that_is_missing_is_named(library: str) -> None:
    script = (
        "import sys; sys.modules.update({'tqdm': None, 'rich': None})\n"
        "import wirespeed.progress\n"
        "try:\n"
        f"    wirespeed.progress.{library}()\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert f"{library} is not installed: pip install {library}" in out.stdout
    assert out.stderr == ""


def test_parts_that_come_quickly_do_not_keep_progress_back(
    new_client: Any, origin: Any, where: str
) -> None:
    client = new_client(part_size="1MiB", concurrency=1)
    seen: list[wirespeed.Progress] = []
    fault = {"action": "delay:60", "verb": "get", "bucket": where.split("/")[2]}
    with origin.misbehaving(fault):
        client.get(where, on_part=lambda offset, view: None, progress=seen.append)
    assert len(seen) >= 4
    assert seen[-1].bytes == SIZE
