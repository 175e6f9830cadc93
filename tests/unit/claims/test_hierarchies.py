"""Steps, plateaus and exponents of curves that are known."""

from __future__ import annotations

import math

import numpy as np

from vitrify.claims.trials.hierarchies import exponent, flattest, middles, steps_taken
from vitrify.claims.trials.ladders import reached

SIZES = tuple(1 << k for k in range(6, 20))
STAIRS = np.array([3.0, 1.5, 0.7, 0.3, 0.2])


def test_the_exponent_of_a_power_law() -> None:
    losses = 0.2 + 30 * np.array(SIZES, dtype=float) ** -0.5
    assert math.isclose(exponent(SIZES, losses, STAIRS), 0.5, rel_tol=0.02)
    assert math.isnan(exponent(SIZES[:6], losses[:6], STAIRS))


def test_a_step_is_taken_half_way_and_the_flattest_part_is_the_stair() -> None:
    at = np.log(SIZES)
    losses = 0.7 + 0.8 / (1 + np.exp(4 * (at - np.log(500)))) - 0.4 / (1 + np.exp(-4 * (at - np.log(50_000))))
    assert math.isclose(reached(SIZES, losses, middles(STAIRS)[1]), 500, rel_tol=0.05)
    assert math.isclose(reached(SIZES, losses, middles(STAIRS)[2]), 50_000, rel_tol=0.05)
    assert math.isclose(flattest(SIZES, losses, STAIRS), 0.7, rel_tol=0.01)
    assert math.isnan(flattest(SIZES, losses, STAIRS / 9))
    assert steps_taken(SIZES, losses, STAIRS)[1:3] == [reached(SIZES, losses, level) for level in middles(STAIRS)[1:3]]
    assert reached(SIZES, losses, 2.0) == SIZES[0]
