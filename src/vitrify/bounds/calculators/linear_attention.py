r"""Linear attention is a recurrence, so its state must hold all pairs that it is to recall.

Statement: linear attention of $H$ heads with $k$ features, value size $m$ and sums of $p$ bits keeps $Hk(m+1)p$ bits;
exact recall of $P$ pairs with one of $V$ values each takes $P\log_2 V$.
Assumes: one layer of linear (kernel) attention that reads the pairs before the question.
Source: counting, as for any recurrent net; Arora et al. 2023, arXiv 2312.04927 [S] for the comparison.
"""

from __future__ import annotations

from typing import Annotated

from vitrify.bounds.calculators.associative_recall import needed
from vitrify.bounds.calculators.catalogue import Bound, BoundReading, Heads, Several, Size, ValueSize, excluding
from vitrify.parameters import Help, Within


def evaluate(
    *,
    P: Annotated[Size, Help("pairs")],
    V: Annotated[Several, Help("values")],
    k: Annotated[Size, Help("features of a key")],
    m: ValueSize,
    p: Annotated[int, Within(1, 64), Help("bits of a sum")],
    H: Heads = 1,
) -> BoundReading:
    """Bits of the sums against bits of the pairs."""
    has, needs = H * k * (m + 1) * p, needed(P, V)
    figures = {"state bits": has, "state bits needed": needs}
    return excluding(figures, has < needs, "impossible: two lists of pairs leave the same sums")


BOUND = Bound(status="unconditional", evaluate=evaluate)
