r"""Following $k$ hops takes a number of layers that grows like the logarithm of $k$.

Statement: a transformer that computes $k$-hop with $mH = O(k^{1-\varepsilon})$ has $\Omega(\log k)$ layers; $\lfloor
\log_2 k\rfloor + 2$ of one head suffice.
Assumes: the 1-versus-2-cycle conjecture of massively parallel computation, which is unproved; the constant of the rate
is not stated.
Source: Sanford, Hsu & Telgarsky 2024, arXiv 2402.09268, Corollary 4.3 [S]; the number that suffices is that of
Theorem 4.2, and of the construction `k-hop`.
"""

from __future__ import annotations

from math import log2
from typing import Annotated

from vitrify.bounds.calculators.catalogue import Bound, BoundReading, Size
from vitrify.parameters import Help


def evaluate(*, k: Annotated[Size, Help("hops")]) -> BoundReading:
    """The rate, and what is enough."""
    rate, enough = log2(k), k.bit_length() + 1
    return BoundReading(
        {"log₂ k (rate)": rate, "layers that suffice": enough},
        f"if the conjecture holds, layers grow like {rate:.4g} times an unknown constant; {enough} are enough",
    )


BOUND = Bound(status="conditional", evaluate=evaluate)
