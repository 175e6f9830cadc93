"""Table: one unit per row of a lookup table over categorical spaces and sets, read out linearly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vitrify.arrays import Floats, Matrix
from vitrify.kit.network import Bits, Builder, Flag, MultiHot, OneHot, Space, Units

ANY = -1  # this row does not test that space


def table(
    net: Builder,
    reads: Sequence[Space],
    patterns: NDArray[np.integer],
    writes: Space,
    outputs: Matrix,
    *,
    also: tuple[Space, Matrix] | None = None,
    constant: Floats | None = None,
    snap: bool = False,
    matches: int = 1,
    name: str | None = None,
    rows: Sequence[str] = (),
) -> Space:
    r"""Return the sum of the output rows whose pattern agrees with the values that the spaces hold.

    Row $r$ requires the value $p_{rs}$ (`ANY`: no condition; 0 or 1 of a flag; one member of a set) of each space $s$.
    With the codes $c$, their norms, and $g$ the smallest of their gaps, its unit is $u_r = \mathrm{relu}\big(1 -
    \tfrac2g \sum_s (\text{norm}_s - c_{p_{rs}} \cdot x_s)\big)$: 1 when all agree. When one disagrees, the sum is at
    least $g$ and the unit is 0, at least 1 below its threshold: a conjunction that tolerates noise where it is 0. With
    `snap` a second unit per row removes noise where it is 1: $\mathrm{relu}(z + \tfrac12) - \mathrm{relu}(z -
    \tfrac12)$ for $z = \pm 1$. `matches` is how many rows can agree at once: only those pass noise on. `also` is a
    second space with output rows of its own, written by the same units. Units: one per row, two with `snap`.
    """
    gaps = np.array([_gap(space) for space in reads])
    tested = patterns != ANY
    slope = 2.0 / np.where(tested, gaps, np.inf).min(axis=1, initial=np.inf)
    slope = np.where(np.isfinite(slope), slope, 0.0)
    norms = np.array([_norm(space) for space in reads])
    flags = np.array([isinstance(space.kind, Flag) for space in reads], dtype=bool)
    lowered = flags & (patterns == 0)  # a flag that must be 0 has the code -1 and the norm 0
    bias = 1.0 - slope * ((tested & ~lowered) * norms).sum(axis=1)
    columns = [(space, _columns(space, patterns[:, index], slope)) for index, space in enumerate(reads)]
    coordinates = np.array([1.0 if isinstance(s.kind, OneHot | MultiHot | Flag) else float(s.size) for s in reads])
    reach = float((slope * (tested @ coordinates)).max(initial=1.0))  # error of z for an error of 1 per coordinate
    written = [(writes, outputs), *([also] if also else [])]
    if snap:
        from scipy.sparse import csc_array, csr_array, hstack, vstack

        columns = [(space, hstack([csc_array(matrix)] * 2, format="csc")) for space, matrix in columns]
        written = [(space, vstack([csr_array(out), -csr_array(out)], format="csr")) for space, out in written]
        bias = np.concatenate([bias + 0.5, bias - 0.5])
        margin, gain = 0.5 / reach, 0.0
        rows = [*rows, *(f"{row} (cut)" for row in rows)]
    else:
        largest = max((float(abs(out).max()) for _, out in written if out.shape[0]), default=0.0)
        margin, gain = 1.0 / reach, matches * reach * largest
    return net.add(
        Units(
            name=name or f"table: {writes.name}",
            reads_by=tuple(columns),
            bias=bias,
            writes_by=tuple(written),
            constants=() if constant is None else ((writes, constant),),
            margin=dict.fromkeys(reads, margin),
            gain=dict.fromkeys(reads, gain),
            rows=tuple(rows),
        )
    )


def _norm(space: Space) -> float:
    return space.kind.norm if isinstance(space.kind, OneHot | MultiHot | Bits) else 1.0


def _gap(space: Space) -> float:
    if not isinstance(space.kind, OneHot | MultiHot | Bits | Flag):
        raise TypeError(f"{space.name} is not categorical: a table reads one-hots, sets, bit codes and flags")
    return space.kind.gap if not isinstance(space.kind, Flag) else 1.0


def _columns(space: Space, values: NDArray[np.integer], slope: Floats) -> Matrix:
    """Return the scaled code of each row's value as a matrix [space, row]; zeros where the row has no condition."""
    from scipy.sparse import csc_array

    units = np.flatnonzero(values != ANY)
    shape = (space.size, len(values))
    if isinstance(space.kind, Flag):
        signs = np.where(values[units] == 0, -1.0, 1.0)
        return csc_array((signs * slope[units], (0 * units, units)), shape=shape)
    if isinstance(space.kind, OneHot | MultiHot):
        return csc_array((slope[units], (values[units], units)), shape=shape)
    codes = np.zeros(shape)
    codes[:, units] = space.kind.codes[values[units]].T * slope[units]  # type: ignore[union-attr]
    return codes
