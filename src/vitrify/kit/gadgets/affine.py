"""Affine functions of spaces, each computed only where all its flags are 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Floats
from vitrify.kit.network import Affine, Builder, Reals, Space

BOUND_BITS = 24  # binary digits to which bounds are rounded outwards


@dataclass(frozen=True, eq=False)
class AffineCase:
    """An affine function for coordinate `target` of the output, computed where all flags in `barred_by` are 0."""

    barred_by: Sequence[tuple[Space, int]]
    weights: Floats
    bias: float
    target: int
    name: str = ""


def affine_where(
    net: Builder,
    values: Sequence[Space],
    cases: Sequence[AffineCase],
    targets: Sequence[str],
    *,
    apart: float = 0.0,
    margin: float = 0.0,
    name: str,
) -> Space:
    r"""Return a space that holds, per coordinate, the value of its one unblocked case, or else a lower bound.

    The weights $w$ of a case run over the coordinates $x$ of all values, in order. At most one case of a target may be
    open at any position, and flags must be exact. Let $v = w \cdot x + b$, let $f$ be at least `apart` below every $v$
    of its target, and $C \ge v - f$. Then $f + \mathrm{relu}\big(v - f - C\sum \text{flags}\big)$ is $v$ when all flags
    are 0, and $f$ when one is 1. (With flags that open a case, $C$ and its rounding would be in every sum.) Errors of
    the values up to `margin` open no case; they are multiplied by $|w|_1$. Units: one per case.
    """
    spans = np.cumsum([0, *(space.size for space in values)])
    low = np.concatenate([np.full(space.size, space.kind.low) for space in values])
    high = np.concatenate([np.full(space.size, space.kind.high) for space in values])
    weights = np.array([case.weights for case in cases])
    bias = np.array([case.bias for case in cases])
    into = np.array([case.target for case in cases])
    reach = np.abs(weights) @ ((high - low) / 2 + margin)
    middle = weights @ ((low + high) / 2) + bias
    lowest = np.array([(middle - reach)[into == target].min() - apart for target in range(len(targets))])
    floor = -_outwards(-lowest)
    lift = _outwards(middle + reach - floor[into])
    matrices = {space: weights[:, a:b].T for space, a, b in zip(values, spans[:-1], spans[1:], strict=True)}
    flags = dict.fromkeys(space for case in cases for space, _ in case.barred_by)
    matrices |= {flag: np.zeros((flag.size, len(cases))) for flag in flags}
    for unit, case in enumerate(cases):
        for flag, bit in case.barred_by:
            matrices[flag][bit, unit] -= lift[unit]
    steepness = float(np.abs(weights).sum(axis=1).max())
    writes = Space(name, Reals(tuple(targets), float(floor.min()), float((middle + reach).max())))
    return net.units(
        f"affine: {name}",
        Affine.of(matrices, bias - floor[into]),
        writes,
        np.eye(len(targets))[into],
        floor,
        margin=dict.fromkeys(values, margin),
        gain=dict.fromkeys(values, steepness),
        joint=steepness,
        rows=tuple(case.name for case in cases),
    )


def _outwards(bounds: Floats) -> Floats:
    """Round bounds up to few binary digits: a bound that rounding made too small would clip the function."""
    grain = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(bounds), 1.0))) - BOUND_BITS)
    return np.asarray(grain * (np.floor(bounds / grain) + 2))
