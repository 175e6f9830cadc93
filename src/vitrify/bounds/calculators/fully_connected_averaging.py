r"""A fully connected net needs a first layer as wide as its input, to average over pointers.

Statement: a fully connected net that averages $N$ vectors of size $d$ over any $q$ of $N \ge 2q + 1$ places to within
$1/(2q)$ has at least $Nd/2$ units in its first layer; the kernel argument in `vitrify.bounds.kernel` gives $Nd$.
Assumes: the first layer is a matrix times the input; real weights of any precision, any depth and width behind it.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896, Theorem 10 [S] for $Nd/2$; the sharper figure is ours.
"""

from __future__ import annotations

from math import ceil

from vitrify.bounds.calculators.catalogue import Bound, Parameter, Reading, Values


def evaluate(v: Values) -> Reading:
    """The width of the first layer."""
    size = v["N"] * v["d"]
    figures = {"published least width": ceil(size / 2), "least width by the kernel": size, "width": v["width"]}
    if v["width"] < size:
        return Reading(figures, "impossible: the first layer has a kernel, and some z and -z look alike to the net")
    return Reading(figures, "not excluded by this bound")


BOUND = Bound(
    status="unconditional",
    parameters=(
        Parameter("N", "places", low=3),
        Parameter("d", "size of a vector"),
        Parameter("q", "pointers"),
        Parameter("width", "units of the first layer"),
    ),
    evaluate=evaluate,
    wrong=lambda v: [] if v["N"] >= 2 * v["q"] + 1 else [f"N must be at least 2q + 1 = {2 * v['q'] + 1}"],
)
