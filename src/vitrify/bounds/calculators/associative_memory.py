r"""A memory of facts has at least as many bits of parameters as its facts have.

Statement: parameters of $b$ bits that hold any function from $N$ inputs to $M$ outputs number at least $N\log_2 M/b$.
Assumes: every function must be held, without error; embeddings are fixed before the function is chosen. With few
outputs other limits come first: two outputs told apart by one hyperplane in $d$ dimensions allow about $2d$ inputs.
Source: counting; Nichani, Lee & Bietti 2025, arXiv 2412.06538 [S] for the setting.
"""

from __future__ import annotations

from math import ceil, log2

from vitrify.bounds.calculators.catalogue import Bound, Parameter, Reading, Values


def evaluate(v: Values) -> Reading:
    """Bits of the facts against bits of the parameters."""
    needs = v["N"] * log2(v["M"])
    figures = {"bits of the facts": needs, "least parameters": ceil(needs / v["b"])}
    if not v["parameters"]:
        return Reading(figures, f"the memory must have at least {figures['least parameters']} parameters")
    figures["bits of the parameters"] = v["parameters"] * v["b"]
    if figures["bits of the parameters"] < needs:
        return Reading(figures, "impossible: two sets of facts would share their parameters")
    return Reading(figures, "not excluded by this bound")


BOUND = Bound(
    status="unconditional",
    parameters=(
        Parameter("N", "inputs"),
        Parameter("M", "outputs", low=2),
        Parameter("b", "bits of a parameter", high=64),
        Parameter("parameters", "parameters of the memory, 0 to be told", low=0, default=0),
    ),
    evaluate=evaluate,
)
