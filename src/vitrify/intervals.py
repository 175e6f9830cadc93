"""Confidence intervals of means and rates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

CONFIDENCE = 0.95


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the Student t interval for the mean of independent values; for a single value, that value twice."""
    numbers = np.asarray(values, dtype=float)
    mean = float(numbers.mean())
    if len(numbers) == 1:
        return mean, mean
    from scipy.special import stdtrit

    half = float(stdtrit(len(numbers) - 1, (1 + confidence) / 2) * numbers.std(ddof=1) / math.sqrt(len(numbers)))
    return mean - half, mean + half


def rate_interval(count: int, cases: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the two-sided Clopper–Pearson interval of the rate of an event seen `count` times in `cases`.

    >>> [round(end, 3) for end in rate_interval(8, 8)]
    [0.631, 1.0]
    """
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = float(betaincinv(count, cases - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, cases - count, 1 - tail)) if count < cases else 1.0
    return low, high


def upper_failure_rate(failures: int, cases: int, confidence: float = CONFIDENCE) -> float:
    """Return the largest failure rate that a sample does not rule out (one-sided Clopper–Pearson).

    >>> round(upper_failure_rate(0, 100), 4)
    0.0295
    """
    if failures >= cases:
        return 1.0
    if failures == 0:
        return float(1.0 - (1.0 - confidence) ** (1.0 / cases))
    from scipy.special import betaincinv

    return float(betaincinv(failures + 1, cases - failures, confidence))
