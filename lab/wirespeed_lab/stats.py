"""The statistics that decide when a figure is known, and what it says.

A ratio is paired: each block holds one round of every client, and the figure is
the median over blocks of numerator / denominator within the block, so that what
slows the whole machine for a while cancels out. Its interval is the percentile
bootstrap over blocks (Efron & Tibshirani, An Introduction to the Bootstrap,
chapter 13), which assumes nothing about the shape of the noise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import bootstrap, norm, t

CONFIDENCE = 0.95
RESAMPLES = 2000
#: Fewer blocks than this decide nothing (lab protocol: at least 10).
FEWEST_BLOCKS = 10
#: The interval's half-width must be under this share of the margin asked for.
SHARE_OF_MARGIN = 1 / 3


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A median with its 95 % interval, over ``count`` blocks."""

    median: float
    low: float
    high: float
    count: int

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def expanded(count: int) -> float:
    """The level at which a percentile bootstrap over so few values covers what CONFIDENCE
    claims (Hesterberg, What Teachers Should Know About the Bootstrap, 2015, section 5.3). At the
    plain level 10 values cover 92 %, at this 96 %."""
    if count < 2:
        return CONFIDENCE
    quantile = math.sqrt(count / (count - 1)) * t.ppf((1 + CONFIDENCE) / 2, count - 1)
    return float(2 * norm.cdf(quantile) - 1)


def median_estimate(
    values: Sequence[float], seed: int = 0, confidence: float = CONFIDENCE
) -> Estimate:
    """Median of at least one value with its bootstrap interval at the level ``confidence``. The
    same values and seed give the same interval."""
    data = np.asarray(values, dtype=float)
    if data.size == 0:
        raise ValueError("no values to take a median of")
    middle = float(np.median(data))
    if data.size < 2 or np.ptp(data) == 0:
        return Estimate(middle, middle, middle, int(data.size))
    result = bootstrap(
        (data,),
        np.median,
        vectorized=True,
        confidence_level=confidence,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    interval = result.confidence_interval
    return Estimate(middle, float(interval.low), float(interval.high), int(data.size))


def paired_ratio(
    over: Sequence[float],
    under: Sequence[float],
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Median of ``over[i] / under[i]`` with its interval; both hold one value a block."""
    if len(over) != len(under):
        raise ValueError(f"{len(over)} values can't be paired with {len(under)}")
    if any(value <= 0 for value in under):
        raise ValueError("a denominator is zero or less")
    ratios = [a / b for a, b in zip(over, under, strict=True)]
    return median_estimate(ratios, seed, confidence)


def paired_difference(ours: Sequence[float], theirs: Sequence[float], seed: int = 0) -> Estimate:
    """Median of ``ours[i] - theirs[i]`` with its interval; both hold one value a block."""
    return median_estimate([a - b for a, b in zip(ours, theirs, strict=True)], seed)


@dataclasses.dataclass(frozen=True)
class Threshold:
    """A figure asked for: a ratio at most, or at least, ``value``. By ``kind`` also:
    ``difference``, at most ``value`` more in the metric's own unit; ``equal``, a ratio of one
    give or take the factor ``value``; ``fewer``, a ratio whose interval is below ``value``."""

    value: float
    at_least: bool = False
    kind: str = "ratio"

    @property
    def margin(self) -> float:
        """How far what is asked lies from what equals would have."""
        return abs(self.value - (0 if self.kind == "difference" else 1))

    def resolved(self, estimate: Estimate) -> bool:
        if estimate.count < FEWEST_BLOCKS:
            return False
        if self.kind == "fewer":
            return not estimate.low < self.value <= estimate.high
        return estimate.half_width < self.margin * SHARE_OF_MARGIN

    def verdict(self, estimate: Estimate) -> str:
        """``met``, ``missed``, or ``not resolved`` when the interval is too wide to say."""
        if not self.resolved(estimate):
            return "not resolved"
        match self.kind:
            case "equal":
                reached = 1 / self.value <= estimate.median <= self.value
            case "fewer":
                reached = estimate.high < self.value
            case _ if self.at_least:
                reached = estimate.median >= self.value
            case _:
                reached = estimate.median <= self.value
        return "met" if reached else "missed"

    def __str__(self) -> str:
        match self.kind:
            case "equal":
                return f"1 ± {(self.value - 1) * 100:.2g} %"
            case "fewer":
                return f"< {self.value:g}"
            case "difference":
                return f"≤ +{self.value:g}"
        return f"{'≥' if self.at_least else '≤'} {self.value:g}"
