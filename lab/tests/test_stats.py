import random

import pytest
from wirespeed_lab.stats import (
    CONFIDENCE,
    Estimate,
    Threshold,
    expanded,
    median_estimate,
    paired_difference,
    paired_ratio,
)


def test_interval_holds_the_median_and_is_reproducible():
    noise = random.Random(7)
    values = [noise.gauss(10, 1) for _ in range(60)]
    first, again = median_estimate(values), median_estimate(values)
    assert first == again
    assert first.low < first.median < first.high
    assert 9.5 < first.low < first.high < 10.5


def test_interval_narrows_with_more_blocks():
    noise = random.Random(3)
    values = [noise.gauss(1, 0.1) for _ in range(400)]
    assert median_estimate(values).half_width < median_estimate(values[:20]).half_width


def test_interval_covers_the_true_median_about_as_often_as_it_says():
    noise = random.Random(11)
    covered = 0
    for seed in range(100):
        estimate = median_estimate([noise.expovariate(1) for _ in range(41)], seed)
        covered += estimate.low <= 0.6931 <= estimate.high
    assert 88 <= covered <= 100


def test_an_interval_of_few_blocks_covers_as_often_as_it_says():
    noise = random.Random(13)
    covered = 0
    for seed in range(400):
        estimate = median_estimate([noise.gauss(0, 1) for _ in range(10)], seed, expanded(10))
        covered += estimate.low <= 0 <= estimate.high
    # Of 400 at 95 %: 372 is two standard deviations below. The plain level covers 370 at most.
    assert covered >= 376
    assert expanded(1) == CONFIDENCE < expanded(1000) < expanded(10) < 1


def test_pairing_cancels_what_slows_everyone():
    noise = random.Random(5)
    weather = [noise.uniform(1, 3) for _ in range(30)]
    ours = [w * 1.10 * noise.uniform(0.99, 1.01) for w in weather]
    estimate = paired_ratio(ours, weather)
    assert estimate.median == pytest.approx(1.10, abs=0.01)
    assert estimate.half_width < 0.01


def test_one_value_and_equal_values_have_no_width():
    assert median_estimate([2.0]) == Estimate(2.0, 2.0, 2.0, 1)
    assert median_estimate([2.0, 2.0, 2.0]).half_width == 0


@pytest.mark.parametrize(("over", "under"), [([1.0], []), ([1.0], [0.0]), ([], [])])
def test_what_can_not_be_paired_is_refused(over, under):
    with pytest.raises(ValueError, match=r"."):
        paired_ratio(over, under)


@pytest.mark.parametrize(
    ("threshold", "estimate", "verdict"),
    [
        (Threshold(1.15), Estimate(1.10, 1.08, 1.12, 10), "met"),
        (Threshold(1.15), Estimate(1.20, 1.18, 1.22, 10), "missed"),
        (Threshold(1.15), Estimate(1.00, 0.95, 1.06, 30), "not resolved"),
        (Threshold(1.15), Estimate(1.00, 0.99, 1.01, 9), "not resolved"),
        (Threshold(0.6), Estimate(0.50, 0.40, 0.60, 10), "met"),
        (Threshold(0.95, at_least=True), Estimate(0.96, 0.95, 0.97, 40), "met"),
        (Threshold(0.95, at_least=True), Estimate(0.93, 0.92, 0.94, 40), "missed"),
    ],
)
def test_verdicts(threshold, estimate, verdict):
    assert threshold.verdict(estimate) == verdict


def between(low, high, count=20):
    return Estimate((low + high) / 2, low, high, count)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.5, 0.9, "met"), (0.98, 1.01, "not resolved"), (1.01, 1.5, "missed")],
)
def test_fewer_is_decided_by_the_whole_interval(low, high, verdict):
    assert Threshold(1, kind="fewer").verdict(between(low, high)) == verdict
    assert Threshold(1, kind="fewer").verdict(between(0.5, 0.6, count=9)) == "not resolved"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(4, 5, "met"), (-3, -1, "met"), (5.5, 6.5, "missed"), (2, 6, "not resolved")],
)
def test_a_difference_is_in_the_units_of_what_is_measured(low, high, verdict):
    asked = Threshold(5, kind="difference")
    assert asked.margin == 5
    assert asked.verdict(between(low, high)) == verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.99, 1.0, "met"), (1.02, 1.03, "met"), (0.95, 0.96, "missed"), (0.97, 1.03, "not resolved")],
)
def test_equals_differ_by_little_either_way(low, high, verdict):
    assert Threshold(1.03, kind="equal").verdict(between(low, high)) == verdict


def test_differences_are_paired():
    estimate = paired_difference([11, 22, 31], [10, 20, 30])
    assert (estimate.median, estimate.count) == (1, 3)
    with pytest.raises(ValueError, match="shorter"):
        paired_difference([1, 2, 3], [1, 2])
