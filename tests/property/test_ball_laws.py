"""Real arithmetic and floating point agree: balls widened by rounding hold what both forward passes compute."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from any_nets import any_net, said
from cases import each
from vitrify.certification.reals.nets import RealNet
from vitrify.certification.reals.steps import OpenComparison
from vitrify.errors import InputError

FLOAT64 = 2.0**-53
NARROW = 1e-6  # balls that are wider than this, relative to what they hold, would not tell much


def agreement(seed: int) -> str:
    """How a net fares: `inside` narrow balls, `wide` ones, or `open` where rounding decides what it does.

    The rounding of parallel cells is not bounded: they are `near`.
    """
    weights, given = any_net(seed)
    net = RealNet(weights)
    found = said(weights, given)
    try:
        true = net.logits(given, precision=212)
        bound = net.logits(given, precision=212, roundoff=FLOAT64)
    except OpenComparison:
        return "open"
    except InputError:
        assert np.allclose(net.logits(given, precision=212).mid, found, rtol=1e-9, atol=1e-9), seed
        return "near"
    assert bound.mid.shape == found.shape
    assert bound.holds(found), seed
    assert (np.abs(true.mid - bound.mid) + true.rad <= bound.rad * (1 + 1e-12) + 1e-300).all(), seed
    return "inside" if (bound.rad <= NARROW * (1 + np.abs(bound.mid))).all() else "wide"


def check(seeds: range) -> None:
    fared = Counter(agreement(seed) for seed in seeds)
    assert fared["inside"] >= 0.75 * len(seeds), fared


def test_float_and_real_arithmetic_agree_on_random_nets() -> None:
    check(range(300))


@pytest.mark.slow
def test_float_and_real_arithmetic_agree_on_a_thousand_random_nets() -> None:
    check(range(300, 1300))


@each("seed", range(0, 60, 3))
def test_on_a_grid_ties_are_seen_by_both(seed: int) -> None:
    """Multiples of 1/2 are added and multiplied without rounding, so floating point sees most ties as they are."""
    weights, given = any_net(seed)
    try:
        true = RealNet(weights).logits(given, precision=212)
    except OpenComparison:
        assert not exactly_computable(weights)
        return
    found = said(weights, given)
    assert np.allclose(true.mid, found, rtol=1e-9, atol=1e-9)


def exactly_computable(weights: object) -> bool:
    """Whether no step of a net leaves the fractions."""
    net = weights.architecture  # type: ignore[attr-defined]
    blocks = getattr(net, "blocks", ())
    soft = any(head.attention == "softmax" for block in blocks for head in block.heads)
    cells = [block.cell for block in blocks if block.cell] + [c for c in [getattr(net, "cell", None)] if c]
    return not soft and not getattr(net, "norm", False) and all(cell.kind != "lstm" for cell in cells)
