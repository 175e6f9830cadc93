r"""Under hard attention, PARITY takes a number of thoughts that grows like the number of letters.

Statement: a net with hard attention, of any fixed depth, that answers PARITY of $n$ letters by a chain of thought
writes $\Omega(n)$ symbols. If it has one layer, whose $H$ heads choose their keys by position, it writes at least
$\lceil (n-1)/H\rceil$, and that many are enough.
Assumes: the constant of the rate is not stated. The figure is about one layer whose heads read the same positions after
every prompt; a letter that none of them reads is no part of what is written.
Source: Amiri, Huang, Rofin & Hahn 2025, arXiv 2502.02393 [A], the rate for PARITY [S]; the figure is ours, reached by
`parity_in_blocks` in `vitrify.bounds.thoughts`.
"""

from __future__ import annotations

from typing import Annotated

from vitrify.bounds.calculators.catalogue import Bound, BoundReading, Heads
from vitrify.parameters import Help, Within


def evaluate(*, n: Annotated[int, Within(2, 2**20), Help("letters")], H: Heads) -> BoundReading:
    """The rate, and the figure for one layer."""
    by_position = -(-(n - 1) // H)
    figures = {"n (rate)": n, "thoughts of one layer, heads that choose by position": by_position}
    return BoundReading(
        figures, f"thoughts grow like {n} times an unknown constant; {by_position} are enough, with one layer"
    )


BOUND = Bound(status="rate", evaluate=evaluate)
