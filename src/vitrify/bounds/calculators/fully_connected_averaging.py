r"""To average vectors at given positions, a fully connected net needs a first layer as wide as all vectors together.

Statement: a fully connected net that averages $N$ vectors of size $d$ over any $q$ of $N \ge 2q + 1$ places to within
$1/(2q)$ has at least $Nd/2$ units in its first layer; its null space (`vitrify.bounds.kernel`) gives $Nd$.
Assumes: the first layer is a matrix times the input; real weights of any precision, any depth and width behind it.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896, Theorem 10 [S] for $Nd/2$; the sharper figure is ours.
"""

from __future__ import annotations

from math import ceil
from typing import Annotated

from vitrify.bounds.calculators.catalogue import MAX_SIZE, Bound, BoundReading, Size, excluding, over_twice
from vitrify.parameters import Help, Within


def evaluate(
    *,
    N: Annotated[int, Within(3, MAX_SIZE), Help("vectors")],
    d: Annotated[Size, Help("size of a vector")],
    q: Annotated[Size, Help("pointers")],  # noqa: ARG001 (a condition of the theorem)
    width: Annotated[Size, Help("units of the first layer")],
) -> BoundReading:
    """The width of the first layer."""
    size = N * d
    figures = {"published least width": ceil(size / 2), "least width by the null space": size, "width": width}
    why = "impossible: the first layer maps some vectors z ≠ 0 to 0, so the net answers the same for z and -z"
    return excluding(figures, width < size, why)


BOUND = Bound(status="unconditional", evaluate=evaluate, conflicts=over_twice)
