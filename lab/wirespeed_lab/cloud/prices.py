"""What machines cost by the hour, and what a launch can cost at most.

A price that nobody confirmed is no price: the table that comes with the lab is old by the time it
is read.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path

TABLE = Path(__file__).with_name("prices.toml")
#: Minutes that a machine may live on after its own timer: the shutdown itself.
SHUTDOWN_MINUTES = 5
#: USD an hour for each machine's root volume (20 GB of gp3) and public address, rounded up.
BESIDE = 0.01


class BadPrices(ValueError):
    """A table of prices that can't be used, or that lacks the type. The text says what to do."""


class OverBudget(Exception):
    """The launch could cost more than the budget."""


@dataclasses.dataclass(frozen=True)
class Prices:
    """USD an hour by instance type, for one region, as of a date, from a file."""

    region: str
    as_of: str
    usd_per_hour: Mapping[str, float]
    source: str

    def of(self, instance_type: str, region: str) -> float:
        """Raises BadPrices."""
        if region != self.region:
            raise BadPrices(
                f"{self.source} has prices of {self.region}, and {region} has others: "
                "give a table of that region with --prices"
            )
        if instance_type not in self.usd_per_hour:
            raise BadPrices(f"{self.source} has no price of {instance_type}: add it, or --prices")
        return self.usd_per_hour[instance_type]


def read(path: Path = TABLE) -> Prices:
    """The table in a file. Raises BadPrices, and OSError."""
    try:
        table = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadPrices(f"{path}: {error}") from None
    unknown = table.keys() - {"region", "as_of", "usd_per_hour"}
    rows = table.get("usd_per_hour")
    if unknown or not isinstance(rows, dict) or not rows:
        raise BadPrices(f"{path} needs region, as_of and a table usd_per_hour, and nothing else")
    for field in ("region", "as_of"):
        if not isinstance(table.get(field), str) or not table[field]:
            raise BadPrices(f"{path}: {field} is text")
    for name, price in rows.items():
        number = isinstance(price, int | float) and not isinstance(price, bool)
        if not number or not 0 < price < 1000:
            raise BadPrices(f"{path}: {name} = {price!r} is no price in USD an hour")
    return Prices(table["region"], table["as_of"], rows, str(path))


def most(usd_per_hour: float, count: int, minutes: int) -> float:
    """USD that so many machines can cost at most, if each lives until its own timer ends it. Raises
    ValueError for a count or time of nothing."""
    if count < 1 or minutes < 1 or usd_per_hour <= 0:
        raise ValueError("at least one machine, one minute and a price")
    hours = (minutes + SHUTDOWN_MINUTES) / 60
    # To the next cent, up: a bound that was rounded down would be none.
    return math.ceil(count * (usd_per_hour + BESIDE) * hours * 100) / 100


def check(cost: float, budget: float) -> None:
    """Raises OverBudget."""
    if not budget > 0 or cost > budget:
        raise OverBudget(
            f"this can cost up to {cost:.2f} USD, and the budget is {budget:.2f}: fewer or smaller "
            "machines, fewer --minutes, or a higher --budget"
        )
