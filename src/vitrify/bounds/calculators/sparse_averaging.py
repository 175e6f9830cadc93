r"""One head needs as many bits in its query as there are pointers to average over.

Statement: a layer that averages over any $q$ of $N \ge 2q + 1$ positions to within $1/(2q)$ has queries of $m$ numbers
of $p$ bits with $Hmp \ge q$.
Assumes: one layer whose output at a position is that of its heads (`unit`), heads that do not attend to the querying
position; one that does also sends the summands of that position, $H(m+1)p$ bits more.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896, Theorem 4 [S], which states $mp \ge cq$ for one head; the
constant 1 is that of the protocol for set disjointness in `vitrify.bounds`, deterministic and exact.
"""

from __future__ import annotations

from math import ceil
from typing import Annotated

from vitrify.bounds.calculators.catalogue import MAX_SIZE, Bits, Bound, BoundReading, Heads, Size, excluding, over_twice
from vitrify.parameters import Help, Within


def evaluate(
    *,
    N: Annotated[int, Within(3, MAX_SIZE), Help("positions")],  # noqa: ARG001 (a condition of the theorem)
    q: Annotated[Size, Help("pointers of a position")],
    m: Annotated[Size, Help("size of a query")],
    p: Bits,
    H: Heads = 1,
) -> BoundReading:
    """Bits of the query against pointers."""
    has, needs = H * m * p, q
    figures = {"bits of the query": has, "bits needed": needs, "least m": ceil(needs / (H * p))}
    why = f"impossible: two pointer sets share a query; m must be at least {figures['least m']}"
    return excluding(figures, has < needs, why)


BOUND = Bound(status="unconditional", evaluate=evaluate, conflicts=over_twice)
