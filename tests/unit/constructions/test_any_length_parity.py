"""PARITY at every length: the margin from fractions, the same arrays for all lengths, and where rounding ends it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.certification import certify
from vitrify.certification.certificate import write_certificate
from vitrify.certification.evidence import Scope
from vitrify.constructions.catalogue import build
from vitrify.errors import BuildRefused, InputError
from vitrify.net.folder import load, save
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.positions import PositionFormula, largest_root, tabulated
from vitrify.net.weights import Weights
from vitrify.rechecking import recheck
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic

FINISHES = ("none", "norm", "attention")


def net(finish: str = "none", **choices: Any) -> Weights:
    return build(cyclic(2), "parity-any-length", finish=finish, **choices)


def leads(weights: Weights, words: np.ndarray) -> np.ndarray:
    """How far the right answer leads at the end of each word of 0 and 1."""
    logits = batch_logits(weights, with_pads(weights.architecture, words + 1))[:, -1]
    return np.asarray((logits[:, 1] - logits[:, 0]) * np.where(words.sum(axis=1) % 2, 1, -1))


def exact_mean(ones: int, length: int) -> Fraction:
    """The number whose sign is the answer, from the definition of the softmax weights, in fractions."""

    def compared(s: int) -> Fraction:
        weight_of_bos, letters = Fraction(s, 2), Fraction(length)
        return (Fraction(ones, 2) - weight_of_bos) / (weight_of_bos + letters)

    steps = [max(compared(t), Fraction(0)) - max(compared(t + 1), Fraction(0)) for t in range(length + 1)]
    at_bos = Fraction(1, 2) / (Fraction(1, 2) + length)
    alternating = sum(((-1) ** t * step for t, step in enumerate(steps)), start=Fraction(0))
    return (alternating - Fraction(3, 4) * at_bos) / (length + 1)


def test_the_margin_is_at_least_its_bound_for_every_count_in_exact_arithmetic() -> None:
    tight = set()
    for length in range(1, 90):
        bound = Fraction(1, 4 * (length + 1) * (2 * length + 1))
        for ones in range(length + 1):
            x = exact_mean(ones, length)
            assert (x > 0) == (ones % 2 == 1)
            assert abs(x) >= bound
            tight |= {(length, ones)} if abs(x) == bound else set()
    assert tight == {(2, 2)}


@each("length", [1, 2, 3, 7, 60])
def test_the_network_computes_that_number(length: int) -> None:
    words = np.tri(length + 1, length, -1, dtype=np.int64)
    expected = [abs(float(exact_mean(ones, length))) for ones in range(length + 1)]
    assert leads(net(), words) == pytest.approx(expected, rel=1e-9)


@each("finish", FINISHES)
def test_all_short_words_are_right_at_every_position(finish: str) -> None:
    weights = net(finish)
    for length in range(8):
        words = np.array(list(product((0, 1), repeat=length)), dtype=np.int64).reshape(2**length, length)
        answers = batch_logits(weights, with_pads(weights.architecture, words + 1)).argmax(axis=-1)
        assert (answers == words.sum(axis=1)[:, None] % 2).all()


def test_hard_attention_answers_after_every_letter() -> None:
    weights = build(cyclic(2), "parity-by-position")
    words = np.random.default_rng(0).integers(0, 2, size=(4, 700))
    words[0], words[1] = 1, 0
    answers = batch_logits(weights, with_pads(weights.architecture, words + 1)).argmax(axis=-1)
    assert (answers[:, 1:] == np.cumsum(words, axis=1) % 2).all()


@each("finish", FINISHES)
def test_no_array_depends_on_the_length(finish: str) -> None:
    short, long = net(finish, max_length=10), net(finish, max_length=1_000)
    assert {name: a.tobytes() for name, a in short.arrays.items()} == {n: a.tobytes() for n, a in long.arrays.items()}
    assert "pos_embed.W_pos" not in short.arrays


def test_a_norm_makes_the_lead_constant_and_epsilon_ends_that() -> None:
    for length in (5, 50, 500):
        words = np.tri(length + 1, length, -1, dtype=np.int64)[-3:]
        weights = net("norm", c=3.0)
        assert leads(weights, words) == pytest.approx(6.0, rel=1e-12)
        small = replace(weights, architecture=replace(weights.architecture, eps=1e-6))
        x = np.array([abs(float(exact_mean(int(word.sum()), length))) for word in words])
        assert leads(small, words) == pytest.approx(6 * x / np.sqrt(x * x + 1e-6), rel=1e-6)


def test_other_letters_and_states_are_the_same_check() -> None:
    other = {"odd": "even", "even": "odd"}
    machine = Automaton.explore("odd", "xyz", lambda s, a: s if a == "y" else other[s], lambda s: s == "odd")
    for name in ("parity-any-length", "parity-by-position"):
        weights = build(machine, name, max_length=8)
        assert certify(weights, machine, max_length=5, prove=True).verdict == "holds"


@each("name", ["parity-any-length", "parity-by-position", "parity"])
def test_certificates_are_proved_for_all_words(name: str) -> None:
    evidence = certify(build(cyclic(2), name, max_length=20), cyclic(2), prove=True, work=1e7)
    assert [(link.scope, link.longest, link.lemma) for link in evidence.links] == [
        (Scope.MAX_LENGTH, 20, "counts of letters")
    ] * 2


def test_a_short_test_is_not_exhaustive_where_longer_words_are_read() -> None:
    evidence = certify(net(max_length=6), cyclic(2))
    assert {link.scope for link in evidence.links} == {Scope.SAMPLED}


def test_rounding_bounds_the_length_by_its_third_root() -> None:
    architecture = net().architecture
    assert (architecture.exact_to(53), architecture.exact_to(24)) == (41_284, 49)
    assert 128 * 41_285**3 <= 2**53 < 128 * 41_286**3
    assert [largest_root(n, 3) for n in (0, 7, 8, 26, 27)] == [0, 1, 2, 2, 3]
    single = net().map(lambda array: np.asarray(array, dtype=np.float32))
    words = np.tri(50, 49, -1, dtype=np.int64)
    assert (leads(single, words) > 0).all()
    with pytest.raises(InputError, match="50 tokens, and float32 carries this network exactly up to 49"):
        leads(single, np.ones((1, 50), dtype=np.int64))
    with pytest.raises(BuildRefused, match="carries this network up to --max-length 41284, not 41285"):
        net(max_length=41_285)


def test_what_is_no_parity_check_is_refused() -> None:
    for name in ("parity-any-length", "parity-by-position"):
        with pytest.raises(BuildRefused, match="a parity check has two states"):
            build(cyclic(3), name)


def test_formulas_of_logarithms_and_parities_are_saved_and_checked_again(tmp_path: Any) -> None:
    weights = net(max_length=9)
    save(weights, tmp_path / "net", spec=cyclic(2))
    again = load(tmp_path / "net")
    assert again.digest == weights.digest
    assert {formula.function for formula in again.architecture.formulas} == {"polynomial of t mod 2", "logarithm"}
    table = tabulated(weights).arrays["pos_embed.W_pos"]
    t = np.arange(10.0)
    columns = {f.coefficients: table[:, f.dim] for f in weights.architecture.formulas if f.function == "logarithm"}
    assert np.array_equal(columns[0, 1], np.log(np.maximum(t, 1)))
    assert np.array_equal(columns[1, 1], np.log(t + 1))


def test_a_parity_has_no_longest_position() -> None:
    assert PositionFormula(0, (0, 1), "polynomial of t mod 2").exact_to(24) == 1 << 24
    assert PositionFormula(0, (0, 0, 1), "logarithm").exact_to(24) == 1 << 12


def test_an_independent_program_runs_the_same_positions(tmp_path: Any) -> None:
    for name in ("parity-any-length", "parity-by-position"):
        weights = build(cyclic(2), name, max_length=9)
        save(weights, tmp_path / name, spec=cyclic(2))
        write_certificate(tmp_path / name, certify(weights, cyclic(2), prove=True, work=1e7))
        report = recheck(tmp_path / name)
        assert (report.problem, report.unjudged) == (None, None)
