"""What an interval of ours says of a published ratio."""

import pytest
from wirespeed_lab.results import verdicts
from wirespeed_lab.results.verdicts import Claimed, verdict
from wirespeed_lab.stats import Estimate

HALF = Claimed.of_ratio(0.5)


@pytest.mark.parametrize(
    ("claimed", "ours", "expected"),
    [
        (HALF, (0.5, 0.45, 0.55), verdicts.AGREES),
        (HALF, (0.74, 0.7, 0.8), verdicts.AGREES),
        (HALF, (0.9, 0.85, 0.95), verdicts.DIRECTION),
        (HALF, (0.1, 0.05, 0.2), verdicts.DIRECTION),
        (HALF, (0.9, 0.8, 1.0), verdicts.NO_DIFFERENCE),
        (HALF, (1.2, 1.1, 1.3), verdicts.DISAGREES),
        (Claimed("more", 2, 3), (4.4, 4.0, 5.0), verdicts.AGREES),
        (Claimed("more", 2, 3), (4.6, 4.0, 5.0), verdicts.DIRECTION),
        (Claimed("more"), (9.0, 8.0, 10.0), verdicts.AGREES),
        (Claimed("less"), (9.0, 8.0, 10.0), verdicts.DISAGREES),
        (Claimed("equal"), (1.3, 0.9, 1.7), verdicts.AGREES),
        (Claimed("equal"), (1.03, 1.02, 1.04), verdicts.AGREES),
        (Claimed("not more"), (0.5, 0.4, 0.6), verdicts.AGREES),
        (Claimed("not more"), (1.3, 0.9, 1.7), verdicts.AGREES),
        (Claimed("not more"), (1.3, 1.1, 1.7), verdicts.DISAGREES),
        (Claimed("equal"), (1.1, 1.02, 1.2), verdicts.DISAGREES),
    ],
)
def test_each_verdict(claimed, ours, expected):
    assert verdict(claimed, Estimate(*ours, count=10)) == expected


def test_too_few_rounds_and_none_are_not_measured():
    assert verdict(HALF, Estimate(0.5, 0.5, 0.5, count=4)) == verdicts.NOT_MEASURED
    assert verdict(HALF, None) == verdicts.NOT_MEASURED


def test_published_figures_close_to_each_other_claim_no_difference():
    assert Claimed.of_ratio(529 / 530).side == "equal"
    assert Claimed.of_ratio(1.1).side == "more"
    assert Claimed.of_ratio(0.9).side == "less"
