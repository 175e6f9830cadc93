r"""One layer needs a width that grows with the length, to find three numbers that sum to zero.

Statement: a layer of $H$ heads, value size $m$ and $p$ bits that says for every one of $N$ numbers modulo $M \ge N + 3$
whether it and two others sum to 0 has $H(m+1)(p + \lceil\log_2 n\rceil) \ge n$ with $n = \lfloor(N-1)/2\rfloor$.
Assumes: exact sums; the published rate $mpH \ge cN/\log\log N$ comes from sending scaled mantissas instead, with a
constant that is not stated.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896, Theorem 7 [S]; the explicit form is that of our protocol.
"""

from __future__ import annotations

from math import log2

from vitrify.bounds.calculators.catalogue import Bound, Parameter, Reading, Values
from vitrify.bounds.quantised import sum_bits


def evaluate(v: Values) -> Reading:
    """Bits of the partial sums against the size of the sets."""
    n = (v["N"] - 1) // 2
    has = v["H"] * (v["m"] + 1) * sum_bits(v["p"], n)
    figures = {"bits of partial sums": has, "bits needed": n, "N/log log N (rate)": v["N"] / log2(log2(v["N"]))}
    if has < n:
        return Reading(figures, "impossible: two sets of numbers leave the same partial sums")
    return Reading(figures, "not excluded by this bound")


BOUND = Bound(
    status="unconditional",
    parameters=(
        Parameter("N", "numbers", low=5),
        Parameter("H", "heads"),
        Parameter("m", "size of a value"),
        Parameter("p", "bits of a number", high=64),
    ),
    evaluate=evaluate,
)
