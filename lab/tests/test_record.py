import io
import json

import pytest
from rich.console import Console
from wirespeed_lab import figures, places, readme, readme_peers, record, report
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


PAGE = """before
<!-- bulk figures -->
<!-- /bulk figures -->
<!-- figures -->
old
<!-- /figures -->
between
<!-- python figures -->
old python
<!-- /python figures -->
<!-- python peers -->
old peers
<!-- /python peers -->
after
"""


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "benchmarks.md"
    path.write_text(PAGE)
    return path


@pytest.fixture
def front_page(tmp_path):
    path = tmp_path / "README.md"
    path.write_text("before\n<!-- front page -->\nold\n<!-- /front page -->\nafter\n")
    return path


@pytest.fixture
def python_rows(made):
    """A row of the Python package alone, one beside a peer, and facts."""
    samples = made.blocks("wirespeed", 0.11) + made.blocks("low", 0.10)
    for each in samples:
        each |= {"server_requests": 256, "server_bytes": 3 << 20}
    alone, beside = made.row(samples), made.row(samples)
    alone |= {"id": "python-get", "title": "Python: GET"}
    alone["checks"] = [Check("core_s_per_gib", ("low",), 1.05, of="wirespeed").as_json()]
    names = [("wirespeed", "engine", {"wirespeed": "0.1.0"}), ("low", "peer", {"low": "7.8"})]
    beside |= {
        "id": "python-peers",
        "title": "Python: GET, beside",
        "checks": [Check("core_s_per_gib", ("low",), 1, kind="fewer").as_json()],
        "contenders": [
            {"name": n, "role": r, "command": [n], "packages": p, "share": 10} for n, r, p in names
        ],
    }
    fact = {"what": "get", "unit": "MiB peak", "measured": 2150.2, "at_most": 2128.0}
    facts = {"id": "python-memory", "title": "Python: peak", "facts": [fact], "failures": {}}
    return [alone, beside, facts]


def test_the_readme_takes_the_table_between_its_markers(tmp_path, good_row, page, front_page):
    missed = {**good_row, "id": "other"}
    missed["checks"] = [Check("core_s_per_gib", ("limit",), 1.05).as_json()]
    readme.write([a_record(good_row, missed)], [tmp_path / "r.json"], page, front_page)
    text = page.read_text()
    assert "| GET | core-s/GiB | low | ≤ 1.15 | 1.10 [1.10..1.10] |" in text
    assert "| ≤ 1.05 | 1.100 [1.100..1.100], missed |" in text
    assert "Record: [r.json]" in text
    assert "\nold\n" not in text
    assert "\n<!-- figures -->\n" in text
    assert text.endswith(PAGE.partition("<!-- /figures -->")[2])


def test_rows_of_python_have_tables_of_their_own(tmp_path, page, front_page, python_rows):
    readme.write([a_record(*python_rows)], [tmp_path / "p.json"], page, front_page)
    text = page.read_text()
    assert "<!-- figures -->\nold\n<!-- /figures -->" in text
    _, _, python = text.partition("<!-- python figures -->")
    figures, _, peers = python.partition("<!-- python peers -->")
    assert "| core-s/GiB, wirespeed | low | ≤ 1.05 | 1.100 [1.100..1.100], missed |" in figures
    assert "| Python: peak: get | MiB peak | | ≤ 2,128 | 2,150, missed |" in figures
    low = (
        "| the same | low 7.8 (1/10 of the work) | 0.1 s/GiB | 1.100 missed | 5.37 GB/s | 256 | 3 |"
    )
    assert f"{low} 1,024 |" in peers
    assert "| GET, beside | wirespeed 0.1.0" in peers
    assert "old p" not in text


@pytest.mark.parametrize("name", ["low", "low, strings", "low.fsspec cat", "get of low"])
def test_the_version_is_that_of_the_package_in_the_name(name):
    packages = {"low": "7.8", "other": "1"}
    assert readme_peers.version({"name": name, "packages": packages}) == "7.8"
    assert readme_peers.version({"name": "unnamed", "packages": packages}) == ""
    assert readme_peers.version({"name": name}) == ""


def test_a_client_that_failed_is_named_in_the_table(tmp_path, page, front_page, python_rows):
    row = python_rows[1]
    row["samples"] = [sample for sample in row["samples"] if sample["contender"] != "low"]
    row["failures"] = {"low": "died"}
    readme.write([a_record(row)], [tmp_path / "p.json"], page, front_page)
    assert "| the same | low | failed |" in page.read_text()


def test_of_a_row_in_two_records_the_last_counts(tmp_path, good_row, page, front_page):
    again = {**good_row, "title": "GET again"}
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    readme.write([a_record(good_row), a_record(again)], paths, page, front_page)
    text = page.read_text()
    assert "| GET again |" in text
    assert "| GET |" not in text
    assert "Records: [one.json]" in text
    assert "[two.json]" in text


def test_the_front_page_has_rates_and_costs_of_its_rows(tmp_path, made, page, front_page):
    samples = made.blocks("wirespeed", 0.11) + made.blocks("low", 0.10) + made.blocks("peer", 0.2)
    rows = [made.row(samples) | {"id": wanted.row} for wanted in readme.FRONT_ROWS]
    for row in rows:
        row["contenders"] += [{"name": "peer", "role": "peer", "command": ["peer"]}]
        row["checks"] = [Check("core_s_per_gib", ("limit",), 1.15).as_json()]
    paths = [tmp_path / "r.json"]
    readme.write([a_record(*rows[1:])], paths, page, front_page)
    assert "\nold\n" in front_page.read_text()
    readme.write([a_record(*rows)], paths, page, front_page)
    text = front_page.read_text()
    ours, limit = "5.37 GB/s, 0.11 core-s/GiB", "5.37 GB/s, 0.1 core-s/GiB"
    peer = "5.37 GB/s, 0.2 core-s/GiB (peer)"
    assert f"| Rust: GET of 1 GiB into memory | {ours} | {limit} | {peer} |" in text
    assert text.count("\n| ") == len(readme.FRONT_ROWS) + 1
    assert text.startswith("before\n")
    assert text.endswith("after\n")


def test_facts_are_shown_and_count_for_the_exit_code(python_rows):
    facts = python_rows[2]
    out = io.StringIO()
    report.show(a_record(facts), Console(file=out, width=200))
    assert "missed" in out.getvalue()
    assert figures.exit_code(a_record(facts)) == 1
    facts["facts"][0]["measured"] = 2128.0
    assert figures.exit_code(a_record(facts)) == 0


def test_a_page_without_markers_is_left_alone(tmp_path, good_row):
    page = tmp_path / "benchmarks.md"
    page.write_text("nothing\n<!-- figures -->\n")
    with pytest.raises(readme.NoMarkers):
        readme.write([a_record(good_row)], [tmp_path / "r.json"], page, page)
    assert page.read_text() == "nothing\n<!-- figures -->\n"


def test_groups_of_rows_and_names_that_no_row_has(capsys):
    chosen = figures._arguments(["--rows", "python,get-memory"])
    assert chosen.rows[-1] == "get-memory"
    assert len(chosen.rows) > 8
    assert all(name.startswith("python-") for name in chosen.rows[:-1])
    assert not any(
        name.startswith("python") for name in figures._arguments(["--rows", "engine"]).rows
    )
    with pytest.raises(SystemExit):
        figures._arguments(["--rows", "nonsense"])
    assert "python-list" in capsys.readouterr().err
