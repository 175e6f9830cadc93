"""Predictions of theorems for an architecture on a task, compared with the accuracy that was learned."""

from __future__ import annotations

from collections.abc import Sequence

SOLVED = 0.95  # accuracy from which on a cell counts as learnt
YES, NO = True, False
LOST = {"parity": (NO, "B7"), "modular": (NO, "B7"), "permutations": (NO, "B8")}
FOUND = {"brackets": (YES, "R10"), "recall": (YES, "R23"), "copying": (YES, "R23"), "sorting": (YES, "R31")}
STATE = {"recall": (NO, "B5"), "copying": (NO, "B5")}
AUTOMATA = dict.fromkeys(("parity", "modular", "permutations", "brackets"), (YES, "R24"))
POSITIVE = dict.fromkeys(("parity", "modular", "permutations"), (NO, "R24"))
PREDICTED: dict[str, dict[str, tuple[bool, str]]] = {  # what the weights can be, by the id of a claim
    "transformer": LOST | FOUND,
    "looped": dict.fromkeys(("parity", "modular", "permutations"), (NO, "R14")) | FOUND,
    "LSTM": AUTOMATA | STATE,
    "positive": POSITIVE | STATE,
    "signed": POSITIVE | STATE | {"parity": (YES, "R24")},
    "reflections": AUTOMATA | STATE,
    "hybrid": POSITIVE | FOUND,
}
WORDS = {"B5": "takes state"}  # what a theorem says where it is neither that it can nor that it can't


def agreement(median: float, predicted: Sequence[object] | None) -> str:
    """Return how the accuracy of a cell compares with its theorem, in words."""
    if predicted is None:
        return "no theorem"
    solved, allowed = median >= SOLVED, bool(predicted[0])
    if solved == allowed:
        return "as predicted"
    return "found against a theorem" if solved else "allowed, not found"
