"""Real arithmetic and floating point agree: the two forward passes compute the same, up to rounding."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from any_nets import any_net, said
from cases import each
from vitrify.certification.reals.nets import RealNet
from vitrify.certification.reals.steps import OpenComparison

ROUNDING = 1e-12  # of a float64 run of a small net, relative to its logits


def agreement(seed: int) -> str:
    """How a net fares: the forward passes agree up to `rounding`, or `open` where no precision decides what it does."""
    weights, given = any_net(seed)
    try:
        true = RealNet(weights).logits(given, precision=212)
    except OpenComparison:
        return "open"
    found = said(weights, given)
    assert true.mid.shape == found.shape
    assert np.allclose(true.mid, found, rtol=ROUNDING, atol=ROUNDING), seed
    assert (true.rad <= 2.0**-50 * (1 + np.abs(true.mid))).all(), seed
    return "rounding"


def check(seeds: range) -> None:
    fared = Counter(agreement(seed) for seed in seeds)
    assert fared["rounding"] >= 0.75 * len(seeds), fared


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
