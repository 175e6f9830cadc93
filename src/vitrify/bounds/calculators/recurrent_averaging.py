r"""A recurrent net needs a bit of state for every token, to look up one of them.

Statement: a recurrent net that reads $N$ tokens and averages over one pointer each ($q = 1$, vectors of size 1) has a
state of at least $(N-1)/2$ bits; a cut before the last token, which points to one of those before it, gives $N - 1$.
Assumes: it reads from left to right once and says its answer at each token when it has read it; all it knows of the
past is the state. A net that reads both ways counts the bits of both states at the cut.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896, Theorem 11 [S] for $(N-1)/2$; the sharper figure is that of our
protocol.
"""

from __future__ import annotations

from typing import Annotated

from vitrify.bounds.calculators.catalogue import MAX_SIZE, Bound, BoundReading, Size, excluding
from vitrify.parameters import Help, Within


def evaluate(
    *,
    N: Annotated[int, Within(3, MAX_SIZE), Help("tokens")],
    coordinates: Annotated[Size, Help("numbers in the state")],
    bits: Annotated[int, Within(1, 64), Help("bits of each of them")],
) -> BoundReading:
    """Bits of the state."""
    needs, has = N - 1, coordinates * bits
    figures = {"state bits": has, "published least bits": needs / 2, "least bits by the last cut": needs}
    return excluding(figures, has < needs, f"impossible: two inputs leave the same state; {has + 1} tokens at most")


BOUND = Bound(status="unconditional", evaluate=evaluate)
