r"""Whatever runs in time $n^{2-\varepsilon}$ can't find the most similar pair of $n$ documents, as attention can.

Statement: for every $\varepsilon > 0$ no algorithm finds, among $n$ vectors of zeros and ones in $d$ dimensions, a pair
of largest cosine in time $n^{2-\varepsilon}$, where $d$ grows faster than $\log n$. A transformer does it, comparing
all pairs. So no replacement of attention that is evaluated in such a time does it, trained or not.
Assumes: the orthogonal vectors conjecture, which is unproved (the strong exponential time hypothesis implies it). It is
about growing $n$: of nets for one $n$ it says nothing, and for $d$ of the order of $\log n$ it is vacuous.
Source: Alman & Yu 2024, arXiv 2410.04271 [A]; the conjecture's range of $d$ from a secondary account [S].
"""

from __future__ import annotations

from math import log2
from typing import Annotated

from vitrify.bounds.calculators.catalogue import Bound, BoundReading, Several, Size
from vitrify.parameters import Help


def evaluate(
    *, n: Annotated[Several, Help("documents")], d: Annotated[Size, Help("dimensions of a document")]
) -> BoundReading:
    """Pairs and multiplications of one attention layer, and dimensions in units of log n."""
    ratio = d / log2(n)
    figures = {"pairs": n * (n - 1) // 2, "multiplications of one layer's scores": n * n * d, "d / log₂ n": ratio}
    if ratio <= 1:
        return BoundReading(figures, f"vacuous: the conjecture is about d above log n, here d / log₂ n = {ratio:.4g}")
    return BoundReading(
        figures,
        "if the conjecture holds, time grows faster than n^(2-ε) for every ε > 0; for this n alone it says nothing",
    )


BOUND = Bound(status="conditional", evaluate=evaluate)
