"""The page from made-up records: rows, reasons, verdicts, and what `--check` says."""

import pytest
from wirespeed_lab.results import Shelf, document, seeds
from wirespeed_lab.results.__main__ import main
from wirespeed_lab.results.shelf import Missing, Point
from wirespeed_lab.results.wanted import Wanted

SECONDS = {"limit": 0.05, "minio-go": 0.1, "rust-sdk": 0.2}
HERE = Wanted("seed004-get")


@pytest.fixture
def folders(tmp_path, made):
    """A folder of reports with one report, and an empty one of records."""
    for name in ("seeds", "records"):
        (tmp_path / name).mkdir()
    (tmp_path / "seeds" / "009.toml").write_text(made.report)
    return tmp_path


def page(folders):
    return document(seeds.all_in(folders / "seeds"), Shelf.of(folders / "records"))


def row(text, start):
    return next(line for line in text.splitlines() if line.startswith(start))


def test_the_published_table_stands_beside_ours(folders, made):
    made.record(folders / "records" / "one", SECONDS)
    text = page(folders)
    assert "5 objects, 50 MiB a round, 0.001 of its full size" in text
    cells = [cell.strip() for cell in row(text, "| sdk |").split("|")]
    assert cells[2:5] == ["5", "0.500", "`rust-sdk`"]
    assert cells[6].startswith("0.500")
    assert "agrees" in cells
    assert "not installed" in row(text, "| other |")
    assert "| none | - | - | - | - | - | not measured | nobody has it |" in row(text, "| gone |")
    assert row(text, "| (not in the report) |").split("|")[4].strip() == "`limit`"


def test_claims_have_verdicts_and_figures_that_the_record_has(folders, made):
    made.record(folders / "records" / "one", SECONDS)
    text = page(folders)
    assert row(text, "| 1 | The SDK").endswith("| agrees |")
    assert row(text, "| 2 | The other").endswith("| boto3-get: not installed | not measured |")
    assert "1. It spends 1.00 of its CPU time.\n" in text
    assert "left out" not in text
    assert "*Here:* Ours costs 2.05 core-s/GiB." in text
    assert row(text, "| [009]").endswith("| 1 | 0 | 0 | 0 | 1 |")


def test_a_client_that_failed_has_its_reason(folders, made):
    made.record(folders / "records" / "one", {"minio-go": 0.1}, failed={"rust-sdk": "it hung"})
    assert "failed: it hung" in row(page(folders), "| sdk |")


def test_without_records_the_published_table_stands_alone(folders):
    text = page(folders)
    assert "No record of `seed004-get`." in text
    assert row(text, "| warp |") == "| warp | 10 | 1.00 |"
    assert row(text, "| 1 | The SDK").endswith("no record of seed004-get | not measured |")


def test_the_newest_record_counts_and_absence_gives_way(folders, made):
    records = folders / "records"
    made.record(records / "new", {"minio-go": 0.1}, started="2026-01-02T00:00:00+00:00")
    made.record(records / "old", {"minio-go": 0.4, "boto3-get": 0.4})
    made.record(records / "tls", {"minio-go": 9.0}, tls=True, preset="s3")
    shelf = Shelf.of(records)
    newest = shelf.find(HERE, "minio-go", "bytes_per_s")
    assert isinstance(newest, Point)
    assert newest.cell.shelved.name == "new"
    older = shelf.find(HERE, "boto3-get", "bytes_per_s")
    assert isinstance(older, Point)
    assert older.cell.shelved.name == "old"
    assert isinstance(shelf.find(HERE, "s3fs", "bytes_per_s"), Missing)
    across = shelf.ratio(newest, older, "bytes_per_s")
    assert across is not None
    assert not across.paired
    assert across.estimate.median == pytest.approx(4.0)


def test_own_workloads_have_a_table_by_cost(folders, made):
    made.record(folders / "records" / "one", SECONDS, workload="small-4k", scale=0.0005)
    text = page(folders)
    assert "### `small-4k`" in text
    assert "| `rust-sdk` |" in text
    assert "- `boto3-get`: not installed" in text


def test_check_fails_on_a_stale_page_and_the_same_records_give_the_same_page(folders, made, capsys):
    words = ["--seeds", str(folders / "seeds"), "--records", str(folders / "records")]
    words += ["--to", str(folders / "RESULTS.md")]
    assert main([*words, "--check"]) == 1
    assert main(words) == 0
    assert main([*words, "--check"]) == 0
    made.record(folders / "records" / "one", SECONDS)
    assert main([*words, "--check"]) == 1
    assert "RESULTS.md is not what the records give" in capsys.readouterr().out


def test_a_report_that_cannot_be_read_is_named(folders, capsys):
    (folders / "seeds" / "010.toml").write_text("title = 3")
    assert main(["--seeds", str(folders / "seeds"), "--check"]) == 2
    assert "010.toml: tables is missing" in capsys.readouterr().err


def test_the_best_point_of_a_sweep_says_where_it_is_and_what_is_missing(folders, made):
    for number, (parallel, seconds, failed) in enumerate(
        [
            (8, {"rust-tm": 0.2, "go-manager": 0.1}, {}),
            (16, {"rust-tm": 0.1}, {"go-manager": "hung"}),
        ]
    ):
        made.record(
            folders / "records" / str(number),
            seconds,
            workload="seed002-memory",
            point={"concurrency": parallel},
            failed=failed,
        )
    shelf = Shelf.of(folders / "records")
    best = Wanted("seed002-memory", best=True)
    rust = shelf.find(best, "rust-tm", "bytes_per_s")
    go = shelf.find(best, "go-manager", "bytes_per_s")
    assert isinstance(rust, Point)
    assert isinstance(go, Point)
    assert (rust.cell.plan["concurrency"], rust.gaps) == (16, ())
    assert (go.cell.plan["concurrency"], go.gaps) == (8, ("failed: hung",))
    assert isinstance(shelf.find(Wanted("seed002-memory"), "rust-tm", "bytes_per_s"), Missing)


def test_a_heading_says_of_how_many_points_the_best_is(folders, made):
    swept = '{ workload = "seed002-memory", best = true }'
    report = made.report.replace('{ workload = "seed004-get" }', swept).replace("@seed004-get", "")
    (folders / "seeds" / "009.toml").write_text(report)
    for parallel, heading in ((8, "8 in flight, parts of 16 MiB)"), (16, "best of 2 points)")):
        made.record(
            folders / "records" / str(parallel),
            {"minio-go": 0.1},
            workload="seed002-memory",
            point={"concurrency": parallel},
        )
        assert heading in row(page(folders), "**`seed002-memory`**")
