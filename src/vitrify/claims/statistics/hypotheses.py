"""Tests of hypotheses: equivalence of a mean, several p values together, two solvers on the same units."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Floats
from vitrify.claims.statistics.estimates import UNKNOWN, mean
from vitrify.intervals import mean_interval


class Equivalence(NamedTuple):
    """A mean, its 90 % interval, whether that lies inside the margin, and the p value of the two one-sided tests."""

    value: float
    interval: tuple[float, float]
    equivalent: bool
    p_value: float


def equivalence(values: ArrayLike, margin: float | tuple[float, float]) -> Equivalence:
    """Test that a mean lies within ± margin, or between two ends, by two one-sided t tests at 5 % (TOST)."""
    from scipy.special import stdtr

    low, high = margin if isinstance(margin, tuple) else (-margin, margin)
    numbers = np.asarray(values, dtype=float)
    if len(numbers) < 2:
        return Equivalence(mean(numbers).value, UNKNOWN, False, math.nan)
    center, error = numbers.mean(), numbers.std(ddof=1) / np.sqrt(len(numbers))
    with np.errstate(divide="ignore", invalid="ignore"):  # equal values: p is 0 or 1, or NaN on the margin
        p_value = float(np.max(stdtr(len(numbers) - 1, np.array([low - center, center - high]) / error)))
    interval = mean_interval(list(numbers), 0.9)
    return Equivalence(float(center), interval, low < interval[0] and interval[1] < high, p_value)


def holm(p_values: ArrayLike) -> Floats:
    """Return Holm's adjusted p values, in the order given.

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=float)
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), 1)
    return adjusted


def mcnemar(b: int, c: int) -> float:
    """Return the exact two-sided p value for b units that only the first solves and c that only the second solves."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(b, c), b + c, 0.5)))
