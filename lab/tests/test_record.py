import io
import json

import pytest
from rich.console import Console
from wirespeed_lab import figures, places, record, report
from wirespeed_lab.checks import Check


def a_record(*rows):
    machine = {"cpu": "A CPU", "cores": 2, "kernel": "6.1"}
    versions = {"commit": "0123456789abcdef", "uncommitted_changes": True}
    result = record.new("figures", machine, versions, ["figures"])
    result["rows"] = list(rows)
    return result


@pytest.fixture
def good_row(made):
    found = made.row(made.blocks("wirespeed", 0.11) + made.blocks("low", 0.10))
    found["checks"] = [Check("core_s_per_gib", ("limit",), 1.15).as_json()]
    return found


def test_a_record_is_read_as_it_was_written(tmp_path, good_row):
    path = tmp_path / "new" / "record.json"
    result = a_record(good_row)
    record.write(result, path)
    assert record.read(path) == result
    assert [entry.name for entry in path.parent.iterdir()] == ["record.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 99}', "\x00"])
def test_what_is_no_record_is_refused_with_its_path(tmp_path, text):
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(record.BadRecord, match=r"record\.json"):
        record.read(path)
    with pytest.raises(record.BadRecord, match="absent"):
        record.read(tmp_path / "absent")


def test_a_record_does_not_say_where_the_checkout_lies(tmp_path, good_row):
    written = a_record(good_row)
    written["command"] = [
        str(places.REPOSITORY / "lab/drivers/x"),
        str(places.target() / "release/y"),
    ]
    record.write(written, tmp_path / "r.json")
    assert record.read(tmp_path / "r.json")["command"] == ["lab/drivers/x", "target/release/y"]


def test_the_table_is_recomputed_from_samples_alone(good_row):
    result = json.loads(json.dumps(a_record(good_row)))
    out = io.StringIO()
    report.show(result, Console(file=out, width=200))
    assert "1.1 [1.1..1.1]" in out.getvalue()
    assert "met" in out.getvalue()
    for sample in result["rows"][0]["samples"]:
        if sample["contender"] == "wirespeed":
            sample["user_s"] *= 3
    out = io.StringIO()
    report.show(result, Console(file=out, width=200))
    assert "missed" in out.getvalue()


def test_exit_codes(good_row, made):
    strict = Check("core_s_per_gib", ("limit",), 1.05)
    missed = {**good_row, "checks": [strict.as_json()]}
    few = made.row(made.blocks("wirespeed", 0.11, count=3) + made.blocks("low", 0.10, count=3))
    few["checks"] = good_row["checks"]
    failed = {**good_row, "failures": {"low": "died"}}
    bound = {"what": "x", "peak_rss_bytes": 2, "at_most_bytes": 1, "samples": []}
    peak = {"id": "peak-memory", "title": "Peak", "bounds": [bound], "failures": {}}
    assert figures.exit_code(a_record(good_row)) == 0
    assert figures.exit_code(a_record(good_row, few)) == 3
    assert figures.exit_code(a_record(missed, few)) == 1
    assert figures.exit_code(a_record(failed)) == 1
    assert figures.exit_code(a_record(peak)) == 1


def test_show_of_a_broken_record_says_so(tmp_path, capsys):
    assert figures.main(["show", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().out
