import io
import json

import pytest
from rich.console import Console
from wirespeed_lab import figures, places, readme, record, report
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


def test_the_readme_takes_the_table_between_its_markers(tmp_path, good_row):
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- figures -->\nold\n<!-- /figures -->\nafter\n")
    missed = {**good_row, "checks": [Check("core_s_per_gib", ("limit",), 1.05).as_json()]}
    readme.write(a_record(good_row, missed), tmp_path / "r.json", page)
    text = page.read_text()
    assert "| GET | core-s/GiB | low | ≤ 1.15 | 1.10 [1.10..1.10] |" in text
    assert "| ≤ 1.05 | 1.10 [1.10..1.10], missed |" in text
    assert "r.json" in text
    assert "old" not in text
    assert text.startswith("before\n<!-- figures -->\n")
    assert text.endswith("\n<!-- /figures -->\nafter\n")


def test_a_page_without_markers_is_left_alone(tmp_path, good_row):
    page = tmp_path / "README.md"
    page.write_text("nothing\n<!-- figures -->\n")
    with pytest.raises(readme.NoMarkers):
        readme.write(a_record(good_row), tmp_path / "r.json", page)
    assert page.read_text() == "nothing\n<!-- figures -->\n"
