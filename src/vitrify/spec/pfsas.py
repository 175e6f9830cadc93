"""Probabilistic automata to build and test with."""

from __future__ import annotations

import numpy as np

from vitrify.spec.pfsa import ProbabilisticAutomaton


def random_pfsa(seed: int, states: int, letters: int, *, density: float = 0.7) -> ProbabilisticAutomaton:
    """Random probabilities over some of all transitions; states write the same letter on the way to several others."""
    rng = np.random.default_rng(seed)
    names, alphabet = [f"q{n}" for n in range(states)], [chr(ord("a") + n) for n in range(letters)]
    moves, final = [], []
    for q in names:
        chosen = [(y, r) for y in alphabet for r in names if rng.random() < density]
        shares = rng.dirichlet(np.ones(len(chosen) + 1)).tolist()
        moves += [(q, y, r, p) for (y, r), p in zip(chosen, shares[:-1], strict=True)]
        final.append((q, 1.0 - sum(shares[:-1])))
    begin = rng.dirichlet(np.ones(states)).tolist()
    initial = [*zip(names[:-1], begin[:-1], strict=True), (names[-1], 1.0 - sum(begin[:-1]))]
    return ProbabilisticAutomaton(tuple(names), tuple(alphabet), tuple(initial), tuple(moves), tuple(final))
