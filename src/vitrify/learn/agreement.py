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
WITHIN = {"signed": ("positive",), "reflections": ("signed", "positive"), "hybrid": ("positive",)}  # has all nets of
COSTS = {"B5": "takes state", "R14": "takes depth"}  # claims that say what it costs, not that it can't
CONDITIONS = {"B8": "can't, if TC0 ≠ NC1"}
WORDS = {**COSTS, **CONDITIONS}  # instead of “can't”, on every page
MORE = {("positive", "brackets"): (YES, "R24")}  # star-free: not in the table that the recorded evidence was judged by


def prediction(architecture: str, task: str) -> tuple[bool, str] | None:
    """Return what a theorem says of an architecture and a task, or what follows from one that it includes or is in.

    >>> prediction("signed", "brackets"), prediction("positive", "sorting")
    ((True, 'R24'), None)
    """
    own = PREDICTED[architecture].get(task) or MORE.get((architecture, task))
    below = (prediction(each, task) for each in WITHIN.get(architecture, ()))
    above = (PREDICTED[name].get(task) for name, inside in WITHIN.items() if architecture in inside)
    follows = [each for each in below if each and each[0]] + [each for each in above if each and not each[0]]
    return own or next(iter(follows), None)


def agreement(median: float, predicted: Sequence[object] | None) -> str:
    """Return how the median accuracy over seeds compares with the theorem, in words."""
    if predicted is None:
        return "no theorem"
    solved, allowed = median >= SOLVED, bool(predicted[0])
    if solved == allowed:
        return "as predicted"
    return "found against a theorem" if solved else "allowed, not found"
