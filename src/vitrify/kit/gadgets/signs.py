"""Unit and sign: the direction of a vector, and of a number that may be as small as arithmetic allows, by a norm."""

from __future__ import annotations

import math

import numpy as np

from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.network import Affine, Builder, Norm, Space, Units
from vitrify.net.spaces import Reals


def unit(net: Builder, value: Affine, least: float, *, name: str, positive: bool = False) -> Space:
    r"""$(v, -v)\sqrt{n}/|v|$ for a vector $v$ of $n$ numbers that is never shorter than `least`.

    Two units per coordinate write $(v, -v)$, $x = \mathrm{relu}(x) - \mathrm{relu}(-x)$; one, where none is ever
    negative (`positive`). The mean is 0 and the variance $|v|^2/n$, so a norm over these $2n$ dimensions alone does the
    rest. No weight depends on `least`.
    """
    size, bound = value.size, float(value.bound.max())
    labels = tuple(f"{sign}{number}" for sign in "+-" for number in range(size))
    pair = Space(f"± {name}", Reals(labels, -bound, bound))
    turn = np.hstack([np.eye(size), -np.eye(size)])
    both = value if positive else value @ turn
    net.add(
        Units(
            name=f"pair: {name}",
            reads_by=both.parts,
            bias=both.bias,
            writes_by=((pair, turn if positive else np.vstack([turn, -turn])),),
            passes=(value,),
            error=UNIT_ROUNDOFF * (value.terms + 4) * bound,
        )
    )
    root = math.sqrt(size)
    return net.add(Norm(f"unit: {name}", pair, Space(name, Reals(labels, -root, root)), least / root))


def sign(net: Builder, value: Affine, least: float, *, name: str) -> Space:
    r"""The sign of a number $z$ that is never closer to 0 than `least`, as $(s, -s)$ with $s = z/|z|$."""
    if value.size != 1:
        raise ValueError(f"a number has a sign, not a vector of {value.size}")
    return unit(net, value, least, name=name)
