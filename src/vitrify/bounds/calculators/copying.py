r"""A recurrent net needs a state that holds the whole string, to copy it.

Statement: a net with a state of $b$ bits copies a uniform string of $L$ symbols out of $D$ with probability at most
$2^b/D^L$, so that an error of at most $e$ takes $b \ge L\log_2 D - \log_2(1/(1-e))$ bits.
Assumes: all it knows of the string when it begins to write is the state; what it writes is a function of the state.
Source: Jelassi et al. 2024, arXiv 2402.01032 [S]; the figure is counting: $2^b$ states lead to $2^b$ copies.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Annotated

from vitrify.bounds.calculators.catalogue import Bound, BoundReading, Several, Size, StateBits, excluding
from vitrify.parameters import Help, Within


def needed(length: int, symbols: int, error: float = 0.0) -> float:
    """Bits of state for copying with an error.

    >>> needed(10, 2), needed(10, 2, 0.5)
    (10.0, 9.0)
    """
    return max(0.0, length * log2(symbols) + log2(1 - error))


def evaluate(
    *,
    L: Annotated[Size, Help("symbols of the string")],
    D: Annotated[Several, Help("different symbols")],
    error: Annotated[float, Within(0, 0.999999), Help("share of wrong copies that is allowed")] = 0,
    bits: StateBits = 0,
) -> BoundReading:
    """Bits needed, and what a given state makes impossible."""
    needs = needed(L, D, error)
    figures = {"state bits needed": needs}
    if not bits:
        return BoundReading(figures, f"the state must have at least {ceil(needs)} bits")
    right = 2.0 ** min(0.0, bits - L * log2(D))
    figures |= {"state bits": bits, "probability of a right copy at most": right}
    why = f"impossible: with {bits} bits at most {100 * right:.4g} % of strings are copied"
    return excluding(figures, bits < needs, why)


BOUND = Bound(status="unconditional", evaluate=evaluate)
