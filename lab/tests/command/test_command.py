"""What a person types, what is printed, and with which exit code it ends."""

import argparse
import contextlib
import dataclasses
import json
import sys
from pathlib import Path

import pytest
from wirespeed_lab import clients, places, stores
from wirespeed_lab.command import main
from wirespeed_lab.command.parser import parser
from wirespeed_lab.measuring import Noise

DRIVER = Path(__file__).parents[1] / "sessions" / "pretending_driver.py"
WORKLOAD = """
version = 1
title = "four small objects"
operation = "get"
concurrency = 4

[objects]
prefix = "tiny/"
count = 4
size = "1 KiB"
"""


@dataclasses.dataclass
class PretendedClient:
    id: str
    lacks: str | None = None
    language: str = "python"
    title: str = "pretends"
    family: str = "pretended"
    environment: dict = dataclasses.field(default_factory=dict)

    command = (sys.executable, "-S", str(DRIVER))

    def packages(self):
        return {"pretended": "1"}

    def missing(self):
        return self.lacks


class PretendedStore(contextlib.nullcontext):
    endpoint, region, bucket, ca_file = "http://127.0.0.1:1", "us-east-1", "lab", None

    def __init__(self):
        super().__init__(self)
        self.credentials = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}

    def prepare(self, plan):
        pass

    def renew(self):
        pass

    def hold_back(self, in_flight, bytes=0):
        pass

    def counts(self):
        return {}

    def cpu_seconds(self):
        return 0.0

    def describe(self):
        return {"kind": "pretended"}


@pytest.fixture
def lab(tmp_path, monkeypatch, capsys):
    """``lab(*words)`` runs a command with pretended clients; (exit code, output, errors)."""
    known = {name: PretendedClient(name) for name in ("limit", "one", "two")}
    known["gone"] = PretendedClient("gone", "the registry refuses it: 403")
    monkeypatch.setattr(clients, "registry", lambda: known)
    monkeypatch.setattr(stores, "open_store", lambda *_, **__: PretendedStore())
    monkeypatch.setattr(places, "RECORDS", tmp_path / "records")
    quiet = Noise(0.0, 0.0, None, 0.0)
    monkeypatch.setattr("wirespeed_lab.command.running.quietness", lambda *_: quiet)
    (tmp_path / "tiny.toml").write_text(WORKLOAD)
    monkeypatch.chdir(tmp_path)

    def ran(*words):
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return ran


def test_a_run_keeps_a_record_that_verifies_and_is_shown(lab, tmp_path):
    out = tmp_path / "kept"
    code, said, _ = lab("run", "tiny.toml", "--rounds", 2, "--repeats", 0, "--out", out)
    assert code == 0
    assert "tiny (get, sink discard, warm, 4 in flight)" in said
    assert "gone: skipped: the registry refuses it: 403" in said
    names = sorted(path.name for path in out.iterdir())
    assert names == ["environment.json", "plan.json", "samples.jsonl.gz", "summary.json"]
    assert lab("verify", out)[0] == 0
    code, said, _ = lab("show", out, "--wide")
    assert code == 0
    assert all(name in said for name in ("limit", "one", "two"))
    plan = json.loads((out / "plan.json").read_text())
    assert plan["absent"] == [{"client": "gone", "reason": "the registry refuses it: 403"}]
    assert str(tmp_path) not in (out / "plan.json").read_text()


def test_a_record_is_named_by_time_and_machine_and_found_again(lab):
    lab("run", "tiny.toml", "--clients", "one", "--rounds", 1, "--repeats", 0)
    (folder,) = places.RECORDS.iterdir()
    assert folder.name.endswith("c")
    assert lab("show")[0] == 0
    assert lab("show", folder.name)[0] == 0
    assert folder.name in lab("list", "records")[1]


def test_a_changed_summary_is_not_verified(lab, tmp_path):
    out = tmp_path / "kept"
    lab("run", "tiny.toml", "--clients", "one", "--rounds", 1, "--repeats", 0, "--out", out)
    path = out / "summary.json"
    summary = json.loads(path.read_text())
    summary["cells"][0]["clients"][0]["metrics"]["seconds"]["median"] = 1e-9
    path.write_text(json.dumps(summary))
    code, said, _ = lab("verify", out)
    assert code == 1
    assert "clients[one].metrics.seconds.median is 1e-09, the samples say" in said


def test_a_sweep_has_a_cell_for_every_point(lab, tmp_path):
    out = tmp_path / "kept"
    words = ("run", "tiny.toml", "--clients", "one", "--rounds", 1, "--repeats", 0, "--out", out)
    assert lab(*words, "--sweep", "concurrency=1/2,part=5MiB")[0] == 0
    cells = json.loads((out / "plan.json").read_text())["cells"]
    assert [cell["id"] for cell in cells] == [
        "tiny concurrency=1 part=5MiB",
        "tiny concurrency=2 part=5MiB",
    ]
    assert [cell["plan"]["part_size"] for cell in cells] == [5 << 20] * 2


def test_a_client_takes_part_twice_and_is_compared_with_itself(lab, tmp_path):
    out = tmp_path / "kept"
    lab("run", "tiny.toml", "--clients", "one,one#2", "--rounds", 5, "--repeats", 0, "--out", out)
    code, said, _ = lab("compare", "one", "one#2", "--record", out)
    assert code == 0
    assert "one#2" in said
    assert lab("compare", f"{out}:one", f"{out}:one#2")[0] == 0
    code, said, _ = lab("compare", "one", "one#2", "--record", out, "--each", 2)
    assert code == 0
    assert "of 2 intervals include 1" in said


def test_a_client_can_be_made_dearer(lab, tmp_path):
    out = tmp_path / "kept"
    words = ("run", "tiny.toml", "--clients", "one,one+10%", "--rounds", 1, "--repeats", 0)
    assert lab(*words, "--out", out)[0] == 0
    plan = json.loads((out / "plan.json").read_text())
    assert [said["client"] for said in plan["clients"]] == ["one", "one+10%"]
    assert [said["id"] for said in plan["clients"]] == ["one", "one"]
    summary = json.loads((out / "summary.json").read_text())
    assert [said["state"] for said in summary["cells"][0]["clients"]] == ["measured"] * 2


def test_two_records_are_compared(lab, tmp_path):
    for name in ("a", "b"):
        words = ("run", "tiny.toml", "--clients", "one", "--rounds", 2, "--repeats", 0)
        lab(*words, "--out", tmp_path / name)
    code, said, _ = lab("compare", tmp_path / "a", tmp_path / "b")
    assert code == 0
    assert "not paired" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "tiny.toml", "--clients", "on"), "did you mean one"),
        (("run", "tiny.toml", "--clients", "gone"), "the registry refuses it: 403"),
        (("run", "tiny"), "there is no workload 'tiny'"),
        (("run",), "name a workload"),
        (("run", "tiny.toml", "--sweep", "depth=3"), "is no axis of a sweep"),
        (("run", "tiny.toml", "--sweep", "part=0"), "is no value of a sweep"),
        (("run", "tiny.toml", "--scale", "-1"), "scale"),
        (("run", "tiny.toml", "--server-cores", "900"), "core 900 is not among"),
        (("run", "--resume", "nowhere"), "holds no record"),
        (("show", "nowhere"), "holds no record"),
        (("show",), "holds no record yet"),
        (("verify",), "holds no record"),
        (("compare", "one", "two"), "holds no record"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(lab, words, says):
    code, _, errors = lab(*words)
    assert code == 2
    assert says in errors
    assert errors.startswith("wirespeed-lab: ")
    assert "Traceback" not in errors


def test_a_newer_workload_is_refused(lab, tmp_path):
    (tmp_path / "tiny.toml").write_text(WORKLOAD.replace("version = 1", "version = 9"))
    code, _, errors = lab("run", "tiny.toml")
    assert code == 2
    assert "version is 9" in errors


def test_an_interrupted_run_says_how_to_go_on(lab, tmp_path, monkeypatch):
    out = tmp_path / "kept"
    words = ("run", "tiny.toml", "--clients", "one", "--rounds", 3, "--repeats", 0, "--out", out)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as pressed:
        pressed.setattr("wirespeed_lab.sessions.view.PlainView.round", interrupt)
        code, _, errors = lab(*words)
    assert code == 130
    assert f"wirespeed-lab run --resume {out}" in errors
    code, said, _ = lab("run", "--resume", out)
    assert code == 0
    assert "complete" in said
    assert lab("verify", out)[0] == 0
    code, _, errors = lab(*words)
    assert code == 2
    assert "holds a record" in errors


def test_everything_there_is_is_listed(lab):
    code, said, _ = lab("list")
    assert code == 0
    assert "quick" in said
    assert "the registry refuses it: 403" in said


def test_the_doctor_names_what_is_missing(lab):
    code, said, _ = lab("doctor", "--seconds", "0.05")
    assert code in (0, 1)
    assert "the registry refuses it: 403" in said
    assert "3 clients can be measured" in said


def test_rounds_and_scales_are_read():
    chosen = parser().parse_args(["run", "quick", "--blocks", "4", "--scale", "fit"])
    assert (chosen.rounds, chosen.scale) == (4, None)
    with pytest.raises(SystemExit):
        parser().parse_args(["run", "quick", "--rounds", "0"])
    assert isinstance(parser(), argparse.ArgumentParser)
