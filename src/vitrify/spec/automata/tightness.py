r"""Tightness of language models: whether their strings have the total probability 1, or some runs never end.

Of a probabilistic automaton and an n-gram model the total is computed in exact fractions (`weighted.py`). The states of
an n-gram model are the contexts that it reaches; probabilities of at most $10^{-99}$, which stand for 0 in ARPA files,
count as 0, and those of each context are divided by their sum. Of a probabilistic Turing machine it is not computable:
after a number of steps, some runs have halted, and the others are all that may be missing. Fewer steps are taken where
the machine has too many configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch

import numpy as np

from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton
from vitrify.spec.automata.weighted import WeightedAutomaton
from vitrify.spec.computation.probabilistic_turing import ProbabilisticTuringMachine
from vitrify.spec.ngrams.model import BEGIN, END, NGramModel
from vitrify.spec.ngrams.trie import LOG10_ZERO, right_aligned

DEFAULT_STEPS = 200  # of a Turing machine
MAX_BITS_SHOWN = 128  # of the denominator of a fraction
ZERO = 10.0**LOG10_ZERO * (1 + 1e-9)  # probabilities up to this one stand for 0

Context = tuple[str, ...]
LANGUAGE_MODELS = (ProbabilisticAutomaton, NGramModel, ProbabilisticTuringMachine)


@dataclass(frozen=True)
class TightnessReport:
    """Total probability of all strings, from `mass` to `mass + rest`; `trap` is a state that reaches no end.

    `tight` is None where it is not known: runs of a Turing machine go on after `steps` steps.
    """

    mass: Fraction
    rest: Fraction
    tight: bool | None
    states: int
    trap: str | None = None
    steps: int | None = None

    def to_json(self) -> JsonObject:
        exact = str(self.mass) if self.mass.denominator.bit_length() <= MAX_BITS_SHOWN else None
        numbers = {"mass": float(self.mass), "fraction": exact, "rest": float(self.rest)}
        return numbers | {"tight": self.tight, "states": self.states, "trap": self.trap, "steps": self.steps}


@singledispatch
def tightness(spec: object, steps: int = DEFAULT_STEPS) -> TightnessReport:
    """Return the total probability of the strings of a language model; `steps` are those of a Turing machine.

    >>> from vitrify.spec.computation.probabilistic_turing import drifting_walk
    >>> report = tightness(drifting_walk(), 200)
    >>> f"{float(report.mass):.8f}, at most {float(report.rest):.8f} more", report.tight
    ('0.49999999, at most 0.50000001 more', None)
    """
    del steps
    raise InputError(
        f"a spec of type {type(spec).__name__} gives no probabilities to strings: give a probabilistic automaton, an "
        "n-gram model or a probabilistic Turing machine"
    )


@tightness.register
def _of_weighted(spec: WeightedAutomaton, steps: int = DEFAULT_STEPS) -> TightnessReport:
    del steps
    mass, states, trap = spec.tightness
    return TightnessReport(mass, Fraction(0), mass == 1, states, trap)


@tightness.register
def _of_automaton(spec: ProbabilisticAutomaton, steps: int = DEFAULT_STEPS) -> TightnessReport:
    return _of_weighted(spec.weighted, steps)


@tightness.register
def _of_ngrams(spec: NGramModel, steps: int = DEFAULT_STEPS) -> TightnessReport:
    return _of_weighted(ngram_automaton(spec), steps)


@tightness.register
def _of_machine(spec: ProbabilisticTuringMachine, steps: int = DEFAULT_STEPS) -> TightnessReport:
    masses = spec.masses(steps, strings=False, partial=True)
    tight = None if masses.running else True
    return TightnessReport(masses.halted, masses.running, tight, len(spec.working), steps=masses.steps)


def ngram_automaton(model: NGramModel) -> WeightedAutomaton:
    """Return the automaton of the contexts that an n-gram model reaches."""

    def last(words: Sequence[str]) -> Context:
        return tuple(words[max(0, len(words) - model.order + 1) :])

    def follow(context: Context) -> tuple[list[tuple[str, Context, Fraction]], Fraction]:
        logs = model.next_log_probs_of_contexts(right_aligned([model.ids(context)], model.order - 1))[0]
        chances = np.exp(logs)
        shares = [Fraction(p) for p in np.where(chances > ZERO, chances, 0.0).tolist()]
        total = sum(shares)
        after = {word: p / total for word, p in zip(model.predicted, shares, strict=True) if p}
        end = after.pop(END, Fraction(0))
        return [(word, last((*context, word)), p) for word, p in after.items()], end

    return WeightedAutomaton.explore({last((BEGIN,)): Fraction(1)}, follow, model.readable, " ".join)
