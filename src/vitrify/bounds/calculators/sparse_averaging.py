r"""One head needs as many bits in its query as there are pointers to average over.

Statement: a layer that averages over any $q$ of $N \ge 2q + 1$ places to within $1/(2q)$ has queries of $m$ numbers of
$p$ bits with $Hmp \ge q$.
Assumes: one layer whose output at a place is what its heads bring there (`unit`), heads that do not attend to the place
that asks; one that does sends what that place adds as well, $H(m+1)p$ bits more.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896, Theorem 4 [S], which states $mp \ge cq$ for one head; the
constant 1 is that of the protocol for set disjointness in `vitrify.bounds`, deterministic and exact.
"""

from __future__ import annotations

from math import ceil

from vitrify.bounds.calculators.catalogue import Bound, Parameter, Reading, Values


def evaluate(v: Values) -> Reading:
    """Bits of the query against pointers."""
    has, needs = v["H"] * v["m"] * v["p"], v["q"]
    figures = {"bits of the query": has, "bits needed": needs, "least m": ceil(needs / (v["H"] * v["p"]))}
    if has < needs:
        return Reading(figures, f"impossible: two pointer sets share a query; m must be at least {figures['least m']}")
    return Reading(figures, "not excluded by this bound")


BOUND = Bound(
    status="unconditional",
    parameters=(
        Parameter("N", "places", low=3),
        Parameter("q", "pointers of a place"),
        Parameter("m", "size of a query"),
        Parameter("p", "bits of a number", high=64),
        Parameter("H", "heads", default=1),
    ),
    evaluate=evaluate,
    wrong=lambda v: [] if v["N"] >= 2 * v["q"] + 1 else [f"N must be at least 2q + 1 = {2 * v['q'] + 1}"],
)
