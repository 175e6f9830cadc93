r"""A net whose heads see windows depends on no more letters than its windows reach, layer by layer.

Statement: the output of $L$ layers of heads that see the position itself and the $w - 1$ before it depends on the last
$L(w - 1) + 1$ letters only. So no such net looks up, copies or compares anything further back.
Assumes: no recurrence, and no global position that all heads see; chains of thought start again at every step.
Source: the receptive field of stacked windows, Beltagy, Peters & Cohan 2020, arXiv 2004.05150 [S].
"""

from __future__ import annotations

from typing import Annotated

from vitrify.bounds.calculators.catalogue import Bound, BoundReading, Several, Size, excluding
from vitrify.parameters import Help


def evaluate(
    *,
    L: Annotated[Size, Help("layers")],
    w: Annotated[Several, Help("keys that a head sees, the position itself included")],
    back: Annotated[Size, Help("positions back that the answer depends on")],
) -> BoundReading:
    """Letters that the output depends on, and layers that reach far enough."""
    seen = L * (w - 1) + 1
    figures = {"letters seen": seen, "least layers": -(-back // (w - 1))}
    return excluding(figures, back >= seen, f"impossible: only the last {seen} letters are seen")


BOUND = Bound(status="unconditional", evaluate=evaluate)
