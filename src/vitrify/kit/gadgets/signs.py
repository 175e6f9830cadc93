"""Unit and sign: the direction of a vector, and the sign of a number however small, by a layer norm."""

from __future__ import annotations

import math

import numpy as np

from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.network import Affine, Builder, Norm, Reals, Space


def unit(net: Builder, value: Affine, min_norm: float, *, name: str, positive: bool = False) -> Space:
    r"""Return the space $(v, -v)\sqrt{n}/|v|$ for a vector $v$ of $n$ coordinates and a norm of at least `min_norm`.

    Two units per coordinate write $(v, -v)$, as $x = \mathrm{relu}(x) - \mathrm{relu}(-x)$; one if no coordinate is
    ever negative (`positive`). The mean is 0 and the variance $|v|^2/n$, so a layer norm over these $2n$ dimensions
    alone gives the result. No weight depends on `min_norm`.
    """
    size, bound = value.size, float(value.bound.max())
    labels = tuple(f"{sign}{number}" for sign in "+-" for number in range(size))
    pair = Space(f"± {name}", Reals(labels, -bound, bound))
    turn = np.hstack([np.eye(size), -np.eye(size)])
    both = value if positive else value @ turn
    out, error = turn if positive else np.vstack([turn, -turn]), UNIT_ROUNDOFF * (value.terms + 4) * bound
    net.units(f"pair: {name}", both, pair, out, passes=(value,), error=error)
    root = math.sqrt(size)
    return net.add(Norm(f"unit: {name}", pair, Space(name, Reals(labels, -root, root)), min_norm / root))


def sign(net: Builder, value: Affine, min_norm: float, *, name: str) -> Space:
    r"""Return the sign of a number $z$ that is never closer to 0 than `min_norm`, as $(s, -s)$ with $s = z/|z|$."""
    if value.size != 1:
        raise ValueError(f"a number has a sign, not a vector of {value.size}")
    return unit(net, value, min_norm, name=name)
