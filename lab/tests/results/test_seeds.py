"""The reports' files: those of the lab are sound, and one that is not is refused by name."""

import re

import pytest
from wirespeed_lab.plans import load as load_workload
from wirespeed_lab.results import seeds
from wirespeed_lab.results.seeds import BadSeed


def refused(tmp_path, text):
    path = tmp_path / "009.toml"
    path.write_text(text)
    with pytest.raises(BadSeed) as caught:
        seeds.load(path)
    return str(caught.value)


def test_the_labs_reports_are_read_and_repeated_by_workloads_of_their_own():
    found = seeds.all_in(seeds.FOLDER)
    assert [seed.number for seed in found] == ["000", "001", "002", "003", "004"]
    for seed in found:
        assert seed.wrong
        assert seed.claims
        repeated = {wanted.workload for table in seed.tables for wanted in table.repeats}
        assert {load_workload(name).seed for name in repeated} == {seed.number}
        for table in seed.tables:
            assert len({row.name for row in table.rows}) == len(table.rows)


def test_published_durations_and_shares_follow_from_the_rates():
    memory = seeds.load(seeds.FOLDER / "001.toml").table("memory")
    shares = [round(100 * (memory.relative(row) or 0), 1) for row in memory.rows]
    assert shares == [100.0, 48.3, 22.6, 93.7, 87.3]
    get = seeds.load(seeds.FOLDER / "004.toml").table("get")
    assert get.relative(get.row("s3dlio, best")) == pytest.approx(0.418, abs=5e-4)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["rust-sdk"]', '["rust-skd"]', "009.toml: table 1: row 2: clients .* no 'rust-skd'"),
        ('seed004-get" }', 'seed009" }', "009.toml: table 1: repeat 1: workload .*seed009"),
        ('over = "sdk"', 'over = "skd"', "009.toml: claim 1: over is 'skd'"),
        ('table = "get"', 'table = "got"', "009.toml: claim 1: table is 'got'"),
        ("{core_s_per_gib:s3fs}", "{core_s:s3fs}", "claim 1: why: .*no metric 'core_s'"),
        ("{core_s_per_gib:s3fs}", "{core_s_per_gib:s3sf}", "claim 1: why: .*no client 's3sf'"),
        ("{core_s_per_gib:s3fs}", "{cost of s3fs}", "claim 1: why: .*is no placeholder"),
        ('without = "nobody has it"', 'settings = "x"', "'gone' has either clients"),
        ('quantity = "download rate"', 'quantities = "x"', "quantity is missing"),
        ("value = 5.0, ", "", "claim 1: neither published nor expects"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, made, old, new, said):
    assert old in made.report
    text = refused(tmp_path, made.report.replace(old, new, 1))
    assert re.search(said, text), text
