"""Automata as functions of tokens, with planted mistakes: what extraction is tested on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.extraction.callables import CallableNet, callable_net
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton

LONGEST = 20
RIGHT = 2.0  # logit of the right answer


def model_of(
    spec: Automaton, wrong: Callable[[Ints], Ints] | None = None, longest: int = LONGEST, answers: str = "verdict"
) -> Weights[CallableNet]:
    """Return an automaton as a function of tokens; `wrong` [word, prefix] says where its answer is changed."""

    def function(tokens: Ints) -> Floats:
        states = spec.run_batch(tokens[:, 1:] - 1)
        codes = np.isin(states, [*spec.accepting]).astype(int) if answers == "verdict" else states
        if wrong is not None:
            codes = (codes + wrong(tokens[:, 1:])) % size
        return np.where(codes[..., None] == np.arange(size), RIGHT, 0.0)

    names = ("no", "yes") if answers == "verdict" else spec.states
    size = len(names)
    return callable_net(function, spec.alphabet, names, longest=longest)


def counts(words: Ints) -> Ints:
    """Return the number of ones in every prefix [word, prefix]."""
    return np.pad(np.cumsum(words - 1, axis=1), ((0, 0), (1, 0)))


def planted(words: Ints, trigger: str) -> Ints:
    """Return 1 after one word, given as letters 0 and 1, and 0 elsewhere."""
    wrong = np.zeros((len(words), words.shape[1] + 1), dtype=int)
    if words.shape[1] >= len(trigger):
        hit = (words[:, : len(trigger)] == np.array([int(letter) + 1 for letter in trigger])).all(axis=1)
        wrong[hit, len(trigger)] = 1
    return wrong
