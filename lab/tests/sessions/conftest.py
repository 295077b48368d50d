"""A session with everything around it pretended: clients, store, machine."""

import dataclasses
import sys
from pathlib import Path

import pytest
from wirespeed_lab.measuring import Cores, Method
from wirespeed_lab.plans import Item, Plan
from wirespeed_lab.records import Record
from wirespeed_lab.server import ServerFailed
from wirespeed_lab.sessions import Cell, Entry, Session, Settings

DRIVER = Path(__file__).with_name("pretending_driver.py")


@dataclasses.dataclass
class PretendedClient:
    id: str
    pretend: str = ""
    language: str = "python"
    title: str = "pretends"
    family: str = "pretended"
    command: tuple = (sys.executable, "-S", str(DRIVER))

    @property
    def environment(self):
        return {"PRETEND": self.pretend}

    def packages(self):
        return {}

    def missing(self):
        return None


class PretendedStore:
    """Counts nothing; ``dies_after`` looks at its CPU time it is gone."""

    endpoint, region, bucket, ca_file = "http://127.0.0.1:1", "us-east-1", "lab", None

    def __init__(self, dies_after=None):
        self.credentials = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        self.dies_after = dies_after
        self.looks = 0
        self.prepared = []
        self.complaints = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def prepare(self, plan):
        self.prepared.append(plan)

    def renew(self):
        pass

    def hold_back(self, in_flight, bytes=0):
        pass

    def counts(self):
        return {}

    def cpu_seconds(self):
        self.looks += 1
        if self.dies_after is not None and self.looks > self.dies_after:
            raise ServerFailed("pretended server ended")
        return 0.0

    def describe(self):
        return {"kind": "pretended"}

    def forget_uploads(self, plan):
        pass

    def check_uploads(self, plan):
        return self.complaints


class SilentView:
    """Keeps what it is told. ``after`` is called with every round's line."""

    def __init__(self):
        self.told = []
        self.after = lambda line: None

    def begin(self, cells, clients, blocks):
        self.told.append(("begin", blocks))

    def cell(self, name):
        pass

    def turn(self, client, block, left_s):
        pass

    def round(self, line):
        self.after(line)

    def event(self, line):
        self.told.append((line["event"], line["text"]))

    def note(self, text):
        self.told.append(("note", text))

    def end(self, state, text):
        self.told.append((state, text))


def a_plan(**changed):
    work = tuple(Item(f"a/{n:08d}", 1024) for n in range(4))
    settings = {"workload": "tiny", "operation": "get", "sink": "discard", "work": work}
    return Plan(**{**settings, "concurrency": 4, **changed})


class Made:
    """A session in a folder, and what is pretended around it."""

    def __init__(self, folder, clients, plan, **settings):
        self.store, self.view = PretendedStore(), SilentView()
        self.cells = [Cell("tiny", plan)]
        self.settings = Settings(Cores((0,), (0,)), **{"blocks": 3, "repeats": 0, **settings})
        self.entries = [
            Entry(name, PretendedClient(name.partition("#")[0], pretend))
            for name, pretend in clients.items()
        ]
        written = {
            "schema": 1,
            "started": "2026-01-01T00:00:00+00:00",
            "command": ["run", "tiny"],
            "seed": self.settings.seed,
            "settings": self.settings.as_json(),
            "cells": [cell.as_json() for cell in self.cells],
            "clients": [entry.as_json() for entry in self.entries],
            "absent": [],
        }
        environment = {
            "schema": 1,
            "machine": {"cpu": "A CPU", "cores": 1},
            "versions": {},
            "measuring": {"cpu": "proc"},
            "cores": self.settings.cores.as_json(),
            "noise": {},
            "notes": [],
        }
        self.record = Record.create(folder, written, environment)

    def session(self, cpu="proc"):
        return Session(
            self.record,
            self.entries,
            self.cells,
            self.settings,
            Method(cpu, ""),
            self.view,
            open_store=lambda *_, **__: self.store,
        )

    def run(self, **how):
        return self.session(**how).run()

    def lines(self, phase=None):
        return [
            line
            for line in self.record.lines(checked=True)
            if line["line"] == "round" and phase in (None, line["phase"])
        ]

    def events(self, kind):
        return [line for line in self.record.lines() if line.get("event") == kind]

    def summed(self, client):
        (cell,) = self.record.summary["cells"]
        return next(said for said in cell["clients"] if said["client"] == client)


@pytest.fixture
def make(tmp_path):
    """``make({"name": "what it does wrong"}, plan changes..., settings={...})``."""

    def made(clients, settings=None, **plan):
        return Made(tmp_path / "record", clients, a_plan(**plan), **(settings or {}))

    return made
