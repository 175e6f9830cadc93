"""Probabilistic automata on simple recurrent nets: strings against all ways, proofs for every length, refusals."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cases import each
from oracles.naive_probabilistic import string_probability
from vitrify.certification import certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.claims._runs import string_masses
from vitrify.constructions.catalogue import build
from vitrify.constructions.pfsa_recurrent import aloud_sizes, letters_sizes
from vitrify.errors import BuildRefused
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton, mixture, random_pfsa

ALOUD, LETTERS = "states-aloud-elman", "letters-elman"
SIZES = {ALOUD: aloud_sizes, LETTERS: letters_sizes}
LONGEST = 5


def automaton(seed: int, name: str) -> ProbabilisticAutomaton:
    return random_pfsa(seed, 1 + seed % 4, 1 + seed % 2, density=0.6, deterministic=name == LETTERS)


@pytest.mark.parametrize("name", [ALOUD, LETTERS])
@each("seed", range(8))
def test_strings_have_the_probabilities_of_all_ways(seed: int, name: str) -> None:
    spec = automaton(seed, name)
    weights = build(spec, name)
    assert not SIZES[name](spec).problems(weights.sizes)
    letters = {token: token.partition("/")[0] for token in weights.architecture.inputs[1:]}
    masses, _ = string_masses(weights, letters, LONGEST + 1)
    states = spec.weighted.names
    initial = dict(zip(states, spec.weighted.initial, strict=True))
    final = dict(zip(states, spec.weighted.final, strict=True))
    moves = {(states[q], y, states[r]): p for q, y, r, p in spec.weighted.moves}
    for length in range(LONGEST + 1):
        for string in product(spec.alphabet, repeat=length):
            wanted = float(string_probability(initial, moves, final, string))
            assert masses.pop(string, 0.0) == pytest.approx(wanted, abs=1e-13)
    assert not masses
    evidence = certify(weights, spec, work=1e6, prove=True)
    assert evidence.verdict == "holds"
    assert [link.scope.value for link in evidence.links] == ["every length"] * 2


def test_letters_alone_need_a_deterministic_automaton() -> None:
    with pytest.raises(BuildRefused, match="a word must determine the state"):
        build(mixture(), LETTERS)


def test_a_net_of_letters_is_told_from_that_of_another_automaton() -> None:
    spec = random_pfsa(3, 3, 2, deterministic=True)
    q, y, r, p = spec.transitions[0]
    moved = next(state for state in spec.states if state != r)
    other = replace(spec, transitions=((q, y, moved, p), *spec.transitions[1:]))
    assert certify(build(other, LETTERS), spec, work=1e6).verdict == "fails"
    assert certify(build(spec, LETTERS), spec, work=1e6).verdict == "holds"


@pytest.mark.parametrize("name", [ALOUD, LETTERS])
def test_nearly_every_mutation_is_noticed(name: str) -> None:
    spec = random_pfsa(5, 3, 2, density=1.0, deterministic=name == LETTERS)
    tested = mutation_test(build(spec, name, max_length=16), spec, count=40, work=1e6)
    assert tested.rate >= 0.8, tested.survivors


def test_states_that_are_not_reached_cost_nothing() -> None:
    moves = (("p", "a", "p", 0.5), ("u", "a", "p", 1.0))
    spec = ProbabilisticAutomaton(("p", "u"), ("a",), (("p", 1.0),), moves, (("p", 0.5),))
    assert build(spec, LETTERS).sizes.d_model == 1
    word = build(spec, LETTERS)(["a", "a"])
    assert np.exp(word[-1]) == pytest.approx([0.5, 0.5])
