r"""One layer with a chain of thought needs many steps to follow pointers.

Statement: a one-layer net of $H$ heads, size $d$ and $p$ bits that may write down intermediate tokens needs $\Omega(
\sqrt{n/(Hdp)})$ of them for iterated composition of functions of $n$ elements.
Assumes: nothing more; the constant is not stated, so the figure is only a rate. The argument: a step costs each of
two parties $H(d+1)$ sums, and pointer chasing in $R$ rounds costs them $\Omega(n/R)$ bits.
Source: Peng, Narayanan & Papadimitriou 2024, arXiv 2402.08164, Theorem 2 [S].
"""

from __future__ import annotations

from math import sqrt
from typing import Annotated

from vitrify.bounds.calculators.catalogue import Bits, Bound, BoundReading, Heads, Several, ValueSize
from vitrify.parameters import Help


def evaluate(
    *, n: Annotated[Several, Help("elements that the functions map to each other")], H: Heads, d: ValueSize, p: Bits
) -> BoundReading:
    """The rate, up to its constant."""
    rate = sqrt(n / (H * d * p))
    return BoundReading(
        {"√(n/(Hdp))": rate},
        f"the number of steps grows at least like {rate:.4g} times a constant that nobody has stated",
    )


BOUND = Bound(status="rate", evaluate=evaluate)
