r"""One layer needs a size that grows with the length, to be an induction head.

Statement: a layer of $H$ heads, value size $m$ and $p$ bits that says what followed the last occurrence of the current
symbol, on all words of length $T$ over at least three symbols, has $H(m+1)(p + \lceil\log_2 n\rceil) \ge n$ with $n =
\lfloor(T-1)/2\rfloor$; with partial sums of $p$ bits, $H(m+1)p \ge n$.
Assumes: one layer; the sums of its heads are exact. Two layers of constant size do it.
Source: Sanford, Hsu & Telgarsky 2024, arXiv 2408.14332 [S], which states the rate $Hmp = \Omega(T)$; the explicit form
is that of our protocol for INDEX.
"""

from __future__ import annotations

from vitrify.bounds.calculators.catalogue import Bound, Parameter, Reading, Values
from vitrify.bounds.quantised import sum_bits


def evaluate(v: Values) -> Reading:
    """Bits of the partial sums against pairs."""
    n, numbers = (v["T"] - 1) // 2, v["H"] * (v["m"] + 1)
    exact = numbers * sum_bits(v["p"], n)
    figures = {"bits of exact partial sums": exact, "bits of p-bit partial sums": numbers * v["p"], "bits needed": n}
    if exact < n:
        return Reading(figures, "impossible: two words leave the same partial sums; `vitrify refute` shows such a pair")
    if numbers * v["p"] < n:
        return Reading(figures, "impossible with sums of p bits, not excluded with exact sums")
    return Reading(figures, "not excluded by this bound")


BOUND = Bound(
    status="unconditional",
    parameters=(
        Parameter("T", "length of a word", low=3),
        Parameter("H", "heads"),
        Parameter("m", "size of a value"),
        Parameter("p", "bits of a number", high=64),
    ),
    evaluate=evaluate,
)
