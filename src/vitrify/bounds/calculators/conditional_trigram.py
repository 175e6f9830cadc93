r"""One layer can't estimate conditional 3-grams of long words.

Statement: any one-layer net that gives the conditional 3-gram estimate over three symbols to within $1/(3T)$ on all
words of length $T$ has $2pH + dp + 2 \ge T/3$ for $H$ heads, width $d$ and $p$ bits.
Assumes: one layer, $p$-bit numbers, all words of length $T$ over {0, 1, 2}.
Source: Rajaraman et al. 2024, arXiv 2407.17686, Theorem 5 [T].
"""

from __future__ import annotations

from vitrify.bounds.calculators.catalogue import Bound, Parameter, Reading, Values


def evaluate(v: Values) -> Reading:
    """Both sides of the inequality."""
    has, needs = 2 * v["p"] * v["H"] + v["d"] * v["p"] + 2, v["T"] / 3
    figures = {"2pH + dp + 2": has, "T/3": needs, "longest word": 3 * has}
    if has < needs:
        return Reading(figures, f"impossible: words of more than {3 * has} symbols are beyond such a layer")
    return Reading(figures, "not excluded by this bound")


BOUND = Bound(
    status="unconditional",
    parameters=(
        Parameter("T", "length of a word", low=3),
        Parameter("H", "heads"),
        Parameter("d", "width"),
        Parameter("p", "bits of a number", high=64),
    ),
    evaluate=evaluate,
)
