"""Records of several hosts: what a real run told verifies, and what was changed in it is found."""

import copy
import datetime
import gzip
import json
import os

import pytest
from wirespeed_lab.command import main
from wirespeed_lab.hosts import record, rounds
from wirespeed_lab.hosts.verifying import verify
from wirespeed_lab.records import BadRecord

NOW = datetime.datetime(2026, 11, 23, 2, 21, tzinfo=datetime.UTC)
NAME = "hosts-20261123T022100Z.jsonl.gz"


@pytest.fixture
def kept(tmp_path, real_events):
    """``kept(change)`` keeps the events, changed by a function of them; the record's file."""

    def keep(change=lambda _: None):
        events = copy.deepcopy(real_events)
        change(events)
        with record.written(tmp_path / "kept", NOW) as tell:
            for event in events:
                tell(event)
        return tmp_path / "kept" / NAME

    return keep


def of_type(events, kind):
    return [event for event in events if event["type"] == kind]


def test_a_real_run_verifies_and_is_shown(kept, capsys):
    path = kept()
    assert verify(path) == []
    assert main(["verify", str(path)]) == 0
    assert main(["verify", str(path.parent)]) == 0
    assert f"{NAME}: as its samples say" in capsys.readouterr().out
    assert main(["show", str(path.parent)]) == 0
    said = capsys.readouterr().out
    assert "hosts-get on 2 hosts at once, 2 blocks" in said
    assert "reference " in said
    assert "other                        out: 127.0.0.2" in said
    assert main(["compare", str(path), str(path)]) == 2
    assert "is a record of several hosts" in capsys.readouterr().err


def fewer_bytes(events):
    of_type(events, "round")[1]["hosts"][0]["samples"][3]["bytes"] -= 1


def fewer_bytes_in_all_figures(events):
    fewer_bytes(events)
    told = of_type(events, "round")[1]
    parts = [rounds.HostRound(**part) for part in told["hosts"]]
    told.update(rounds.merged(parts, events[0]["segment_ns"]))


def other_time(events):
    of_type(events, "round")[0]["hosts"][1]["samples"][7]["end_ns"] += 1


def other_rate(events):
    of_type(events, "round")[2]["merged"]["bytes_per_second"] *= 1 + 1e-9


def other_interval(events):
    events[-1]["clients"]["reference"]["bytes_per_second"]["low"] *= 0.99


def other_reason(events):
    events[-1]["out"]["other"] = "it was slow"


def clock_known_better(events):
    of_type(events, "round")[1]["hosts"][0]["uncertainty_ns"] -= 1
    of_type(events, "round")[1]["hosts"][1]["uncertainty_ns"] -= 1


def without(kind, which=0):
    def change(events):
        events.remove(of_type(events, kind)[which])

    return change


def silent_faults(events):
    of_type(events, "round")[2]["hosts"][0]["faults"] = ["sample 3 has wrong bytes"]


def another_host(events):
    of_type(events, "round")[2]["hosts"][0]["name"] = "10.0.0.1:7171"


def another_client(events):
    events[-2]["client"] = "stranger"


def after_the_end(events):
    events.append(copy.deepcopy(of_type(events, "round")[-1]))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (fewer_bytes, "line 5: 127.0.0.1"),
        (fewer_bytes_in_all_figures, "moved 7999999 bytes, the plan has 8000000"),
        (other_time, "line 4.merged"),
        (other_rate, "line 6.merged.bytes_per_second is"),
        (other_interval, "summary.clients.reference.bytes_per_second.low is"),
        (other_reason, "summary.out.other is 'it was slow', the samples say '127.0.0.2"),
        (clock_known_better, "line 5.merged.end_ns is"),
        (without("round", 0), "block 1 of reference, and block 0 was due"),
        (without("round", 1), "block 2 of reference, and block 1 was due"),
        (without("round", 2), "reference has rounds up to block 1 of 2"),
        (without("client"), "a round of reference, and no line says that it was started"),
        (without("skip"), "other was asked for, and no line says what came of it"),
        (without("summary"), "has no summary: the measurement did not come to its end"),
        (without("hosts"), "does not begin with a line of type 'hosts'"),
        (silent_faults, "line 6 has faults of reference, and no line disqualifies it"),
        (another_host, "line 6: its hosts are not those of the measurement"),
        (another_client, "line 6: stranger was not asked for"),
        (after_the_end, "line 8 stands behind the summary"),
    ],
)
def test_what_was_changed_is_found(kept, change, says, capsys):
    path = kept(change)
    complaints = verify(path)
    assert any(says in complaint for complaint in complaints), complaints
    assert main(["verify", str(path)]) == 1
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "field", "value", "says"),
    [
        (0, "version", 2, "is of version 2; this version of the lab reads 1"),
        (0, "blocks", 0, "line 1 is no hosts of version 1: data.blocks must be bigger"),
        (3, "block", "1", "line 4 is no round of version 1: data.block must be integer"),
        (3, "speed", 1, "line 4 is no round of version 1: data must not contain {'speed'}"),
        (4, "type", "rounds", "line 5 is of type 'rounds', which no record of hosts has"),
        (-1, "clients", [], "line 7 is no summary of version 1: data.clients must be object"),
    ],
)
def test_a_line_of_another_form_is_refused(kept, place, field, value, says):
    path = kept(lambda events: events[place].update({field: value}))
    (complaint,) = verify(path)
    assert says in complaint
    assert NAME in complaint
    with pytest.raises(BadRecord):
        list(record.lines(path))


@pytest.mark.parametrize("packed", [True, False])
def test_a_file_that_is_cut_off_says_so_and_is_shown_as_far_as_it_goes(kept, packed, capsys):
    path = kept()
    if packed:
        whole = gzip.decompress(path.read_bytes())
        path.write_bytes(gzip.compress(whole[:-40]))
    else:
        os.truncate(path, path.stat().st_size - 40)
    (complaint,) = verify(path)
    assert "is cut off after line 6: what came then is lost" in complaint
    assert main(["show", str(path)]) == 0
    said = capsys.readouterr().out
    assert "did not come to its end" in said
    assert "reference " in said


def test_what_is_no_line_is_named(kept):
    path = kept()
    text = gzip.decompress(path.read_bytes()).replace(b'{"type":"client"', b"nonsense", 1)
    path.write_bytes(gzip.compress(text))
    (complaint,) = verify(path)
    assert f"{NAME}, line 3" in complaint or f"{NAME}, line 2" in complaint


def test_lines_stand_as_soon_as_they_were_told(tmp_path, real_events):
    with record.written(tmp_path, NOW) as tell:
        tell(real_events[0])
        tell(real_events[1])
        assert list(record.lines(tmp_path / NAME)) == real_events[:2]


def test_a_record_is_made_once_and_not_of_nothing(tmp_path, kept):
    path = kept()
    with pytest.raises(BadRecord, match="is there already"), record.written(path.parent, NOW):
        pass
    with record.written(tmp_path / "empty", NOW):
        pass
    assert not (tmp_path / "empty").exists()


def test_all_types_of_lines_are_in_the_schema(real_events):
    schema = json.loads((record.SCHEMAS / "hosts.v1.json").read_text())
    known = {line["properties"]["type"]["const"] for line in schema["oneOf"]}
    assert known == {"hosts", "client", "skip", "round", "disqualified", "summary"}
    assert {event["type"] for event in real_events} == known - {"disqualified"}
