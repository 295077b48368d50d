"""What several hosts did together: properties of the merge over any samples."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wirespeed_lab.hosts.merging import Host, NoOverlap, Operation, merge, span

MOST = 10**12
moments = st.integers(0, MOST)


@st.composite
def operations(draw):
    start = draw(moments)
    length = draw(st.integers(0, MOST // 4))
    return Operation(start, start + length, draw(st.integers(0, 1 << 40)), draw(st.integers(1, 9)))


@st.composite
def hosts(draw, least=1):
    """Hosts that are all running around the middle of the time."""
    found = []
    for number in range(draw(st.integers(least, 4))):
        start = draw(st.integers(0, MOST // 2 - 1000))
        end = draw(st.integers(MOST // 2 + 1000, MOST))
        found.append(
            Host(
                f"h{number}",
                start,
                end,
                tuple(draw(st.lists(operations(), max_size=6))),
                draw(st.integers(0, 999)),
            )
        )
    return found


@given(hosts())
def test_the_span_lies_inside_every_host_whatever_its_clock_error(given_hosts):
    start, end = span(given_hosts)
    assert start < end
    for host in given_hosts:
        assert start >= host.start + host.uncertainty
        assert end <= host.end - host.uncertainty


@given(hosts(), st.integers(MOST // 100, MOST))
def test_no_byte_is_made_or_lost(given_hosts, segment_ns):
    merged = merge(given_hosts, segment_ns)
    for host, share in zip(given_hosts, merged.shares, strict=True):
        whole = sum(operation.bytes for operation in host.operations)
        assert share.bytes >= 0
        assert share.bytes_outside >= 0
        assert math.isclose(share.bytes + share.bytes_outside, whole, rel_tol=1e-9, abs_tol=1e-3)


@given(hosts(), st.integers(MOST // 100, MOST))
def test_segments_are_whole_and_hold_no_more_than_the_span(given_hosts, segment_ns):
    merged = merge(given_hosts, segment_ns)
    assert len(merged.segments) == (merged.end - merged.start) // segment_ns
    assert math.fsum(merged.segments) <= merged.bytes * (1 + 1e-9) + 1e-3


@given(hosts(), st.randoms(use_true_random=False))
def test_the_order_of_hosts_and_samples_does_not_matter(given_hosts, random):
    turned = [
        Host(
            h.name,
            h.start,
            h.end,
            tuple(random.sample(h.operations, len(h.operations))),
            h.uncertainty,
        )
        for h in random.sample(given_hosts, len(given_hosts))
    ]
    one, other = merge(given_hosts), merge(turned)
    assert (one.start, one.end) == (other.start, other.end)
    assert math.isclose(one.bytes, other.bytes, rel_tol=1e-9, abs_tol=1e-3)


@given(hosts(), st.integers(-(10**15), 10**15))
def test_only_differences_of_time_count(given_hosts, shift):
    moved = [
        Host(
            h.name,
            h.start + shift,
            h.end + shift,
            tuple(
                Operation(o.start + shift, o.end + shift, o.bytes, o.count) for o in h.operations
            ),
            h.uncertainty,
        )
        for h in given_hosts
    ]
    one, other = merge(given_hosts), merge(moved)
    assert other.start - one.start == shift
    assert one.shares == other.shares
    assert one.segments == other.segments


@given(hosts(least=2))
def test_another_host_never_lengthens_the_span(given_hosts):
    start, end = span(given_hosts)
    first, last = span(given_hosts[:-1])
    assert first <= start < end <= last


def test_what_one_host_does_alone_is_in_no_figure():
    early = Host("early", 0, 3000, (Operation(0, 1000, 500), Operation(1000, 3000, 2000)))
    late = Host("late", 2000, 9000, (Operation(2000, 3000, 70), Operation(3000, 9000, 10**9)))
    merged = merge([early, late])
    assert (merged.start, merged.end) == (2000, 3000)
    assert merged.bytes == 1000 + 70
    assert [share.bytes for share in merged.shares] == [1000, 70]
    assert merged.bytes_per_second == 1070 / 1e-6
    assert merged.operations == 0.5 + 1
    assert "11%" in merged.warnings[0]


def test_a_wrapped_command_counts_its_objects_by_its_mean():
    host = Host("a", 0, 1000, (Operation(0, 1000, 4000, count=8),))
    half = Host("b", 0, 500, ())
    merged = merge([host, half])
    assert merged.operations == 4
    assert merged.bytes == 2000


def test_segments_spread_an_operation_evenly():
    host = Host("a", 0, 10, (Operation(0, 10, 1000), Operation(4, 4, 7)))
    assert merge([host], 4).segments == (400.0, 407.0)


@pytest.mark.parametrize(
    "pair",
    [
        (Host("a", 0, 10, ()), Host("b", 10, 20, ())),
        (Host("a", 0, 10, (), 3), Host("b", 6, 20, (), 2)),
    ],
    ids=["one after the other", "within the clocks' error"],
)
def test_hosts_that_never_ran_together_are_refused_by_name(pair):
    with pytest.raises(NoOverlap, match="b had not begun when a ended"):
        merge(list(pair))


@pytest.mark.parametrize("wrong", [(5, 4, 1, 1), (0, 1, -1, 1), (0, 1, 1, -1)])
def test_impossible_operations_are_refused(wrong):
    with pytest.raises(ValueError, match="not an operation"):
        Operation(*wrong)


def test_no_host_and_no_length_are_refused():
    with pytest.raises(NoOverlap):
        span([])
    with pytest.raises(ValueError, match="segment"):
        merge([Host("a", 0, 1, ())], 0)
