"""Records of one workload that everybody does alike."""

import lab_records
import pytest
from wirespeed_lab.plans import Item, Plan

MIB = 1 << 20


def a_round(client, block, core_s=0.1, seconds=0.5, **changed):
    samples = {
        "start": [0, 10, 20, 30],
        "first": [5, 5, None, 5],
        "end": [100, 100, 200, 100 + block],
        "worker": [0, 0, 0, 0],
    }
    changed = {"samples": samples, **changed}
    return lab_records.round_line("tiny", client, block, seconds, core_s, 4, 4 * MIB, **changed)


def an_event(event, client=None, text="", **more):
    where = {"cell": "tiny" if client else None, "client": client}
    return {"line": "event", "event": event, **where, "text": text, **more}


def a_record(folder, lines, clients=("limit", "one", "two"), **changed):
    work = tuple(Item(f"a/{n:08d}", MIB) for n in range(4))
    plan = Plan(**{"workload": "tiny", "operation": "get", "sink": "discard", **changed}, work=work)
    cell = {"id": "tiny", "plan": plan.as_json()}
    return lab_records.write(folder, cell, clients, lines, {"warp": "not to be had"})


class Made:
    round = staticmethod(a_round)
    event = staticmethod(an_event)
    record = staticmethod(a_record)


@pytest.fixture
def made():
    """Builders: ``made.round``, ``made.event``, ``made.record``."""
    return Made
