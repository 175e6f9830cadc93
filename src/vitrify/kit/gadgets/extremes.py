"""Minimum: the smaller of two numbers, coordinate by coordinate."""

from __future__ import annotations

import numpy as np

from vitrify.kit.network import Affine, Builder, Space


def minimum(net: Builder, left: Affine, right: Affine, writes: Space) -> Space:
    r"""Return the smaller of two affine maps $l$ and $r$, coordinate by coordinate.

    It is $(l + c) - \mathrm{relu}(l - r) - c$; with $c > |l| + 1$ the first term is a ReLU unit too, also under noise
    below 1. Two units per coordinate. An error of $l$ or $r$ passes with gain 1.
    """
    size, lift = left.size, float(left.bound.max(initial=0.0)) + 1.0
    parts = left.beside(left + right * -1.0).parts
    read = Affine(parts, np.concatenate([left.bias + lift, left.bias - right.bias]))
    return net.units(
        f"minimum: {writes.name}",
        read,
        writes,
        np.vstack([np.eye(size), -np.eye(size)]),
        np.full(size, -lift),
        margin={space: 1.0 / max(left.gain(space), 1.0) / len(read.spaces) for space in read.spaces},
        gain={space: max(left.gain(space), right.gain(space)) for space in read.spaces},
    )
