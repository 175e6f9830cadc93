"""Slopes over units of replication, such as the exponent of a power law, each with the quadratic term beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Array, Floats
from vitrify.claims.statistics.estimates import DRAWS, IntervalEstimate, bootstrap, percentiles


class Trend(NamedTuple):
    """The slope of the straight line, and the coefficient of x² of the parabola: a power law needs one around 0."""

    slope: IntervalEstimate
    quadratic: IntervalEstimate


def mixed_slope(x: ArrayLike, y: ArrayLike, units: ArrayLike) -> Trend:
    """Return the trend of y in x with an intercept for every unit, and bootstrap intervals over units.

    The three arrays have one entry for each measurement. A unit with a single x says nothing about a slope within
    units; for units that have one x each, use `slope_over`.
    """
    flat = (np.asarray(each).reshape(-1) for each in (x, y, units))
    first, second, labels = flat
    _, groups = np.unique(labels, return_inverse=True)
    member = (groups == np.arange(groups.max() + 1)[:, None]).astype(float)
    terms = np.stack([first - first.mean(), (first - first.mean()) ** 2, second]).astype(float)
    within = terms - (terms @ member.T / member.sum(axis=1))[:, groups]
    xx, xq, qq, xy, qy = (member @ (within[i] * within[j]) for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2)))

    def slope(sums: Array) -> Array:
        """Return the slope of the units' sums [draw, unit, (xx, xy)]."""
        total = sums.sum(axis=1)
        return _ratio(total[:, 1], total[:, 0], total[:, 0])

    def quadratic(sums: Array) -> Array:
        """Return the quadratic coefficient of the sums [draw, unit, (xx, xq, qq, xy, qy)]."""
        xx, xq, qq, xy, qy = np.moveaxis(sums.sum(axis=1), -1, 0)
        return _ratio(xx * qy - xq * xy, xx * qq - xq**2, xx * qq)

    return Trend(
        bootstrap(np.stack([xx, xy], axis=1), slope, vectorized=True),
        bootstrap(np.stack([xx, xq, qq, xy, qy], axis=1), quadratic, vectorized=True),
    )


def _ratio(above: Floats, below: Floats, size: Floats) -> Floats:
    """Return a quotient, NaN where the denominator is 0 but for rounding."""
    sure = below > 1e-10 * size
    return np.where(sure, above / np.where(sure, below, 1.0), np.nan)


def slope_over(x: Sequence[float], groups: Sequence[ArrayLike], draws: int = DRAWS, seed: int = 0) -> Trend:
    """Return the trend of units' values over groups of units, one x for each group; units are drawn within groups.

    Percentile intervals of least squares over all units. Groups of n units give intervals too narrow by about 1/(2n).
    """
    values = [np.asarray(group, dtype=float) for group in groups]
    positions = np.repeat(np.asarray(x, dtype=float), [len(group) for group in values])
    rng = np.random.default_rng(seed)
    sampled = np.concatenate([group[rng.integers(0, len(group), (draws, len(group)))] for group in values], axis=1)
    centered = positions - positions.mean()

    def coefficient(degree: int) -> IntervalEstimate:
        if len(np.unique(positions)) <= degree or min(map(len, values)) < 2:
            return IntervalEstimate(math.nan)
        weights = np.linalg.pinv(np.vander(centered, degree + 1))[0]
        return IntervalEstimate(float(np.concatenate(values) @ weights), percentiles(sampled @ weights))

    return Trend(coefficient(1), coefficient(2))
