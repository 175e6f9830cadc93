"""Probabilistic automata: what the net gives to strings without their states, against sums over all ways."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from built import ATTENTIONS
from cases import each
from vitrify.certification import certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.constructions.pfsa import pfsa, sizes, sizes_in_turn, states_in_turn
from vitrify.kit import assemble
from vitrify.net.generate import generate
from vitrify.net.inference import encode, log_probabilities, logits
from vitrify.net.weights import Weights
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton, random_pfsa


def by_ways(spec: ProbabilisticAutomaton, string: tuple[str, ...]) -> float:
    """The sum over all ways through the states, each by itself."""
    begin, end = dict(spec.initial), dict(spec.final)
    moves = {(q, y, r): p for q, y, r, p in spec.transitions}
    total = 0.0
    for way in product(spec.states, repeat=len(string) + 1):
        chance = begin.get(way[0], 0.0) * end.get(way[-1], 0.0)
        for letter, q, r in zip(string, way, way[1:], strict=False):
            chance *= moves.get((q, letter, r), 0.0)
        total += chance
    return total


def by_net(weights: Weights, spec: ProbabilisticAutomaton, string: tuple[str, ...]) -> float:
    """The sum of what a net gives to the string with states beside its letters."""
    net = weights.architecture
    beside = [[token for token in spec.tokens if token.startswith(f"{letter}/")] for letter in string]
    ways = list(product(*beside))
    total = 0.0
    for way, found in zip(ways, logits(weights, [encode(net, way) for way in ways]), strict=True):
        log = log_probabilities(net.output, found)
        places = [net.output.symbols.index(symbol) for symbol in (*way, "</s>")]
        total += float(np.exp(log[np.arange(len(places)), places].sum()))
    return total


@each("seed", range(6))
def test_marginals_are_the_automatons(seed: int) -> None:
    spec = random_pfsa(seed, states=1 + seed % 3, letters=1 + seed % 2, density=0.6 + 0.1 * (seed % 4))
    weights = assemble(pfsa(spec, attention=ATTENTIONS[seed % 3], max_length=6))
    for length in range(4):
        for string in product(spec.alphabet, repeat=length):
            assert spec.probability(string) == pytest.approx(by_ways(spec, string), abs=1e-14)
            assert by_net(weights, spec, string) == pytest.approx(by_ways(spec, string), abs=1e-12)
    assert not sizes(spec).problems(weights.sizes)
    assert certify(weights, spec, work=1e7).verdict == "holds"


def by_turns(weights: Weights, spec: ProbabilisticAutomaton, string: tuple[str, ...]) -> float:
    """The sum of what a net gives to the string with a state before each letter and at the end."""
    net, total = weights.architecture, 0.0
    ways = [[f"/{way[0]}"] for way in product(spec.states, repeat=len(string) + 1)]
    for way, states in zip(ways, product(spec.states, repeat=len(string) + 1), strict=True):
        way += [token for letter, state in zip(string, states[1:], strict=True) for token in (letter, f"/{state}")]
    for way, found in zip(ways, logits(weights, [encode(net, way) for way in ways]), strict=True):
        places = [net.output.symbols.index(symbol) for symbol in (*way, "</s>")]
        total += float(np.exp(log_probabilities(net.output, found)[np.arange(len(places)), places].sum()))
    return total


@each("seed", range(4))
def test_states_and_letters_in_turn_have_the_same_marginals(seed: int) -> None:
    spec = random_pfsa(seed, states=1 + seed % 3, letters=1 + seed % 2, density=0.6 + 0.1 * (seed % 4))
    net = states_in_turn(spec, attention=ATTENTIONS[seed % 3], max_length=9)
    weights = assemble(net)
    for length in range(4):
        for string in product(spec.alphabet, repeat=length):
            assert by_turns(weights, spec, string) == pytest.approx(by_ways(spec, string), abs=1e-12)
    assert not sizes_in_turn(spec, max_length=9, positions="dyadic").problems(weights.sizes)
    assert certify(weights, spec, work=1e7).verdict == "holds"
    assert spec.erased(("/q0", "a", "/q1", "</s>")) == ("a",)


def test_drawn_strings_come_as_often_as_they_should() -> None:
    spec = random_pfsa(1, states=3, letters=2)
    weights = assemble(pfsa(spec, max_length=64))
    drawn = [spec.erased(thought.symbols) for thought in generate(weights, [()] * 3000, 65, seed=0)]
    for string in [(), *product(spec.alphabet, repeat=1), *product(spec.alphabet, repeat=2)]:
        p = spec.probability(string)
        assert abs(drawn.count(string) / 3000 - p) < 4 * np.sqrt(p * (1 - p) / 3000)


def test_nearly_every_mutation_is_noticed() -> None:
    spec = random_pfsa(2, states=2, letters=2)
    found = mutation_test(assemble(pfsa(spec, max_length=8)), spec, count=60, work=1e7)
    assert found.rate >= 0.95, found.survivors
