"""Capacity of memories: facts as bits, and the number of facts stored at 99 % accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from vitrify.arrays import Array

MIN_ACCURACY = 0.99
TEST_ROWS = 512
MIN_ERROR = 0.5 / TEST_ROWS
ANSWERS = 4  # possible answers of a fact about a subject and a relation


def facts_of(bits: float, relations: bool) -> int:
    """Return the number of facts with these bits: of subjects and relations, or of inputs with one answer each."""
    if relations:
        return round(float(bits / np.log2(ANSWERS)))
    return round(float(brentq(lambda n: n * np.log2(n) - bits, 1.0, bits + 2)))


def bits_of(facts: Array, relations: bool) -> Array:
    """Return the bits of a number of facts."""
    return facts * np.log2(ANSWERS if relations else facts)


def reached(sizes: Sequence[float], losses: Sequence[float], level: float) -> float:
    """Return the size at which a loss first falls to a level, interpolated in ln size; infinite if never.

    >>> round(reached([100, 1000], [2.0, 1.0], 1.5))
    316
    >>> reached([100, 1000], [2.0, 1.0], 0.5)
    inf
    """
    at = next((at for at, loss in enumerate(losses) if loss <= level), None)
    if not at:
        return math.inf if at is None else float(sizes[0])
    ahead = float((losses[at - 1] - level) / (losses[at - 1] - losses[at]))
    return float(sizes[at - 1] * (sizes[at] / sizes[at - 1]) ** ahead)


def crossing(rungs: Sequence[int], accuracy: Sequence[float]) -> float:
    """Return the number of facts at which the accuracy first falls to 0.99, or the last rung if it never does.

    Between two rungs the log of the error, at least half a test example, is interpolated in the log of the facts.
    """
    error = np.log(np.maximum(1 - np.asarray(accuracy, dtype=float), MIN_ERROR))
    return min(reached(rungs, -error, -math.log(1 - MIN_ACCURACY)), float(rungs[-1]))
