"""Features: ReLU units with given input directions, read out by a given matrix."""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Float
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.network import Affine, Builder, Space


def features(
    net: Builder,
    reads: Space,
    directions: Float[np.ndarray, "space unit"],
    center: Float[np.ndarray, " unit"],
    readout: Float[np.ndarray, "unit out"],
    writes: Space,
) -> Space:
    r"""Return the space $(\mathrm{relu}(xW) - c)V$ for directions $W$, a center $c$ and a read-out $V$.

    An error of 1 in every coordinate of $x$ moves coordinate $j$ of the output by at most $\sum_i |V_{ij}| \sum_k
    |W_{ki}|$. Units: one per direction.
    """
    slopes = np.abs(directions).sum(axis=0)
    gain = float((slopes @ np.abs(readout)).max(initial=0.0))
    seen = Affine.of({reads: directions})
    roundings = (reads.size + len(center) + 8) * float(
        ((seen.bound + np.abs(center)) @ np.abs(readout)).max(initial=0.0)
    )
    options = {"gain": {reads: gain}, "joint": gain, "error": UNIT_ROUNDOFF * roundings}
    return net.units(f"features: {writes.name}", seen, writes, readout, -center @ readout, **options)
