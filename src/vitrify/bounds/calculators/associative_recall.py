r"""A recurrent net needs a state that holds all pairs, to recall any of them.

Statement: a net that reads $P$ pairs of key and value (one of $V$) and then answers a question about any key with an
error of at most $e$ on average has a state of at least $P(\log_2 V - h(e) - e\log_2(V-1))$ bits.
Assumes: values are independent and uniform; all the net knows of the pairs is the state at the cut between pairs and
questions. Linear attention with $k$ features and value size $m$ has a state of $k(m+1)$ numbers.
Source: Arora et al. 2023, arXiv 2312.04927 [S] for the rate; the figure is INDEX and Fano's inequality, ours.
"""

from __future__ import annotations

from math import ceil, log2

from vitrify.bounds.calculators._entropy import doubt, least_error
from vitrify.bounds.calculators.catalogue import Bound, Parameter, Reading, Values


def needed(pairs: int, values: int, error: float = 0.0) -> float:
    """Bits of state for recall with an error.

    >>> needed(8, 4), round(needed(8, 4, 0.1), 3)
    (16.0, 10.98)
    """
    return max(0.0, pairs * (log2(values) - doubt(error, values)))


def evaluate(v: Values) -> Reading:
    """Bits needed, and what a given state makes impossible."""
    needs = needed(v["P"], v["V"], v["error"])
    figures = {"state bits needed": needs}
    if not v["bits"]:
        return Reading(figures, f"the state must have at least {ceil(needs)} bits")
    least = least_error((v["P"] * log2(v["V"]) - v["bits"]) / v["P"], v["V"])
    figures |= {"state bits": v["bits"], "error at least": least}
    if v["bits"] < needs:
        return Reading(figures, f"impossible: with {v['bits']} bits at least {100 * least:.4g} % of answers are wrong")
    return Reading(figures, "not excluded by this bound")


BOUND = Bound(
    status="unconditional",
    parameters=(
        Parameter("P", "pairs"),
        Parameter("V", "values", low=2),
        Parameter("error", "share of wrong answers that is allowed", low=0, high=0.5, default=0, real=True),
        Parameter("bits", "bits of the state, 0 to be told", low=0, default=0),
    ),
    evaluate=evaluate,
)
