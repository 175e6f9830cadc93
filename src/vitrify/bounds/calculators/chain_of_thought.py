r"""One layer with a chain of thought needs many steps to follow pointers.

Statement: a one-layer net of $H$ heads, size $d$ and $p$ bits that may write down intermediate tokens needs $\Omega(
\sqrt{n/(Hdp)})$ of them for iterated composition of functions of $n$ things.
Assumes: the constant is not stated, so the figure is a rate and no certified number. The argument: a step costs each of
two parties $H(d+1)$ sums, and pointer chasing in $R$ rounds costs them $\Omega(n/R)$ bits.
Source: Peng, Narayanan & Papadimitriou 2024, arXiv 2402.08164, Theorem 2 [S].
"""

from __future__ import annotations

from math import sqrt

from vitrify.bounds.calculators.catalogue import Bound, Parameter, Reading, Values


def evaluate(v: Values) -> Reading:
    """The rate, up to its constant."""
    rate = sqrt(v["n"] / (v["H"] * v["d"] * v["p"]))
    return Reading(
        {"√(n/(Hdp))": rate},
        f"the number of steps grows at least like {rate:.4g} times a constant that nobody has stated",
    )


BOUND = Bound(
    status="rate",
    parameters=(
        Parameter("n", "things that the functions map to each other", low=2),
        Parameter("H", "heads"),
        Parameter("d", "size of a value"),
        Parameter("p", "bits of a number", high=64),
    ),
    evaluate=evaluate,
)
