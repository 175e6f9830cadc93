"""Estimates with 95 % intervals: means, paired differences, shares, and any statistic by bootstrap over units."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Array, Floats, Ints
from vitrify.errors import InputError
from vitrify.intervals import CONFIDENCE, mean_interval, rate_interval

DRAWS = 10_000  # bootstrap samples
CHUNK = 1 << 22  # numbers that are resampled at a time
MAX_EXPONENT = 709.0  # of a float
UNKNOWN = (math.nan, math.nan)
TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


class IntervalEstimate(NamedTuple):
    """A point estimate and its 95 % interval, which has NaN ends where the units do not determine it."""

    value: float
    interval: tuple[float, float] = UNKNOWN

    @property
    def known(self) -> bool:
        """Return whether there is an interval."""
        return not any(map(math.isnan, self.interval))

    def contains(self, x: float) -> bool:
        """Return whether a number lies in the interval."""
        return self.interval[0] <= x <= self.interval[1]

    def above(self, x: float) -> bool:
        """Return whether the whole interval lies above a number."""
        return self.interval[0] > x

    def below(self, x: float) -> bool:
        """Return whether the whole interval lies below a number."""
        return self.interval[1] < x

    def exp(self) -> IntervalEstimate:
        """Return the estimate of a ratio from that of its logarithm."""
        value, low, high = (math.exp(min(x, MAX_EXPONENT)) for x in (self.value, *self.interval))
        return IntervalEstimate(value, (low, high))


def mean(values: ArrayLike) -> IntervalEstimate:
    """Return the mean of the units with Student's t interval; fewer than two units have no interval.

    >>> mean([1.0, 2.0, 3.0]).contains(1.0), mean([1.0]).contains(1.0)
    (True, False)
    """
    numbers = np.asarray(values, dtype=float)
    if len(numbers) < 2:
        return IntervalEstimate(float(numbers[0]) if len(numbers) else math.nan)
    return IntervalEstimate(float(numbers.mean()), mean_interval(list(numbers)))


def paired(one: ArrayLike, other: ArrayLike) -> IntervalEstimate:
    """Return the mean difference `one - other` of the same units; give logarithms for a ratio."""
    first, second = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    if first.shape != second.shape:
        raise InputError(f"a paired difference takes two values of every unit: {len(first)} and {len(second)} given")
    return mean(first - second)


def share(successes: int, total: int) -> IntervalEstimate:
    """Return the share of units that succeed, with its Clopper–Pearson interval."""
    return IntervalEstimate(successes / total, rate_interval(successes, total)) if total else IntervalEstimate(math.nan)


def bootstrap(
    units: ArrayLike,
    statistic: Callable[[Array], Array],
    *,
    draws: int = DRAWS,
    bca: bool = True,
    vectorized: bool = False,
    seed: int = 0,
) -> IntervalEstimate:
    """Return a statistic of an array [unit, ...] with its bootstrap interval over units: BCa, or percentiles.

    A vectorized statistic maps samples [draw, unit, ...] to [draw]; otherwise it maps one sample to a number.
    Percentiles replace BCa where bias or acceleration is undefined. A draw on which the statistic is not finite counts
    as the least for the lower end and as the greatest for the upper end; the interval is NaN where an end falls on such
    a draw.

    >>> bootstrap([1.0, 2.0, 4.0, 8.0, 16.0], np.median).contains(4.0)
    True
    """
    rows = np.asarray(units, dtype=float)
    n = len(rows)

    def evaluate(picks: Ints) -> Floats:
        size = max(1, CHUNK // max(1, rows.size))
        parts = (rows[picks[start : start + size]] for start in range(0, len(picks), size))
        done = [statistic(part) if vectorized else [statistic(sample) for sample in part] for part in parts]
        return np.concatenate([np.asarray(part, dtype=float) for part in done])

    value = float(evaluate(np.arange(n)[None])[0])
    if n < 2 or not math.isfinite(value):
        return IntervalEstimate(value)
    sampled = evaluate(np.random.default_rng(seed).integers(0, n, (draws, n)))
    tails = TAILS
    if bca:
        left_out = np.array([np.delete(np.arange(n), unit) for unit in range(n)])
        tails = _bca_tails(value, sampled[np.isfinite(sampled)], evaluate(left_out))
    return IntervalEstimate(value, percentiles(sampled, tails))


def _bca_tails(value: float, sampled: Floats, jackknife: Floats) -> tuple[float, float]:
    """Return the two probabilities whose percentiles correct bias and skewness, or the plain ones (Efron 1987)."""
    from scipy.special import ndtr, ndtri

    with np.errstate(all="ignore"):
        bias = ndtri((np.mean(sampled < value) + np.mean(sampled <= value)) / 2) if len(sampled) else math.nan
        away = jackknife.mean() - jackknife
        acceleration = np.sum(away**3) / (6 * np.sum(away**2) ** 1.5)
        shifted = bias + ndtri(TAILS)
        low, high = ndtr(bias + shifted / (1 - acceleration * shifted))
    return (float(low), float(high)) if low < high and math.isfinite(bias) else TAILS


def percentiles(sampled: Floats, tails: tuple[float, float] = TAILS) -> tuple[float, float]:
    """Return two percentiles of bootstrap draws, NaN where one falls on a draw that is not finite."""
    finite = np.isfinite(sampled)
    with np.errstate(invalid="ignore"):
        low = float(np.quantile(np.where(finite, sampled, -np.inf), tails[0]))
        high = float(np.quantile(np.where(finite, sampled, np.inf), tails[1]))
    return (low, high) if math.isfinite(low) and math.isfinite(high) else UNKNOWN
