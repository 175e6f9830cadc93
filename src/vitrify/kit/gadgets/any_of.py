"""Disjunction: counts become bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vitrify.arrays import Matrix
from vitrify.kit.network import Affine, Builder, Space


def any_of(net: Builder, counts: Mapping[Space, Matrix], writes: Space, *, rows: Sequence[str] = ()) -> Space:
    r"""Return a bit for each group of counts, 1 where at least one of them is not 0: $\min(1, \sum_i c_i)$.

    `counts` gives, by space, a 0/1 matrix [count, bit]: which of the space's integers belong to which bit. Two units
    per bit: $\mathrm{relu}(2x - \tfrac12) - \mathrm{relu}(2x - \tfrac32)$ for the sum $x$. Errors of $x$ below 1/4
    disappear, so each count may have an error of 1/4 divided by the size of the largest group.
    """
    from scipy.sparse import csc_array, kron

    pair, both = csc_array([[2.0, 2.0]]), csc_array([[1.0], [-1.0]])
    groups = {space: csc_array(matrix) for space, matrix in counts.items()}
    largest = float(np.sum([matrix.sum(axis=0) for matrix in groups.values()], axis=0).max())
    read = {space: kron(matrix, pair, format="csc") for space, matrix in groups.items()}
    return net.units(
        f"some: {writes.name}",
        Affine.of(read, np.tile([-0.5, -1.5], writes.size)),
        writes,
        kron(csc_array(np.eye(writes.size)), both, format="csr"),
        margin=dict.fromkeys(groups, 0.25 / largest),
        rows=tuple(text for row in rows for text in (row, f"{row} (cut)")),
    )
