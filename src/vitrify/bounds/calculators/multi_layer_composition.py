r"""Composing $L$ functions in turn takes more than $L$ layers, or a width that is a power of the length.

Statement: no decoder-only transformer with $L$ layers of $H$ heads, size $d$ and $p$ bits composes $L$ functions in
turn over inputs of $n$ tokens, if $Hdp \le n^{2^{-4L}}$; $L + 1$ layers of a size polylogarithmic in $n$ do.
Assumes: $L$ of the order of $\log\log n$ at most, with a constant that is not stated here, so the figure is only a
rate. It is a power of $Hdp$ with the exponent $2^{4L}$: for the sizes of real nets it is vacuous.
Source: Chen, Peng & Wu 2024, arXiv 2412.02975 [S].
"""

from __future__ import annotations

from math import log2
from typing import Annotated

from vitrify.bounds.calculators.catalogue import MAX_SIZE, Bits, Bound, BoundReading, Heads, ValueSize
from vitrify.parameters import Help, Within


def evaluate(
    *, L: Annotated[int, Within(1, 32), Help("layers, and functions to compose")], H: Heads, d: ValueSize, p: Bits
) -> BoundReading:
    """The least length that is excluded, as a power of two."""
    exponent = 2.0 ** (4 * L) * log2(H * d * p)
    figures = {"Hdp": H * d * p, "log₂ of the least n": exponent, "layers that suffice": L + 1}
    if exponent > log2(MAX_SIZE):
        return BoundReading(figures, f"vacuous for real inputs: it begins at n = 2^{exponent:.6g}")
    return BoundReading(
        figures, f"from about n = 2^{exponent:.4g} on, {L} layers of these sizes are too few for {L} functions"
    )


BOUND = Bound(status="rate", evaluate=evaluate)
