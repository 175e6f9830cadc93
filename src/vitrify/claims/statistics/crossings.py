"""Crossings of a level that are known up to the marks at which a curve was measured, and their regression."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Array
from vitrify.claims.statistics.estimates import IntervalEstimate
from vitrify.claims.statistics.likelihood import fit
from vitrify.errors import InputError


def crossing_interval(marks: ArrayLike, losses: ArrayLike, level: ArrayLike, start: float = 0.0) -> tuple[Array, Array]:
    """Return the two ends between which curves [..., mark] first fall to a level, one level for all or one for each.

    Left-censored crossings lie between `start` and the first mark, right-censored ones between the last mark and
    infinity. A NaN loss is a mark that was not measured. For logarithms give those of the marks, and -inf as `start`.

    >>> [end.tolist() for end in crossing_interval([1, 2, 4], [[3, 1, 0], [3, 3, 3], [0, 0, 0]], 1.5)]
    [[1.0, 4.0, 0.0], [2.0, inf, 1.0]]
    """
    positions, curves = np.asarray(marks, dtype=float), np.asarray(losses, dtype=float)
    fallen = curves <= np.asarray(level, dtype=float)[..., None]
    high = np.min(np.where(fallen, positions, np.inf), axis=-1)
    before = ~np.isnan(curves) & (positions < high[..., None])
    return np.max(np.where(before, positions, start), axis=-1), high


class Regression(NamedTuple):
    """Coefficients of the columns of a design, and the standard deviations of residuals and of units' intercepts."""

    coefficients: tuple[IntervalEstimate, ...]
    sigma: float
    sigma_unit: float = 0.0


def interval_regression(
    low: ArrayLike,
    high: ArrayLike,
    design: ArrayLike,
    units: ArrayLike | None = None,
    *,
    min_sigma: float | None = None,
    nodes: int = 24,
) -> Regression:
    r"""Return the maximum likelihood fit of $y = X\beta + \tau u_{unit} + \sigma\varepsilon$ to $low \le y \le high$.

    `u` and `ε` are standard normal; an end may be infinite (censored), and equal ends are an exact value. With
    `units`, the intercept $\tau u$ of every unit is integrated out by Gauss–Legendre quadrature on both sides of
    its posterior mode: Gauss–Hermite quadrature fails for a unit that is censored on one side only.

    The intervals are Wald intervals from the observed information, with Student's t and the factor $\sqrt{n/f}$ for the
    $f$ degrees of freedom of $n$ values or units: without censoring they are those of least squares. $\sigma$ is at
    least `min_sigma`. By default that is $w/\sqrt{12}$ for the median width $w$ of the intervals: values that all share
    an interval say no more. A coefficient that could grow without limit, because what it needs is censored on one side,
    is NaN. Where the likelihood has no strict maximum, no coefficient has an interval.
    """
    ends = np.array([low, high], dtype=float).reshape(2, -1)
    table = np.asarray(design, dtype=float)
    table = table[:, None] if table.ndim == 1 else table
    if np.any(np.isnan(ends)) or np.any(ends[0] > ends[1]):
        raise InputError("every value takes two ends, low <= high; -inf and inf stand for an unknown end")
    labels = None if units is None else np.asarray(units).reshape(-1)
    fitted = fit(ends, table, labels, min_sigma, nodes)
    halves = fitted.quantile * fitted.errors
    pairs = zip(fitted.values.tolist(), halves.tolist(), strict=True)
    return Regression(
        tuple(IntervalEstimate(value, (value - half, value + half)) for value, half in pairs),
        fitted.sigma,
        fitted.sigma_unit,
    )
