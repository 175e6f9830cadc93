"""Sign: of a number that may be as small as arithmetic allows, by a norm over a pair of dimensions."""

from __future__ import annotations

import numpy as np

from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.network import Affine, Builder, Norm, Space, Units
from vitrify.net.spaces import Reals


def sign(net: Builder, value: Affine, least: float, *, name: str) -> Space:
    r"""The sign of a number $z$ that is never closer to 0 than `least`, as $(s, -s)$ with $s = \pm1$.

    Two units write the pair $(z, -z)$, $z = \mathrm{relu}(z) - \mathrm{relu}(-z)$. Its mean is 0 and its variance
    $z^2$, so a norm over these two dimensions alone makes it $(z, -z)/|z|$. No weight depends on `least`.
    """
    bound = float(value.bound.max())
    pair = Space(f"± {name}", Reals(("+", "-"), -bound, bound))
    both = value @ np.array([[1.0, -1.0]])
    net.add(
        Units(
            name=f"pair: {name}",
            reads_by=both.parts,
            bias=both.bias,
            writes_by=((pair, np.array([[1.0, -1.0], [-1.0, 1.0]])),),
            passes=(value,),
            error=UNIT_ROUNDOFF * (value.terms + 4) * bound,
        )
    )
    return net.add(Norm(f"sign: {name}", pair, Space(name, Reals(("+", "-"), -1.0, 1.0)), least))
