"""Recurrent language models as automata: against the net itself, run on all words; erased thoughts against sums."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from cases import each
from vitrify.bounds.language_models import automaton_of, distribution
from vitrify.bounds.quantized_recurrent import QuantizedRecurrent, quantize_recurrent, random_recurrent
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton, random_pfsa
from vitrify.spec.automata.weighted import ERASED, WeightedAutomaton
from vitrify.spec.computation.probabilistic_turing import equal_numbers

END = "</s>"


def softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits - logits.max())
    return np.asarray(shares / shares.sum())


def by_net(net: QuantizedRecurrent, word: tuple[str, ...]) -> float:
    """The probability that a net gives to a word and its end, token by token."""
    assert net.first_logits is not None
    state, logits, p = net.start(1), net.first_logits, 1.0
    for token in word:
        p *= softmax(logits)[net.answers.index(token)]
        state, after = net.after(state, np.array([[net.symbols.index(token)]]))
        logits = after[0]
    return float(p * softmax(logits)[net.answers.index(END)])


@each("seed", range(6))
def test_the_automaton_has_the_probabilities_of_the_net(seed: int) -> None:
    net = random_recurrent(("a", "b"), ("a", "b", END), size=1 + seed % 2, bits=2 + seed % 3, seed=seed)
    exact = automaton_of(net)
    assert exact.is_deterministic
    assert len(exact.names) <= 2 * 2 ** (net.bits * net.size) + 1
    assert exact.mass == 1
    for length in range(6):
        for word in product("ab", repeat=length):
            assert float(exact.probability(word)) == pytest.approx(by_net(net, word), abs=1e-13)


@each("seed", range(4))
def test_erased_thoughts_are_summed(seed: int) -> None:
    """Strings without the thought `.` have the sum over all places and numbers of thoughts."""
    net = random_recurrent(("a", "."), ("a", ".", END), size=1, bits=2, seed=seed)
    exact = automaton_of(net)
    silent = exact.relabelled({".": ERASED})
    assert silent.alphabet == ("a",)
    assert silent.mass == 1
    sums = [0.0] * 3
    for word in (word for length in range(11) for word in product("a.", repeat=length)):
        if word.count("a") < 3:
            sums[word.count("a")] += by_net(net, word)
    for count, least in enumerate(sums):
        p = float(silent.probability("a" * count))
        assert least <= p + 1e-12
        assert p == pytest.approx(numerically(exact, count), abs=1e-9)


def numerically(exact: WeightedAutomaton, count: int) -> float:
    """The same by an inverse of float matrices."""
    names = exact.names
    moves = {y: np.zeros((len(names), len(names))) for y in ("a", ".")}
    for q, y, r, p in exact.moves:
        moves[y][q, r] += float(p)
    thoughts = np.linalg.inv(np.eye(len(names)) - moves["."])
    held = np.array([float(p) for p in exact.initial]) @ thoughts
    for _ in range(count):
        held = held @ moves["a"] @ thoughts
    return float(held @ np.array([float(p) for p in exact.final]))


@each("seed", range(3))
def test_there_and_back(seed: int) -> None:
    """Automaton, net, automaton, and a net again: the strings have the same probabilities."""
    spec = random_pfsa(seed, 3, 2)
    read = automaton_of(quantize_recurrent(build(spec, "states-aloud-elman"), spec.tokens, 2))
    assert len(read.names) == len(spec.states) + 1
    letters = read.relabelled({token: token.partition("/")[0] for token in spec.tokens})
    again = ProbabilisticAutomaton.of_weighted(letters)
    net = quantize_recurrent(build(again, "states-aloud-elman"), again.tokens, 2)
    back = automaton_of(net).relabelled({token: token.partition("/")[0] for token in again.tokens})
    for length in range(5):
        for word in product("ab", repeat=length):
            assert float(letters.probability(word)) == pytest.approx(spec.probability(word), abs=1e-14)
            assert float(back.probability(word)) == pytest.approx(spec.probability(word), abs=1e-14)


@pytest.mark.parametrize(("bits", "right"), [(4, 1), (6, 2), (8, 3)])
def test_a_machine_of_few_bits_is_an_automaton_and_right_to_a_depth(bits: int, right: int) -> None:
    """a^n b^n at few bits is a finite automaton, so that it must be wrong for some n."""
    machine = equal_numbers()
    net = quantize_recurrent(build(machine, "probabilistic-turing-rnn"), machine.vocabulary, bits)
    emitted = {rule.step: rule.emitted or ERASED for rule in machine.rules}
    strings = automaton_of(net).relabelled(emitted)
    for n in range(10):
        p = float(strings.probability("a" * n + "b" * n))
        assert n > right or p == pytest.approx(0.5 ** (n + 1), abs=1e-12)
        assert n != right + 1 or p == 0


def test_what_is_no_language_model_is_refused() -> None:
    net = random_recurrent(("a",), ("a", END), size=1, bits=2)
    blind = QuantizedRecurrent(net.symbols, net.answers, net.bits, net.first, net.step, net.follow)
    with pytest.raises(InputError, match="logits before the first symbol"):
        automaton_of(blind)
    assert sum(distribution(np.array([0.3, -2.0, -900.0]))) == Fraction(1)
