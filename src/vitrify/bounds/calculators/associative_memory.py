r"""A memory of facts has at least as many bits of parameters as its facts have.

Statement: parameters of $b$ bits that hold any function from $N$ inputs to $M$ outputs number at least $N\log_2 M/b$.
Assumes: every function must be held, without error; embeddings are fixed before the function is chosen. With few
outputs other limits come first: one hyperplane in $d$ dimensions separates every labelling of at most $d + 1$ points
by two outputs, and a random one of about $2d$ (Cover 1965).
Source: counting; Nichani, Lee & Bietti 2025, arXiv 2412.06538 [S] for the setting.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Annotated

from vitrify.bounds.calculators.catalogue import MAX_SIZE, Bound, BoundReading, Several, Size, excluding
from vitrify.parameters import Help, Within


def evaluate(
    *,
    N: Annotated[Size, Help("inputs")],
    M: Annotated[Several, Help("outputs")],
    b: Annotated[int, Within(1, 64), Help("bits of a parameter")],
    parameters: Annotated[int, Within(0, MAX_SIZE), Help("parameters of the memory; 0: find the fewest possible")] = 0,
) -> BoundReading:
    """Bits of the facts against bits of the parameters."""
    needs = N * log2(M)
    figures = {"bits of the facts": needs, "least parameters": ceil(needs / b)}
    if not parameters:
        return BoundReading(figures, f"the memory must have at least {figures['least parameters']} parameters")
    figures["bits of the parameters"] = parameters * b
    why = "impossible: two sets of facts would share their parameters"
    return excluding(figures, figures["bits of the parameters"] < needs, why)


BOUND = Bound(status="unconditional", evaluate=evaluate)
