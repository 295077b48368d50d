"""Estimates of clocks: the truth always lies within what is said of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wirespeed_lab.hosts import clocks
from wirespeed_lab.hosts.clocks import ClocksApart, Exchange, Offset

delays = st.integers(0, 10**9)


@st.composite
def conversations(draw):
    """Exchanges with a clock that is truly so much ahead, whatever the delays of each way."""
    ahead = draw(st.integers(-(10**15), 10**15))
    now, found = 0, []
    for _ in range(draw(st.integers(1, 8))):
        there, busy, back = draw(delays), draw(delays), draw(delays)
        heard = now + there
        found.append(Exchange(now, heard + ahead, heard + busy + ahead, heard + busy + back))
        now = heard + busy + back
    return ahead, found


@given(conversations())
def test_the_true_offset_is_within_the_uncertainty(conversation):
    ahead, exchanges = conversation
    said = clocks.estimate(exchanges)
    assert abs(said.ahead - ahead) <= said.uncertainty
    assert said.uncertainty <= min(e.round_trip for e in exchanges) // 2 + 2


@given(conversations(), st.integers(0, 10**18))
def test_times_translate_back_and_forth(conversation, moment):
    offset = clocks.estimate(conversation[1])
    assert offset.to_ours(offset.to_theirs(moment)) == moment


@given(conversations(), conversations())
def test_two_estimates_join_to_one_that_covers_both(one, other):
    before = clocks.estimate(one[1])
    # The same clock, a little drifted, asked again.
    moved = other[0] - one[0] - 1000
    after = clocks.estimate(
        [Exchange(e.asked, e.heard - moved, e.said - moved, e.answered) for e in other[1]]
    )
    try:
        both = clocks.joined("h", before, after)
    except ClocksApart:
        return
    for truth in (one[0], one[0] + 1000):
        assert abs(both.ahead - truth) <= both.uncertainty


def test_the_shortest_round_trip_is_believed():
    far = Exchange(0, 900, 900, 1000)
    near = Exchange(1000, 1505, 1505, 1010)
    said = clocks.estimate([far, near])
    assert said.ahead == 500
    assert said.uncertainty == 6


@pytest.mark.parametrize(
    "wrong", [[], [Exchange(10, 0, 0, 9)], [Exchange(0, 5, 4, 10)], [Exchange(0, 0, 20, 10)]]
)
def test_clocks_that_go_backwards_are_refused(wrong):
    with pytest.raises(ValueError, match=r"backwards|no exchange"):
        clocks.estimate(wrong)


def test_a_far_host_is_refused_because_its_time_is_not_known():
    with pytest.raises(ClocksApart, match=r"a:1: its clock is known to 25\.0 ms only"):
        clocks.check("a:1", Offset(5, 25_000_000, 0))


@pytest.mark.parametrize("ahead", [-1_600_000_000, 1_600_000_000])
def test_wall_clocks_that_differ_are_refused_above_the_bound(ahead):
    with pytest.raises(ClocksApart, match="1600 ms off ours, and 1000 ms are allowed"):
        clocks.check("a:1", Offset(0, 1000, ahead))
    clocks.check("a:1", Offset(0, 1000, ahead), wall_bound_ns=2_000_000_000)


def test_the_monotonic_offset_itself_may_be_anything():
    clocks.check("a:1", Offset(-(10**17), 1000, 0))


def test_a_clock_that_jumped_during_a_round_is_refused():
    with pytest.raises(ClocksApart, match=r"moved by \+500\.0 ms"):
        clocks.joined("a:1", Offset(0, 1000, 0), Offset(500_000_000, 1000, 0))
