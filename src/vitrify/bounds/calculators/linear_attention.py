r"""Linear attention is a recurrence, so its state must hold all pairs that it is to recall.

Statement: linear attention of $H$ heads with $k$ features, value size $m$ and sums of $p$ bits keeps $Hk(m+1)p$ bits;
exact recall of $P$ pairs with one of $V$ values each takes $P\log_2 V$.
Assumes: one layer of linear (kernel) attention that reads the pairs before the question.
Source: counting, as for any recurrent net; Arora et al. 2023, arXiv 2312.04927 [S] for the comparison.
"""

from __future__ import annotations

from vitrify.bounds.calculators.associative_recall import needed
from vitrify.bounds.calculators.catalogue import Bound, Parameter, Reading, Values


def evaluate(v: Values) -> Reading:
    """Bits of the sums against bits of the pairs."""
    has, needs = v["H"] * v["k"] * (v["m"] + 1) * v["p"], needed(v["P"], v["V"])
    figures = {"state bits": has, "state bits needed": needs}
    if has < needs:
        return Reading(figures, "impossible: two lists of pairs leave the same sums")
    return Reading(figures, "not excluded by this bound")


BOUND = Bound(
    status="unconditional",
    parameters=(
        Parameter("P", "pairs"),
        Parameter("V", "values", low=2),
        Parameter("k", "features of a key"),
        Parameter("m", "size of a value"),
        Parameter("p", "bits of a sum", high=64),
        Parameter("H", "heads", default=1),
    ),
    evaluate=evaluate,
)
