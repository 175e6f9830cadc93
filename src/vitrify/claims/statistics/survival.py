"""Survival of units until an event, such as the escape from a plateau, with right-censored times."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Bools, Floats, Ints


class Survival(NamedTuple):
    """Survival just after every time of an event; `share(events, at_risk)` is the hazard there."""

    times: Floats
    survival: Floats
    events: Ints
    at_risk: Ints


def kaplan_meier(times: ArrayLike, observed: ArrayLike) -> Survival:
    """Return the Kaplan–Meier estimate; a time that is not observed is right-censored.

    >>> kaplan_meier([1, 2, 2, 3], [True, True, False, True]).survival.tolist()
    [0.75, 0.5, 0.0]
    """
    ends, seen = np.asarray(times, dtype=float), np.asarray(observed, dtype=bool)
    steps = np.unique(ends[seen])
    events, at_risk = _risk(steps, ends, seen)
    return Survival(steps, np.cumprod(1 - events / at_risk, dtype=np.float64), events, at_risk)


def _risk(steps: Floats, times: Floats, observed: Bools) -> tuple[Ints, Ints]:
    """Return the number of events and of units at risk at each step."""
    events = np.sum((times == steps[:, None]) & observed, axis=1)
    return events, np.sum(times >= steps[:, None], axis=1)


def log_rank(times_a: ArrayLike, observed_a: ArrayLike, times_b: ArrayLike, observed_b: ArrayLike) -> float:
    """Return the two-sided p value of the log-rank test that two groups survive alike; NaN without an event."""
    from scipy.special import ndtr

    first, second = np.asarray(times_a, dtype=float), np.asarray(times_b, dtype=float)
    seen_a, seen_b = np.asarray(observed_a, dtype=bool), np.asarray(observed_b, dtype=bool)
    steps = np.unique(np.concatenate([first[seen_a], second[seen_b]]))
    (d_a, n_a), (d_b, n_b) = _risk(steps, first, seen_a), _risk(steps, second, seen_b)
    d, n = d_a + d_b, n_a + n_b
    variance = np.sum(n_a * n_b * d * (n - d) / (n**2 * np.maximum(n - 1, 1)))
    if variance <= 0:
        return math.nan
    return float(2 * ndtr(-abs(np.sum(d_a - n_a * d / n)) / math.sqrt(variance)))
