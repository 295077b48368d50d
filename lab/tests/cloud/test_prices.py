"""What a launch can cost at most, and tables of prices that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wirespeed_lab.cloud import prices


def test_the_bound_covers_every_machine_until_its_own_end():
    # Two machines at 3.60 an hour and a cent beside, for 55 + 5 minutes.
    assert prices.most(3.60, 2, 55) == 7.22


@given(st.floats(0.001, 100), st.integers(1, 64), st.integers(1, 1440))
def test_the_bound_is_never_less_than_what_the_hours_cost(price, count, minutes):
    assert prices.most(price, count, minutes) >= price * count * minutes / 60
    assert prices.most(price, count + 1, minutes) >= prices.most(price, count, minutes)
    assert prices.most(price, count, minutes + 1) >= prices.most(price, count, minutes)


@pytest.mark.parametrize("wrong", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (-1, 1, 1)])
def test_nothing_has_no_price(wrong):
    with pytest.raises(ValueError, match="at least"):
        prices.most(*wrong)


@pytest.mark.parametrize("budget", [0, -1, 4.99, float("nan")])
def test_above_the_budget_is_refused(budget):
    with pytest.raises(prices.OverBudget, match=r"up to 5\.00 USD"):
        prices.check(5.0, budget)
    prices.check(5.0, 5.0)


def test_the_labs_own_table_can_be_read_and_is_of_one_region():
    table = prices.read()
    assert table.of("c5n.9xlarge", "us-east-1") > table.of("c5n.xlarge", "us-east-1")
    with pytest.raises(prices.BadPrices, match="eu-central-1 has others"):
        table.of("c5n.xlarge", "eu-central-1")
    with pytest.raises(prices.BadPrices, match=r"no price of x9\.huge"):
        table.of("x9.huge", "us-east-1")


GOOD = 'region = "r"\nas_of = "today"\n[usd_per_hour]\n"a.b" = 1\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("region = ", "Invalid|invalid|Expected"),
        ("", "needs region"),
        (GOOD.replace("[usd_per_hour]", "[other]"), "needs region"),
        (GOOD.replace('"r"', '""'), "region is text"),
        (GOOD.replace("= 1", "= 0"), "is no price"),
        (GOOD.replace("= 1", "= true"), "is no price"),
        (GOOD.replace("= 1", "= nan"), "is no price"),
        (GOOD.replace("= 1", '= "1"'), "is no price"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path, text, said):
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(prices.BadPrices, match=said):
        prices.read(file)
