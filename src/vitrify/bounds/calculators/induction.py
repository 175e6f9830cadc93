r"""One layer needs a size that grows with the length, to be an induction head.

Statement: a layer of $H$ heads, value size $m$ and $p$ bits that says what followed the last occurrence of the current
symbol, on all words of length $T$ over at least three symbols, has $H(m+1)(p + \lceil\log_2 n\rceil) \ge n$ with $n =
\lfloor(T-1)/2\rfloor$; with partial sums of $p$ bits, $H(m+1)p \ge n$.
Assumes: one layer; the sums of its heads are exact. Two layers of constant size do it.
Source: Sanford, Hsu & Telgarsky 2024, arXiv 2408.14332 [S], which states the rate $Hmp = \Omega(T)$; the explicit form
is that of our protocol for INDEX.
"""

from __future__ import annotations

from typing import Annotated

from vitrify.bounds.calculators.catalogue import MAX_SIZE, Bits, Bound, BoundReading, Heads, ValueSize, excluding
from vitrify.bounds.quantized import sum_bits
from vitrify.parameters import Help, Within


def evaluate(
    *, T: Annotated[int, Within(3, MAX_SIZE), Help("length of a word")], H: Heads, m: ValueSize, p: Bits
) -> BoundReading:
    """Bits of the partial sums against pairs."""
    n, numbers = (T - 1) // 2, H * (m + 1)
    exact = numbers * sum_bits(p, n)
    figures = {"bits of exact partial sums": exact, "bits of p-bit partial sums": numbers * p, "bits needed": n}
    if exact < n:
        return BoundReading(
            figures, "impossible: two words leave the same partial sums; `vitrify refute` shows such a pair"
        )
    return excluding(figures, numbers * p < n, "impossible with sums of p bits, not excluded with exact sums")


BOUND = Bound(status="unconditional", evaluate=evaluate)
