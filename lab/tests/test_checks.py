import pytest
from wirespeed_lab import checks
from wirespeed_lab.checks import Check


def test_the_limit_is_the_cheapest_cell_and_first_rounds_stand_apart(made):
    samples = made.blocks("wirespeed", 0.11) + made.blocks("low", 0.12) + made.blocks("high", 0.10)
    samples += [
        made.sample("wirespeed", 0, 9.0, first=True),
        made.sample("high", 0, 9.0, first=True),
    ]
    finding = checks.judge(made.row(samples), Check("core_s_per_gib", ("limit",), 1.15))
    assert finding.over == ("high",)
    assert finding.estimate.median == pytest.approx(1.1)
    assert finding.estimate.count == 12
    assert finding.verdict == "met"


def test_a_cell_that_left_early_is_not_the_limit(made):
    samples = (
        made.blocks("wirespeed", 0.11)
        + made.blocks("low", 0.12)
        + made.blocks("high", 0.10, count=5)
    )
    finding = checks.judge(made.row(samples, ["high"]), Check("core_s_per_gib", ("limit",), 1.15))
    assert finding.over == ("low",)


def test_only_whole_blocks_are_paired(made):
    samples = made.blocks("wirespeed", 0.11, count=12) + made.blocks("low", 0.10, count=11)
    finding = checks.judge(made.row(samples), Check("core_s_per_gib", ("limit",), 1.15))
    assert finding.estimate.count == 11


def test_denominators_add_up(made):
    samples = made.blocks("wirespeed", 0.33) + made.blocks("low", 0.1) + made.blocks("pwrite", 0.2)
    finding = checks.judge(made.row(samples), Check("core_s_per_gib", ("limit", "pwrite"), 1.2))
    assert finding.over == ("low", "pwrite")
    assert finding.estimate.median == pytest.approx(1.1)


def test_throughput_is_a_floor(made):
    samples = [made.sample("wirespeed", b, 0.1, seconds=0.25) for b in range(12)]
    samples += [made.sample("low", b, 0.1, seconds=0.2) for b in range(12)]
    finding = checks.judge(made.row(samples), Check("throughput", ("limit",), 0.95, at_least=True))
    assert finding.estimate.median == pytest.approx(0.8)
    assert finding.verdict == "missed"


def test_what_did_not_run_is_said_to_be_so(made):
    finding = checks.judge(
        made.row(made.blocks("low", 0.1)), Check("core_s_per_gib", ("limit",), 1.15)
    )
    assert finding.verdict == "not run"
    finding = checks.judge(
        made.row(made.blocks("wirespeed", 0.1)), Check("core_s_per_gib", ("peer",), 0.6)
    )
    assert finding.verdict == "not run"


def test_a_check_survives_its_json():
    check = Check("throughput", ("limit",), 0.95, at_least=True)
    assert Check.from_json(check.as_json()) == check


def test_what_is_taken_off_is_taken_off_block_by_block(made):
    samples = []
    for block in range(1, 13):
        level = 0.1 * block
        samples.append(made.sample("wirespeed", block, level + 0.04))
        samples.append(made.sample("low", block, level))
        samples.append(made.sample("pwrite", block, 0.04))
    check = Check("core_s_per_gib", ("pwrite",), 1.2, minus="low")
    finding = checks.judge(made.row(samples), check)
    assert finding.estimate.median == pytest.approx(1)
    assert finding.verdict == "met"
    assert checks.judge(made.row(samples[::3]), check).verdict == "not run"


def test_a_stated_denominator_is_named(made):
    samples = [made.sample("wirespeed", b, 0.1, seconds=(1 << 30) / 1.9e9) for b in range(12)]
    check = Check("throughput", (), 0.9, at_least=True, given=2.0, given_name="NIC")
    finding = checks.judge(made.row(samples), check)
    assert finding.over == ("NIC",)
    assert finding.estimate.median == pytest.approx(0.95)
    assert finding.verdict == "met"


def test_the_best_peer_is_the_cheapest_that_stayed(made):
    row = made.row(
        made.blocks("wirespeed", 0.3) + made.blocks("one", 0.5) + made.blocks("other", 0.4)
    )
    row["contenders"] += [
        {"name": name, "role": "peer", "command": [name]} for name in ("one", "other", "absent")
    ]
    finding = checks.judge(row, Check("core_s_per_gib", ("best peer",), 0.75))
    assert finding.over == ("other",)
    assert finding.estimate.median == pytest.approx(0.75)


def test_an_older_record_is_judged_as_it_was():
    old = {"metric": "seconds", "over": ["limit"], "threshold": 1.1, "at_least": False}
    assert Check.from_json(old) == Check("seconds", ("limit",), 1.1)


def test_another_than_the_engine_can_be_judged(made):
    samples = made.blocks("wirespeed", 0.1) + made.blocks("low", 0.2) + made.blocks("high", 0.3)
    finding = checks.judge(made.row(samples), Check("core_s_per_gib", ("low",), 1.6, of="high"))
    assert finding.estimate.median == pytest.approx(1.5)
    assert finding.verdict == "met"


def test_a_difference_an_object(made):
    samples = [*made.blocks("wirespeed", 0.2), *made.blocks("low", 0.1)]
    for each in samples:
        each["objects"] = 20_000
    asked = Check("core_us_per_object", ("low",), 5, kind="difference")
    finding = checks.judge(made.row(samples), Check.from_json(asked.as_json()))
    assert finding.estimate.median == pytest.approx(5)
    assert str(finding.check.asked) == "≤ +5"


def test_a_row_without_bytes_has_figures_by_the_key(made):
    samples = [*made.blocks("wirespeed", 0.2), *made.blocks("low", 2.0)]
    for each in samples:
        each["bytes"], each["objects"] = 0, 1000
    finding = checks.judge(made.row(samples), Check("core_us_per_key", ("low",), 0.1))
    assert finding.estimate.median == pytest.approx(0.1)
    assert checks.each(made.row(samples), "low", "requests") == 128
    assert checks.each(made.row(samples), "low", "never counted") is None
