"""Plans: what compiling keeps whatever the numbers are, and what is refused when one is read."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wirespeed_lab.plans import BadPlanFile, BadWorkload, Item, Plan, Workload

counts = st.integers(1, 300)
sizes = st.integers(1, 1 << 32)
scales = st.floats(0.001, 5)
seeds = st.integers(0, (1 << 63) - 1)


def workload(shape, table, operation="get", **fields):
    said = {"version": 1, "title": "t", "operation": operation, shape: table, **fields}
    return Workload.from_table(said, "w", "w.toml")


shapes = st.one_of(
    st.builds(lambda n, s: ("objects", {"prefix": "p/", "count": n, "size": s}), counts, sizes),
    st.builds(
        lambda s, parts: ("object", {"key": "k", "size": s, "ranges": max(1, s // parts)}),
        sizes,
        counts,
    ),
    st.builds(
        lambda n, m, sigma, seed: (
            "mixed",
            {"prefix": "m/", "count": n, "median": m, "sigma": sigma, "random_seed": seed},
        ),
        counts,
        st.integers(1, 1 << 20),
        st.floats(0, 3),
        seeds,
    ),
    st.builds(
        lambda s, n, part, align, seed: (
            "ranges",
            {
                "key": "k",
                "size": s,
                "count": n,
                "length": max(1, s // part),
                "align": align,
                "random_seed": seed,
            },
        ),
        sizes,
        counts,
        counts,
        st.integers(1, 1 << 16),
        seeds,
    ),
)


def scaled(shape, scales):
    return workload(*shape) if shape[0] == "object" else workload(*shape, scales=scales)


@given(shapes, scales, st.sampled_from(["count", "size"]))
@settings(max_examples=150, deadline=None)
def test_compiling_is_pure_and_what_it_makes_survives_json(shape, scale, scales):
    made = scaled(shape, scales).compile(scale)
    assert made == scaled(shape, scales).compile(scale)
    assert Plan.from_json(json.loads(json.dumps(made.as_json()))) == made


@given(shapes, scales, st.sampled_from(["count", "size"]))
@settings(max_examples=150, deadline=None)
def test_every_item_lies_in_what_the_store_must_hold(shape, scale, scales):
    made = scaled(shape, scales).compile(scale)
    held = {key: series.size for series in made.contents() for key in series.keys()}  # noqa: SIM118
    assert {item.key: item.size for item in made.work} == held
    for item in made.work:
        first, end = item.range or (0, item.size)
        assert 0 <= first <= end <= item.size
        assert item.bytes == end - first
    assert made.bytes == sum(item.bytes for item in made.work)


@given(sizes, counts)
@settings(deadline=None)
def test_ranges_of_one_object_are_all_of_it_once(size, parts):
    table = {"key": "k", "size": size, "ranges": max(1, size // parts)}
    made = workload("object", table).compile()
    at = 0
    for item in made.work:
        assert item.range[0] == at
        at = item.range[1]
    assert at == size


@given(counts, st.integers(1, 1 << 24), st.floats(0, 2), seeds)
@settings(deadline=None)
def test_mixed_sizes_are_as_many_and_within_bounds(count, median, sigma, seed):
    table = {"prefix": "m/", "count": count, "median": median, "sigma": sigma, "random_seed": seed}
    bounds = {"smallest": max(1, median // 2), "largest": median * 4}
    made = workload("mixed", {**table, **bounds}).compile()
    assert made.objects == count
    assert all(bounds["smallest"] <= item.size <= bounds["largest"] for item in made.work)
    assert len({item.key for item in made.work}) == count
    # No more words for the server than there are classes, and lone objects among them.
    assert len(made.contents()) <= 32


def test_mixed_sizes_are_log_normal_about_their_median():
    table = {"prefix": "m/", "count": 10_000, "median": 1 << 18, "sigma": 1.5, "random_seed": 1}
    found = sorted(item.size for item in workload("mixed", table).compile().work)
    assert found[5000] == pytest.approx(1 << 18, rel=0.07)
    # One standard deviation up and down: e to the power of sigma.
    assert found[8413] / (1 << 18) == pytest.approx(4.48, rel=0.1)
    assert (1 << 18) / found[1587] == pytest.approx(4.48, rel=0.1)


def test_another_seed_is_another_order_of_the_same_objects():
    table = {"prefix": "m/", "count": 200, "median": 1000, "sigma": 1}
    one = workload("mixed", {**table, "random_seed": 1}).compile().work
    two = workload("mixed", {**table, "random_seed": 2}).compile().work
    assert one != two
    assert set(one) == set(two)


@pytest.mark.parametrize(
    ("scale", "by_count", "by_size"),
    [
        (1, (100, 100 << 20), (100, 100 << 20)),
        (0.1, (10, 10 << 20), (100, 100 * 104_858)),
        (0.000_001, (1, 1 << 20), (100, 100)),
    ],
)
def test_a_scale_is_of_the_number_or_of_the_sizes(scale, by_count, by_size):
    table = {"prefix": "p/", "count": 100, "size": 1 << 20}
    for scales, wanted in (("count", by_count), ("size", by_size)):
        made = workload("objects", table, scales=scales).compile(scale)
        assert (made.objects, made.bytes) == wanted
        assert made.scale == scale


def test_one_object_is_scaled_by_its_size_and_a_listing_by_its_keys():
    one = workload("object", {"key": "k", "size": 8 << 20, "ranges": 1 << 20}).compile(4)
    assert (one.bytes, one.objects, one.scale) == (32 << 20, 32, 4)
    with pytest.raises(BadWorkload, match=r"w\.toml: scales .*size"):
        workload("object", {"key": "k", "size": 1}, scales="count")
    with pytest.raises(BadWorkload, match="scales"):
        workload("prefix", {"name": "k/", "keys": 40}, "list", scales="size")


def test_scaled_sizes_are_whole_mebibytes_where_they_are_that_large():
    made = workload("object", {"key": "k", "size": 3 * 10**9}, scales="size")
    assert made.compile(0.1).bytes % (1 << 20) == 0
    assert made.compile().bytes == 3 * 10**9


def test_a_listing_is_in_the_store_as_it_is_to_be_found():
    made = workload("prefix", {"name": "k/", "keys": 40}, "list").compile(0.5)
    assert made.objects == 20
    assert made.bytes == 0
    (series,) = made.contents()
    assert (series.prefix, series.count, series.digits) == ("k/", 20, 8)
    assert made.for_driver("e", "r", "b")["work"] == [{"prefix": "k/", "keys": 20}]


def test_a_put_needs_nothing_in_the_store():
    made = workload("objects", {"prefix": "p/", "count": 3, "size": 5}, "put").compile()
    assert made.contents() == ()
    assert made.bytes == 15


def test_keys_one_by_one_are_taken_from_the_front():
    objects = [{"key": "b", "size": 1}, {"key": "a", "size": 2}]
    made = workload("keys", {"objects": objects})
    assert [item.key for item in made.compile().work] == ["b", "a"]
    assert [item.key for item in made.compile(0.5).work] == ["b"]


def test_a_driver_gets_what_the_protocol_has():
    made = workload("objects", {"prefix": "p/", "count": 1, "size": 5}, concurrency=3).compile()
    assert made.for_driver("http://h:1", "r", "b", "/ca.pem", "/files") == {
        "type": "plan",
        "version": 1,
        "workload": "w",
        "operation": "get",
        "sink": "discard",
        "source": "memory",
        "concurrency": 3,
        "part_size": None,
        "checksums": None,
        "listing": None,
        "endpoint": "http://h:1",
        "region": "r",
        "bucket": "b",
        "path_style": True,
        "ca_file": "/ca.pem",
        "folder": "/files",
        "work": [{"key": "p/00000000", "size": 5}],
    }


def plan(**changed):
    work = (Item("a", 10), Item("b", 10, (2, 5)))
    return {**Plan("w", "get", "discard", work).as_json(), **changed}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"version": 2}, "version is 2, and this lab knows plans up to 1"),
        ({"version": 0}, "version is 0, and must be a whole number"),
        ({"version": None}, "version is None"),
        ({"work": []}, "work is [], and must be a list of 1 to"),
        ({"work": "a"}, "work is 'a', and must be a list"),
        ({"work": ["a"]}, "work[0]: is 'a', and must be a table"),
        ({"work": [{"key": "a"}]}, "work[0]: size is missing"),
        ({"work": [{"key": "", "size": 1}]}, "work[0]: key is '', and must be a key"),
        ({"work": [{"key": "\ud800", "size": 1}]}, "and must be a key"),
        ({"work": [{"key": "é" * 513, "size": 1}]}, "and must be a key of 1 to 1,024 bytes"),
        ({"work": [{"key": "a", "size": -1}]}, "work[0]: size is -1"),
        ({"work": [{"key": "a", "size": 1, "range": [0, 2]}]}, "range is [0, 2], and must be"),
        ({"work": [{"key": "a", "size": 1, "range": [1, 1]}]}, "range is [1, 1], and must be"),
        ({"work": [{"key": "a", "size": 1, "range": [0]}]}, "range is [0], and must be"),
        ({"work": [{"key": "a", "size": 1, "x": 0}]}, "work[0]: there is no field 'x'"),
        ({"work": [{"key": "a", "size": 1}, {"key": "a", "size": 2}]}, "'a' has another size"),
        ({"operation": "list"}, "work[0]: is no item of a list"),
        ({"operation": "put"}, "work[1]: a put writes whole objects"),
        ({"mode": "tepid"}, "mode is 'tepid', and must be one of warm, cold, one-shot"),
        ({"scale": 0}, "scale is 0, and must be a number"),
        ({"scale": float("inf")}, "scale is inf, and must be a number"),
        ({"tls": None}, "tls is None, and must be true or false"),
        ({"listing": "a"}, "listing finds whole objects below 'a' only"),
        ({"surprise": 1}, "there is no field 'surprise'"),
    ],
)
def test_a_plan_that_is_malformed_is_refused_with_the_field(changed, said):
    with pytest.raises(BadPlanFile) as error:
        Plan.from_json(plan(**changed), "plan.json")
    assert str(error.value).startswith("plan.json")
    assert said in str(error.value)


@pytest.mark.parametrize("given", [None, [], "plan", 3])
def test_what_is_no_table_is_no_plan(given):
    with pytest.raises(BadPlanFile, match="must be a table"):
        Plan.from_json(given)


def test_a_listing_finds_keys_in_their_order():
    work = [{"key": "p/2", "size": 1}, {"key": "p/1", "size": 1}]
    with pytest.raises(BadPlanFile, match="not in the order"):
        Plan.from_json(plan(work=work, listing="p/"))
    Plan.from_json(plan(work=work[::-1], listing="p/"))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_no_value_of_any_field_gets_past_the_check_or_breaks_it(value):
    for name in plan():
        with contextlib.suppress(BadPlanFile):
            assert getattr(Plan.from_json(plan(**{name: value})), name) == value
