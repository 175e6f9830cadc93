r"""A recurrent net needs a state that holds all pairs, to recall any of them.

Statement: a net that reads $P$ pairs of key and value (one of $V$) and then answers a question about any key with an
error of at most $e$ on average has a state of at least $P(\log_2 V - h(e) - e\log_2(V-1))$ bits.
Assumes: values are independent and uniform; all the net knows of the pairs is the state at the cut between pairs and
questions. Linear attention with $k$ features and value size $m$ has a state of $k(m+1)$ numbers.
Source: Arora et al. 2023, arXiv 2312.04927 [S] for the rate; the figure is INDEX and Fano's inequality, ours.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Annotated

from vitrify.bounds.calculators._entropy import doubt, least_error
from vitrify.bounds.calculators.catalogue import Bound, BoundReading, Several, Size, StateBits, excluding
from vitrify.parameters import Help, Within


def needed(pairs: int, values: int, error: float = 0.0) -> float:
    """Bits of state for recall with an error.

    >>> needed(8, 4), round(needed(8, 4, 0.1), 3)
    (16.0, 10.98)
    """
    return max(0.0, pairs * (log2(values) - doubt(error, values)))


def evaluate(
    *,
    P: Annotated[Size, Help("pairs")],
    V: Annotated[Several, Help("values")],
    error: Annotated[float, Within(0, 0.5), Help("share of wrong answers that is allowed")] = 0,
    bits: StateBits = 0,
) -> BoundReading:
    """Bits needed, and what a given state makes impossible."""
    needs = needed(P, V, error)
    figures = {"state bits needed": needs}
    if not bits:
        return BoundReading(figures, f"the state must have at least {ceil(needs)} bits")
    least = least_error((P * log2(V) - bits) / P, V)
    figures |= {"state bits": bits, "error at least": least}
    why = f"impossible: with {bits} bits at least {100 * least:.4g} % of answers are wrong"
    return excluding(figures, bits < needs, why)


BOUND = Bound(status="unconditional", evaluate=evaluate)
