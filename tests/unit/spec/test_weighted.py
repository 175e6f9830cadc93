"""Weighted automata in fractions: strings by all ways, total mass by powers, erased letters by sums over runs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cases import each
from oracles.naive_probabilistic import string_probability
from vitrify.errors import BuildRefused, InputError
from vitrify.spec import read_spec
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton, mixture, random_pfsa
from vitrify.spec.automata.tightness import ngram_automaton, tightness
from vitrify.spec.automata.weighted import ERASED, WeightedAutomaton
from vitrify.spec.computation.probabilistic_turing import drifting_walk, equal_numbers
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import NGramModel

EXAMPLES = Path(__file__).parents[3] / "examples"
ONE, HALF = Fraction(1), Fraction(1, 2)


def random_weighted(seed: int, states: int, *, closed: bool) -> WeightedAutomaton:
    """An automaton of small fractions over a, b and nothing; `closed`: some states never end."""
    rng = np.random.default_rng(seed)

    def follow(q: int) -> tuple[list[tuple[str, int, Fraction]], Fraction]:
        steps = [(letter, r) for letter in ("a", "b", ERASED) for r in range(states) if rng.random() < 0.5]
        shares = [int(n) for n in rng.integers(1, 9, size=len(steps) + 1)]
        shares[-1] *= not (closed and q % 2)
        total = max(1, sum(shares))
        return [(*step, Fraction(n, total)) for step, n in zip(steps, shares, strict=False)], Fraction(
            shares[-1], total
        )

    return WeightedAutomaton.explore({0: HALF, states - 1: HALF} if states > 1 else {0: ONE}, follow, ("a", "b"))


def dense(exact: WeightedAutomaton) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    moves = {letter: np.zeros((len(exact.names),) * 2) for letter in (*exact.alphabet, ERASED)}
    for q, y, r, p in exact.moves:
        moves[y][q, r] += float(p)
    return np.array([float(p) for p in exact.initial]), moves, np.array([float(p) for p in exact.final])


@each("seed", range(8))
def test_erased_letters_and_masses_are_limits_of_sums(seed: int) -> None:
    exact = random_weighted(seed, 1 + seed % 4, closed=seed % 3 == 2)
    begin, moves, end = dense(exact)
    silent = np.linalg.matrix_power(np.eye(len(begin)) / 2 + moves[ERASED] / 2, 4000)
    every, total, now = sum(moves.values()), 0.0, begin
    for _ in range(4000):
        total += float(now @ end)
        now = now @ every
    assert float(exact.mass) == pytest.approx(total, abs=1e-9)
    assert exact.without_erased.mass == exact.mass
    assert not [y for _, y, _, _ in exact.without_erased.moves if y == ERASED]
    thinking = sum((np.linalg.matrix_power(moves[ERASED], k) for k in range(400)), np.zeros_like(silent))
    for length in range(4):
        for string in product("ab", repeat=length):
            held = begin @ thinking
            for letter in string:
                held = held @ moves[letter] @ thinking
            assert float(exact.probability(string)) == pytest.approx(float(held @ end), abs=1e-9)


@each("seed", range(4))
def test_probabilities_are_sums_over_ways(seed: int) -> None:
    spec = random_pfsa(seed, 1 + seed % 3, 2)
    exact = spec.weighted
    names = exact.names
    moves = {(names[q], y, names[r]): p for q, y, r, p in exact.moves}
    initial, final = dict(zip(names, exact.initial, strict=True)), dict(zip(names, exact.final, strict=True))
    for length in range(5):
        for string in product("ab", repeat=length):
            assert exact.probability(string) == string_probability(initial, moves, final, string)
            assert float(exact.probability(string)) == pytest.approx(spec.probability(string), abs=1e-15)
    answers = exact.meaning.after("ab")
    assert answers[0] is not None
    assert sum(answers[0].values()) == 1  # type: ignore[union-attr]
    assert ProbabilisticAutomaton.of_weighted(exact).weighted.probability("ab") == pytest.approx(
        exact.probability("ab"), abs=1e-15
    )


def test_decimal_numbers_are_taken_as_written() -> None:
    weather = read_spec(EXAMPLES / "weather.pfsa.json")
    tenths = ProbabilisticAutomaton(("q",), ("a",), (("q", 1.0),), (("q", "a", "q", 0.7),), (("q", 0.3),))
    assert tenths.weighted.probability("a") == Fraction(21, 100)
    assert weather.weighted.tightness.tight  # type: ignore[attr-defined]


def test_a_trap_takes_mass() -> None:
    moves = (("q", "a", "q", 0.2), ("q", "a", "t", 0.4), ("t", "b", "t", 1.0))
    trap = ProbabilisticAutomaton(("q", "t"), ("a", "b"), (("q", 1.0),), moves, (("q", 0.4),))
    report = tightness(trap)
    assert report.tight is False
    assert (report.mass, report.trap, report.rest) == (HALF, "t", Fraction(0))
    unreached = ProbabilisticAutomaton(("q", "t"), ("a",), (("q", 1.0),), (("t", "a", "t", 1.0),), (("q", 1.0),))
    assert tightness(unreached).tight
    for_ever = WeightedAutomaton.explore({"q": ONE}, lambda q: ([(ERASED, q, ONE)], Fraction(0)), ("a",))
    assert for_ever.mass == 0
    assert for_ever.probability("a") == 0


def test_deterministic_automata_are_told_from_others() -> None:
    assert random_pfsa(3, 4, 2, deterministic=True).weighted.is_deterministic
    assert not random_pfsa(3, 4, 2).weighted.is_deterministic
    assert not mixture().weighted.is_deterministic
    assert not random_weighted(0, 1, closed=False).is_deterministic


@each("seed", range(3))
def test_ngram_models_have_the_states_of_their_contexts(seed: int) -> None:
    model = random_ngram(2, 1 + seed, seed=seed)
    exact = ngram_automaton(model)
    for length in range(4):
        for string in product(model.readable, repeat=length):
            assert float(exact.probability(string)) == pytest.approx(np.exp(model.log_prob_of(string)), abs=1e-12)
    assert tightness(model).tight


def test_an_ngram_model_that_can_not_end_is_not_tight() -> None:
    zero, half, quarter = -99.0, float(np.log10(0.5)), float(np.log10(0.25))
    ngrams: dict[tuple[str, ...], tuple[float, float]] = {("b", "b"): (0.0, 0.0)}
    ngrams |= {("<s>",): (zero, 0.0), ("a",): (half, 0.0), ("b",): (quarter, zero), ("</s>",): (quarter, 0.0)}
    report = tightness(NGramModel.from_ngrams(ngrams))
    assert (report.mass, report.trap) == (HALF, "b")


def test_machines_have_lower_bounds() -> None:
    assert tightness(equal_numbers(), 40).mass == 1 - Fraction(1, 2**20)
    report = tightness(drifting_walk(), 200)
    assert report.tight is None
    assert (report.mass + report.rest, report.steps) == (ONE, 200)
    assert tightness(equal_numbers(ONE / 10**9), 30).to_json()["fraction"] is None


def test_what_is_no_language_model_or_too_large_is_refused() -> None:
    with pytest.raises(InputError, match="a spec of type Dyck gives no probabilities"):
        tightness(Dyck.of("( )", depth=1, length=4))
    with pytest.raises(BuildRefused, match="more than 16,384 states"):
        WeightedAutomaton.explore({0: ONE}, lambda q: ([("a", q + 1, ONE)], Fraction(0)), ("a",))
    long = WeightedAutomaton.explore({0: ONE}, lambda q: ([("a", min(q + 1, 400), HALF)], Fraction(0)), ("a",))
    with pytest.raises(BuildRefused, match="at most 300"):
        WeightedAutomaton(long.names, long.alphabet, long.initial, long.moves, (Fraction(1, 3),) * 401).mass  # noqa: B018
    with pytest.raises(InputError, match="unknown"):
        mixture().weighted.probability("ab")
