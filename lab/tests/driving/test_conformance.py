"""The conformance test: the reference driver passes, and each way to break the protocol fails."""

import sys

import pytest
from wirespeed_lab.driving.conformance import CASES, conform


@pytest.fixture
def tried(reference, monkeypatch):
    """One case of the conformance test on the reference driver, honest or not."""
    monkeypatch.setattr("wirespeed_lab.driving.process.CLOSE_LIMIT", 2)
    monkeypatch.setattr("wirespeed_lab.driving.process.TERM_LIMIT", 0.3)

    def one(lie, case):
        return conform(reference.command(lie)[:-1], reference.env, only=[case])

    return one


@pytest.mark.parametrize("case", list(CASES))
def test_an_honest_driver_passes_or_says_that_it_cannot(tried, case):
    report = tried("", case)
    assert report.failures == []
    assert report.remarks == []
    assert case in report.passed + report.skipped


@pytest.mark.parametrize(
    ("lie", "case", "said"),
    [
        ("wrong-bytes", "get discard", "wrong bytes"),
        ("wrong-bytes", "get file", "file 3 is wrong at byte 0"),
        ("wrong-bytes", "put", "'conformance/3/00000000'"),
        ("wrong-bytes", "list", "wrong keys"),
        ("missing", "get discard", "items are missing"),
        ("missing", "list", "2499 keys and must have 2500"),
        ("unlisted", "get with a listing", "the server saw 1200 requests, and a listing and"),
        ("fewer", "concurrency 7", "7 items in flight are claimed, and 1 samples overlap"),
        ("more", "concurrency 7", "14 samples overlap, and 7 at most"),
        ("any-version", "bad plans", "took a plan with a newer version"),
        ("wrong-code", "bad plans", "did not refuse a plan with"),
        ("skip", "get discard", "it refuses what it says that it can do"),
        ("eager", "get discard", "before it was ready"),
        ("deaf", "SIGTERM", "in spite of SIGTERM"),
        ("dies-on-error", "failing items", "ended with exit code 1"),
        ("garbage", "get discard", "is not JSON"),
    ],
)
def test_a_driver_that_breaks_the_protocol_fails(tried, lie, case, said):
    report = tried(lie, case)
    assert any(said in failure for failure in report.failures), report
    assert case not in report.passed


def test_what_does_not_describe_itself_is_tried_no_further():
    report = conform([sys.executable, "-c", "print(1)"])
    assert len(report.failures) == 1
    assert report.failures[0].startswith("describe: ")
    assert report.passed == []
