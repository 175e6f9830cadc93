"""Predictions of theorems for an architecture on a task, compared with the accuracy that was learned.

A prediction says whether weights of that architecture can solve the task at every length, and names the claim that
says so (`vitrify show B7`). The architectures `positive`, `signed` and `reflections` are linear RNNs with eigenvalues
in [0, 1], in [-1, 1] and with products of Householder reflections; `hybrid` is `positive` with an attention layer.
"""

from __future__ import annotations

from collections.abc import Sequence

SOLVED = 0.95  # accuracy from which on a task counts as learned
YES, NO = True, False
NO_GROUPS = {"parity": (NO, "B7"), "modular": (NO, "B7"), "permutations": (NO, "B8")}
LOOKUPS = {"brackets": (YES, "R10"), "recall": (YES, "R23"), "copying": (YES, "R23"), "sorting": (YES, "R31")}
NO_LOOKUPS = {"recall": (NO, "B5"), "copying": (NO, "B5")}
AUTOMATA = dict.fromkeys(("parity", "modular", "permutations", "brackets"), (YES, "R24"))
NO_GROUPS_POSITIVE = dict.fromkeys(("parity", "modular", "permutations"), (NO, "R24"))
PREDICTED: dict[str, dict[str, tuple[bool, str]]] = {  # by architecture, then task
    "transformer": NO_GROUPS | LOOKUPS,
    "looped": dict.fromkeys(("parity", "modular", "permutations"), (NO, "R14")) | LOOKUPS,
    "LSTM": AUTOMATA | NO_LOOKUPS,
    "positive": NO_GROUPS_POSITIVE | NO_LOOKUPS,
    "signed": NO_GROUPS_POSITIVE | NO_LOOKUPS | {"parity": (YES, "R24")},
    "reflections": AUTOMATA | NO_LOOKUPS,
    "hybrid": NO_GROUPS_POSITIVE | LOOKUPS,
}
WORDS = {"B5": "takes state"}  # instead of “can't”: B5 bounds the state from below by the length


def agreement(median: float, predicted: Sequence[object] | None) -> str:
    """Return how the median accuracy over seeds compares with the theorem, in words."""
    if predicted is None:
        return "no theorem"
    solved, allowed = median >= SOLVED, bool(predicted[0])
    if solved == allowed:
        return "as predicted"
    return "found against a theorem" if solved else "allowed, not found"
