r"""One layer can't estimate conditional 3-grams of long words.

Statement: any one-layer net that gives the conditional 3-gram estimate over three symbols to within $1/(3T)$ on all
words of length $T$ has $2pH + dp + 2 \ge T/3$ for $H$ heads, width $d$ and $p$ bits.
Assumes: one layer, $p$-bit numbers, all words of length $T$ over {0, 1, 2}.
Source: Rajaraman et al. 2024, arXiv 2407.17686, Theorem 5 [T].
"""

from __future__ import annotations

from typing import Annotated

from vitrify.bounds.calculators.catalogue import MAX_SIZE, Bits, Bound, BoundReading, Heads, Size, excluding
from vitrify.parameters import Help, Within


def evaluate(
    *,
    T: Annotated[int, Within(3, MAX_SIZE), Help("length of a word")],
    H: Heads,
    d: Annotated[Size, Help("width")],
    p: Bits,
) -> BoundReading:
    """Both sides of the inequality."""
    has, needs = 2 * p * H + d * p + 2, T / 3
    figures = {"2pH + dp + 2": has, "T/3": needs, "longest word not excluded": 3 * has}
    return excluding(figures, has < needs, f"impossible: words of more than {3 * has} symbols are beyond such a layer")


BOUND = Bound(status="unconditional", evaluate=evaluate)
