"""Answers to all words of a length and to others, against runs of each word alone."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import vitrify as v
from cases import each
from extracted import counts, model_of, planted
from vitrify.extraction.automata import answering_after_every_letter
from vitrify.extraction.learning import Learner, NoMachine, difference
from vitrify.extraction.observations import Exhausted, Observations, SearchBudget
from vitrify.extraction.result import RIVALS
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic
from vitrify.spec.automata.moore import MooreMachine

PARITY = MooreMachine(((0, 1), (1, 0)), (1, 0))


def observed(weights: Weights[Any], longest: int, words: int = 1 << 20) -> Observations:
    observations = Observations(answering_after_every_letter(weights), SearchBudget(words))
    observations.complete_to(longest)
    return observations


@each("construction", ("log-depth", "elman", "looped"))
def test_all_words_are_answered_as_each_alone(construction: str) -> None:
    spec = Automaton.from_regex("(ab|ba)*")
    net = v.build(spec, construction, max_length=8)
    observations = observed(net, 7)
    for length in range(8):
        for number, word in enumerate(product((0, 1), repeat=length)):
            alone = int(net([spec.alphabet[letter] for letter in word])[-1].argmax())
            assert observations.levels[length][number] == alone
            assert tuple(observations.words(length, np.array([number]))[0]) == word
    words = np.array(list(product((0, 1), repeat=5)))
    assert (observations.after(words)[:, -1] == observations.levels[5]).all()
    assert observations.budget.spent == 2**8 - 2 + 2**4 - 2  # every word but the empty one; short ones twice


@each("length", (1, 3, 6))
def test_the_first_difference_is_the_shortest_word(length: int) -> None:
    trigger = "010110"[:length]
    observations = observed(model_of(cyclic(2), lambda words: planted(words, trigger)), 6)
    assert observations.first_difference(PARITY) == tuple(map(int, trigger))
    assert observations.differences(PARITY) == [int(size == length) for size in range(7)]


def test_other_words_are_remembered_with_the_answers_to_their_prefixes() -> None:
    observations = observed(model_of(cyclic(2), lambda words: planted(words, "0110110")), 4)
    assert observations.longer_difference(PARITY) is None
    word = np.array([[0, 1, 1, 0, 1, 1, 0, 1, 1]])
    assert observations.after(word)[0].tolist() == [1, 1, 0, 1, 1, 0, 1, 0, 0, 1]  # the seventh is changed
    assert observations.longer_difference(PARITY) == (0, 1, 1, 0, 1, 1, 0)
    spent = observations.budget.spent
    observations.after(word)
    assert observations.budget.spent == spent


def test_nothing_is_run_beyond_the_budget() -> None:
    observations = observed(model_of(cyclic(2)), 3, words=30)
    with pytest.raises(Exhausted, match="the budget of 30 words is spent"):
        observations.complete_to(6)
    observations = observed(model_of(cyclic(2)), 3)
    observations.budget.close()
    with pytest.raises(Exhausted, match="seconds is spent"):
        observations.complete_to(5)


@each("longest", (3, 6))
def test_the_least_size_of_another_machine_is_no_more_than_that_of_the_nearest_one(longest: int) -> None:
    """A chain of n + 2 states says yes first after n + 1 letters; it agrees with "no" on all words to length n."""
    never = model_of(Automaton.from_dict(
        states=["q"], alphabet=["0", "1"], initial="q", accepting=[], transitions={"q": {"0": "q", "1": "q"}}
    ))  # fmt: skip
    rivals = v.extract(never, max_length=longest).evidence.measured(RIVALS)
    states = longest + 2
    chain = MooreMachine(
        tuple((min(q + 1, states - 1),) * 2 for q in range(states)), tuple(int(q == states - 1) for q in range(states))
    ).minimized()
    assert len(chain.answers) == states
    assert not any(level.any() for level in chain.levels(longest))
    assert 1 < rivals <= states


def test_answers_that_contradict_each_other_end_the_search() -> None:
    observations = observed(model_of(cyclic(2)), 4)
    observations.levels[4] = 1 - observations.levels[4]  # runs of longer words say otherwise after these
    learner = Learner(observations, 8, lambda machine: difference(observations, machine, np.zeros((1, 9), dtype=int)))
    with pytest.raises(NoMachine):
        learner.learn()
    assert learner.num_queries < 10_000


def test_counts_are_those_of_prefixes() -> None:
    assert counts(np.array([[2, 1, 2]])).tolist() == [[0, 1, 1, 2]]
