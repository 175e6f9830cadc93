"""Whether what an architecture learned agrees with what a theorem says about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SOLVED = 0.95  # accuracy from which on a cell counts as learnt
WORDS = {"B5": "takes state"}  # what a theorem says where it is neither that it can nor that it can't


def agreement(median: float, predicted: Sequence[Any] | None) -> str:
    """What a cell says beside its theorem."""
    if predicted is None:
        return "no theorem"
    solved, allowed = median >= SOLVED, bool(predicted[0])
    if solved == allowed:
        return "as predicted"
    return "found against a theorem" if solved else "allowed, not found"
