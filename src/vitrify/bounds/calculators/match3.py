r"""One layer needs a width that grows with the length, to find three numbers that sum to zero.

Statement: a layer of $H$ heads, value size $m$ and $p$ bits that says for every one of $N$ numbers modulo $M \ge N + 3$
whether it and two others sum to 0 has $H(m+1)(p + \lceil\log_2 n\rceil) \ge n$ with $n = \lfloor(N-1)/2\rfloor$.
Assumes: exact sums; the published rate $mpH \ge cN/\log\log N$ comes from sending scaled mantissas instead, with a
constant that is not stated.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896, Theorem 7 [S]; the explicit form is that of our protocol.
"""

from __future__ import annotations

from math import log2
from typing import Annotated

from vitrify.bounds.calculators.catalogue import MAX_SIZE, Bits, Bound, BoundReading, Heads, ValueSize, excluding
from vitrify.bounds.quantized import sum_bits
from vitrify.parameters import Help, Within


def evaluate(
    *, N: Annotated[int, Within(5, MAX_SIZE), Help("numbers")], H: Heads, m: ValueSize, p: Bits
) -> BoundReading:
    """Bits of the partial sums against the size of the sets."""
    n = (N - 1) // 2
    has = H * (m + 1) * sum_bits(p, n)
    figures = {"bits of partial sums": has, "bits needed": n, "N/log log N (rate)": N / log2(log2(N))}
    return excluding(figures, has < n, "impossible: two sets of numbers leave the same partial sums")


BOUND = Bound(status="unconditional", evaluate=evaluate)
