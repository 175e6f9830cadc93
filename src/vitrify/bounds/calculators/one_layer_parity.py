r"""One layer of attention is too insensitive to single letters for PARITY at all lengths.

Statement: the average sensitivity of $f$ on $n$ bits is the mean number of letters whose change alone changes $f$. That
of one layer of softmax attention grows slower than $n$, at most like $\sqrt n$. PARITY has $n$, MAJORITY
$\binom{n}{k}(n - k)/2^{n-1}$ for $k = \lfloor n/2 \rfloor$, which grows like $\sqrt{2n/\pi}$.
Assumes: one net for all lengths. The constant of the rate is not stated, so for a single $n$ nothing is excluded: a net
with units and weights for that length computes PARITY in one layer.
Source: Kozachinskiy, Steifer & Wałęga 2026, arXiv 2602.05896 [A]; the exponent 1/2 from a secondary account [S].
"""

from __future__ import annotations

from math import exp, lgamma, log, sqrt
from typing import Annotated

from vitrify.bounds.calculators.catalogue import Bound, BoundReading
from vitrify.parameters import Help, Within


def of_majority(n: int) -> float:
    """Return the average sensitivity of MAJORITY on n bits.

    >>> round(of_majority(3), 9)
    1.5
    """
    k = n // 2
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + log(n - k) - (n - 1) * log(2))


def evaluate(*, n: Annotated[int, Within(1, 2**20), Help("letters")]) -> BoundReading:
    """The average sensitivities, and the rate of one layer."""
    figures = {"of PARITY": n, "of MAJORITY": of_majority(n), "√n (rate)": sqrt(n)}
    return BoundReading(figures, "one layer has at most √n times an unknown constant: vacuous for a single n")


BOUND = Bound(status="rate", evaluate=evaluate)
