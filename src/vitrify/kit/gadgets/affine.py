"""Affine functions of numbers, each computed only where no flag forbids it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vitrify.kit.network import Builder, Space, Units
from vitrify.net.spaces import Reals

Floats = NDArray[np.float64]

GRAIN = 24  # binary digits to which bounds are rounded outwards


@dataclass(frozen=True, eq=False)
class AffineCase:
    """An affine function for one coordinate of the output, where the given coordinates of some spaces are all 0."""

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
    r"""In each coordinate, the affine function that no flag bars; where there is none, a number below all of them.

    The weights of a case go over the coordinates of all values, in order. At most one case of a target may be open at
    any position, and flags must be exact. With $v = w \cdot x + b$, $f$ at least `apart` below every $v$ of its
    target, and $C \ge v - f$: $f + \mathrm{relu}\big(v - f - C\sum \text{flags}\big)$ is $v$ when all flags are 0, and
    $f$ when one is 1. (Flags that open instead of barring would put $C$ into every sum, and its rounding.) Errors of
    the values up to `margin` open nothing; they pass times $|w|_1$. Units: one per case.
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
    return net.add(
        Units(
            name=f"affine: {name}",
            reads_by=tuple(matrices.items()),
            bias=bias - floor[into],
            writes_by=((writes, np.eye(len(targets))[into]),),
            constants=((writes, floor),),
            margin=dict.fromkeys(values, margin),
            gain=dict.fromkeys(values, steepness),
            joint=steepness,
            rows=tuple(case.name for case in cases),
        )
    )


def _outwards(bounds: Floats) -> Floats:
    """Numbers a little larger, with few digits: a bound that rounding made too small would bend the function there."""
    grain = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(bounds), 1.0))) - GRAIN)
    wider: Floats = grain * (np.floor(bounds / grain) + 2)
    return wider
