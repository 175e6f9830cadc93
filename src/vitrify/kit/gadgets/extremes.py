"""Minimum: the smaller of two numbers, coordinate by coordinate."""

from __future__ import annotations

import numpy as np

from vitrify.kit.network import Affine, Builder, Space, Units


def minimum(net: Builder, left: Affine, right: Affine, writes: Space) -> Space:
    r"""Return the smaller of two affine maps $l$ and $r$, coordinate by coordinate.

    It is $(l + c) - \mathrm{relu}(l - r) - c$; with $c > |l| + 1$ the first term is a ReLU unit too, also under noise
    below 1. Two units per coordinate. An error of $l$ or $r$ passes with gain 1.
    """
    size, lift = left.size, float(left.bound.max(initial=0.0)) + 1.0
    spaces = tuple(dict.fromkeys([*left.spaces, *right.spaces]))
    parts = {space: np.zeros((space.size, 2 * size)) for space in spaces}
    for space, matrix in left.parts:
        parts[space] += np.hstack([np.asarray(matrix), np.asarray(matrix)])
    for space, matrix in right.parts:
        parts[space][:, size:] -= np.asarray(matrix)
    return net.add(
        Units(
            name=f"minimum: {writes.name}",
            reads_by=tuple(parts.items()),
            bias=np.concatenate([left.bias + lift, left.bias - right.bias]),
            writes_by=((writes, np.vstack([np.eye(size), -np.eye(size)])),),
            constants=((writes, np.full(size, -lift)),),
            margin={space: 1.0 / max(left.gain(space), 1.0) / len(spaces) for space in spaces},
            gain={space: max(left.gain(space), right.gain(space)) for space in spaces},
        )
    )
