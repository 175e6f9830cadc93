r"""To compare two words, one layer of attention, or the state of a recurrence, needs as many bits as one word has.

Statement: a layer of $H$ heads, value size $m$ and $p$ bits that says of every two words of $n$ of $S$ symbols whether
they are equal has $H(m+1)(p + \lceil\log_2 n\rceil) \ge n\log_2 S$, and a recurrent net a state of $n\log_2 S$ bits.
With $S = 2$ the same holds for disjointness of two sets of $n$ elements, and, of one layer, for $n$ pairs of brackets
of two kinds that are balanced at depth 1.
Assumes: exact sums; a deterministic net that is right on every pair of words, and whose answer is read at a further
symbol behind both. If small errors are allowed, equality takes few bits.
Source: Bhattamishra, Hahn, Blunsom & Kanade 2024, arXiv 2406.09347 [A]; the explicit form is ours: of the first word
each head passes on the numerator ($m$ numbers) and the denominator of its average.
"""

from __future__ import annotations

from math import log2
from typing import Annotated

from vitrify.bounds.calculators.catalogue import Bits, Bound, BoundReading, Heads, Several, Size, ValueSize, excluding
from vitrify.bounds.quantized import sum_bits
from vitrify.parameters import Help


def evaluate(
    *,
    n: Annotated[Size, Help("symbols of a word")],
    S: Annotated[Several, Help("different symbols")] = 2,
    H: Heads,
    m: ValueSize,
    p: Bits,
) -> BoundReading:
    """Bits of the partial sums, or of a state, against those of a word."""
    has, needs = H * (m + 1) * sum_bits(p, n), n * log2(S)
    figures = {"bits of partial sums": has, "bits needed, also of a recurrent state": needs}
    return excluding(figures, has < needs, "impossible: two words leave the same partial sums")


BOUND = Bound(status="unconditional", evaluate=evaluate)
