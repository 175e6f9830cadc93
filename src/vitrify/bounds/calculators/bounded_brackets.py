r"""One layer needs a size that grows with the length, to recognise brackets of bounded depth.

Statement: a one-layer transformer that recognises well-nested words of $N$ brackets of bounded depth has $Hmp =
\Omega(N)$; a recurrent net of constant size does it, and so do two layers.
Assumes: the constant is not stated, so the figure is a rate and no certified number.
Source: Bhattamishra, Hahn, Blunsom & Kanade 2024, arXiv 2406.09347 [S].
"""

from __future__ import annotations

from vitrify.bounds.calculators.catalogue import Bound, Parameter, Reading, Values


def evaluate(v: Values) -> Reading:
    """The rate."""
    has = v["H"] * v["m"] * v["p"]
    return Reading(
        {"Hmp": has, "N": v["N"], "N/(Hmp)": v["N"] / has},
        "Hmp must grow at least like N, with a constant that nobody has stated",
    )


BOUND = Bound(
    status="rate",
    parameters=(
        Parameter("N", "brackets", low=2),
        Parameter("H", "heads"),
        Parameter("m", "size of a value"),
        Parameter("p", "bits of a number", high=64),
    ),
    evaluate=evaluate,
)
