"""Whole commands under the step protocol: what they did is counted, not believed."""

import json
import sys
import urllib.request

import pytest
from wirespeed_lab import measured, places, whole
from wirespeed_lab.contender import Contender, ContenderFailed, Running
from wirespeed_lab.origin import Origin

FILES = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
(folder / "below").mkdir(parents=True)
(folder / "a").write_bytes(b"12345")
(folder / "below" / "b").write_bytes(b"123")
"""


def contender(proof, *command):
    driver = (sys.executable, "-m", "wirespeed_lab.whole", "--proof", proof, "--cpu", "0")
    lab = {"PYTHONPATH": str(places.REPOSITORY / "lab")}
    return Contender("it", "peer", (*driver, "--step", "--", *command), lab)


def test_files_are_counted_and_removed_before_the_next_round(tmp_path):
    folder = tmp_path / "to"
    with Running(contender(f"folder:{folder}", sys.executable, "-c", FILES, str(folder)), 0) as it:
        for _ in range(2):
            sample = it.go()
            assert (sample["bytes"], sample["objects"]) == (8, 2)
            assert sample["user_s"] + sample["system_s"] > 0
            assert sample["peak_rss_bytes"] > 1 << 20
            assert not folder.exists()


def test_a_command_that_fails_is_quoted():
    failing = (sys.executable, "-c", "import sys; sys.exit('no such bucket')")
    with (
        Running(contender("lines", *failing), 0) as it,
        pytest.raises(ContenderFailed, match="no such bucket"),
    ):
        it.go()


def test_lines_are_counted_and_not_kept():
    many = "print('x' * 99); print((('y' * 99) + chr(10)) * 20_000, end='')"
    result = measured.run((sys.executable, "-c", many), 0, {}, count_lines=True)
    assert result["lines"] == 20_001
    assert "output" not in result


def test_a_summary_is_the_last_record():
    said = '{"type":"item","bytes":1}\n{"type":"summary","objects":3,"bytes":12}\nnot JSON\n'
    assert whole.Proof("summary", 0).of(said) == (12, 3)
    assert whole.Proof("total", 0).of(said) == (0, 3)
    with pytest.raises(whole.NotProven, match="no JSON"):
        whole.Proof("summary", 0).of("done\n")
    with pytest.raises(whole.NotProven, match="says nothing of bytes"):
        whole.Proof("summary", 0).of('{"objects": 3}\n')


def test_what_a_server_stored_is_counted_there(monkeypatch):
    monkeypatch.setattr(places, "origin", lambda: places.target() / "debug" / "wirespeed-origin")
    with Origin(0, buckets=("uploads",)) as server:
        proof = whole.Proof(f"stored:{server.endpoint}", 5)
        proof.begin()
        for key in "ab":
            request = urllib.request.Request(
                f"{server.endpoint}/uploads/{key}", data=b"12345", method="PUT"
            )
            urllib.request.urlopen(request).close()
        assert proof.of("") == (10, 2)
        proof.begin()
        assert proof.of("") == (0, 0)


def test_a_way_that_is_none_is_refused():
    with pytest.raises(whole.NotProven, match="no way 'faith'"):
        whole.Proof("faith", 0)


def test_one_round_without_steps(capsys):
    assert (
        whole.main(["--proof", "lines", "--cpu", "0", "--", sys.executable, "-c", "print(1)"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["objects"] == 1
