r"""One layer needs a size that grows with the length, to recognize brackets of bounded depth.

Statement: a one-layer transformer that recognizes well-nested words of $N$ brackets of bounded depth has $Hmp =
\Omega(N)$; a recurrent net of constant size does it, and so do two layers.
Assumes: the constant is not stated, so the figure is a rate and no certified number.
Source: Bhattamishra, Hahn, Blunsom & Kanade 2024, arXiv 2406.09347 [S].
"""

from __future__ import annotations

from typing import Annotated

from vitrify.bounds.calculators.catalogue import Bits, Bound, BoundReading, Heads, Several, ValueSize
from vitrify.parameters import Help


def evaluate(*, N: Annotated[Several, Help("brackets")], H: Heads, m: ValueSize, p: Bits) -> BoundReading:
    """The rate."""
    has = H * m * p
    return BoundReading(
        {"Hmp": has, "N": N, "N/(Hmp)": N / has},
        "Hmp must grow at least like N, with a constant that nobody has stated",
    )


BOUND = Bound(status="rate", evaluate=evaluate)
