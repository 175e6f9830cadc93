"""Features: units that look in given directions, read out by a given matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.network import Affine, Builder, Space, Units

Floats = NDArray[np.float64]


def features(net: Builder, reads: Space, directions: Floats, centre: Floats, readout: Floats, writes: Space) -> Space:
    r"""$(\mathrm{relu}(xW) - c)V$ for directions $W$ [space, unit], a centre $c$ [unit] and a read-out $V$ [unit, out].

    An error of 1 in every coordinate of $x$ moves coordinate $j$ of the output by at most $\sum_i |V_{ij}| \sum_k
    |W_{ki}|$. Units: one per direction.
    """
    slopes = np.abs(directions).sum(axis=0)
    gain = float((slopes @ np.abs(readout)).max(initial=0.0))
    reach = Affine.of({reads: directions}).bound + np.abs(centre)
    roundings = (reads.size + len(centre) + 8) * float((reach @ np.abs(readout)).max(initial=0.0))
    return net.add(
        Units(
            name=f"features: {writes.name}",
            reads_by=((reads, directions),),
            bias=np.zeros(len(centre)),
            writes_by=((writes, readout),),
            constants=((writes, -centre @ readout),),
            gain={reads: gain},
            joint=gain,
            error=UNIT_ROUNDOFF * roundings,
        )
    )
