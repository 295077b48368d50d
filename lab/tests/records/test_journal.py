"""Lines survive crashes and full disks, and none is changed."""

import errno
import gzip
import os

import pytest
from wirespeed_lab.records import CutOff, Journal, journal

LINES = [{"n": n, "text": "é" * n} for n in range(5)]


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "samples.jsonl.gz"
    with Journal(found) as written:
        for line in LINES:
            written.append(line)
    return found


def test_lines_are_read_as_they_were_written(path):
    assert list(journal.lines(path)) == LINES
    assert gzip.decompress(path.read_bytes()).count(b"\n") == 5


@pytest.mark.parametrize("cut", [1, 9, 20])
def test_a_crash_costs_the_last_line_at_most(path, cut):
    os.truncate(path, path.stat().st_size - cut)
    assert list(journal.lines(path)) in (LINES[:4], LINES)
    with Journal(path) as again:
        again.append({"n": "new"})
    assert list(journal.lines(path)) == [*LINES[:4], {"n": "new"}]


def test_a_sealed_journal_is_smaller_the_same_and_goes_on(path):
    before = path.stat().st_size
    journal.seal(path)
    assert path.stat().st_size < before
    with Journal(path) as again:
        again.append({"n": 5})
    assert list(journal.lines(path)) == [*LINES, {"n": 5}]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_damaged_journal_is_not_cut_to_pieces(path):
    journal.seal(path)
    os.truncate(path, path.stat().st_size - 4)
    size = path.stat().st_size
    with pytest.raises(CutOff, match="damaged"):
        Journal(path)
    assert path.stat().st_size == size


def test_a_full_disk_takes_the_line_back(path, monkeypatch):
    real = os.pwrite
    calls = []

    def half(file, data, place):
        calls.append(place)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, data[: len(data) // 2], place)

    before = path.read_bytes()
    monkeypatch.setattr(os, "pwrite", half)
    with Journal(path) as again, pytest.raises(CutOff, match="No space left"):
        again.append({"n": 5})
    assert path.read_bytes() == before


def test_what_is_no_line_is_named(tmp_path):
    path = tmp_path / "samples.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"n": 1}\nnonsense\n'))
    with pytest.raises(ValueError, match=r"samples.jsonl.gz, line 2"):
        list(journal.lines(path))
