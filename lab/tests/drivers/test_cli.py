"""Command lines that are wrapped: what several of them in one folder leave to each other."""

import sys

import pytest
from wirespeed_lab import driving, places
from wirespeed_lab.plans import Item, Plan

WORK = tuple(Item(f"k/{n}", 100) for n in range(3))
PLAN = Plan("t", "put", "discard", WORK, source="file", concurrency=3)
#: Succeeds when what it is to upload is there: the argument before the last.
TOOL = """#!/bin/sh
for argument; do from=$to; to=$argument; done
test -d "$from"
"""


@pytest.fixture
def start(tmp_path):
    """``start()`` begins a driver of the tool, all in one folder."""
    tool, folder = tmp_path / "tool", tmp_path / "folder"
    tool.write_text(TOOL)
    tool.chmod(0o755)
    folder.mkdir()
    driving.write_sources(PLAN, folder)
    command = [sys.executable, str(places.DRIVERS / "python" / "drive_cli.py"), "s5cmd", str(tool)]
    started = []

    def begin():
        driver = driving.Driver([*command, "run"], {})
        started.append(driver)
        driver.start(PLAN.for_driver("http://127.0.0.1:1", "us-east-1", "b", None, folder))
        return driver

    begin.folder = folder
    yield begin
    for driver in started:
        driver.close()


def trees(folder):
    return [entry for entry in folder.iterdir() if entry.is_dir()]


def test_a_driver_that_ends_takes_nothing_from_another(start):
    first, second = start(), start()
    assert first.close() == "exit code 0"
    (sample,) = second.round(0).samples
    assert sample["error"] is None
    assert sample["count"] == len(WORK)
    second.close()
    assert trees(start.folder) == []


def test_what_a_killed_driver_left_is_cleared_away(start):
    killed = start()
    killed._process.kill()
    assert len(trees(start.folder)) == 1
    start()
    assert len(trees(start.folder)) == 1
