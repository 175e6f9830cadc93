"""PARITY in two softmax layers: right on all short words, and its margin follows the law."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from cases import each
from vitrify.certification import Domain, Method, certify
from vitrify.claims._nets import zeroed
from vitrify.claims.catalogue import Subject
from vitrify.constructions.catalogue import build
from vitrify.constructions.parity import margin
from vitrify.constructions.parity import parity as parity_of
from vitrify.errors import BuildRefused, InputError
from vitrify.kit import assemble
from vitrify.kit.network import Network
from vitrify.net.answers import run
from vitrify.net.inference import logits
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic


def parity(length: int, c: float = 1.0) -> Network:
    return parity_of(cyclic(2), c, max_length=length)


def leads(weights: Weights, words: list[list[int]]) -> list[float]:
    """How far odd leads even, at the end; letters are 1 and 2, the second counts."""
    return [float(found[-1, 1] - found[-1, 0]) for found in logits(weights, words)]


def by_hand(length: int, c: float, ones: int) -> float:
    """How far odd leads even, from the two softmax averages themselves."""
    places = range(length + 1)
    odd = math.fsum(math.exp(c if j % 2 else -c) for j in places)
    even = math.fsum(math.exp(-c if j % 2 else c) for j in places)
    at = c if ones % 2 else -c
    return (math.exp(at) / odd - math.exp(-at) / even) / (length + 1)


@each("c", [0.25, 1.0, 3.0])
@each("length", [1, 2, 3, 6, 7])
def test_all_short_words_follow_the_law(length: int, c: float) -> None:
    weights = assemble(parity(length, c))
    words = [list(word) for word in product((1, 2), repeat=length)]
    for word, found in zip(words, leads(weights, words), strict=True):
        ones = word.count(2)
        assert found == pytest.approx(by_hand(length, c, ones), rel=1e-12)
        assert abs(found) == pytest.approx(margin(length, c, ones), rel=1e-12)
        assert (found > 0) == (ones % 2 == 1)


def test_the_law_is_two_tanh_over_the_square() -> None:
    for length, c in ((99, 1.0), (9, 0.5), (999, 2.0)):
        for ones in (0, 1):
            assert margin(length, c, ones) == pytest.approx(2 * math.tanh(c) / (length + 1) ** 2, rel=1e-12)
    for length, c in ((2, 1.0), (100, 1.0), (1000, 0.5)):
        number = length + 1
        for ones, sign in ((0, -1), (1, 1)):
            odd = (1 + sign / number) / (1 - math.tanh(c) ** 2 / number**2)
            assert margin(length, c, ones) == pytest.approx(odd * 2 * math.tanh(c) / number**2, rel=1e-12)


def test_only_the_table_of_positions_depends_on_the_length() -> None:
    nets = [assemble(parity(length)) for length in (1, 2, 60)]
    for net in nets[1:]:
        changed = {name for name, array in net.arrays.items() if not np.array_equal(array, nets[0].arrays[name])}
        assert changed == {"pos_embed.W_pos"}
        size = net.sizes
        assert (size.heads_per_layer, size.units, size.d_model) == ((1, 2), 3, 11)


def test_long_words() -> None:
    rng = np.random.default_rng(0)
    weights = assemble(parity(600))
    words = [rng.permutation([2] * ones + [1] * (600 - ones)).tolist() for ones in (0, 1, 299, 300, 599, 600)]
    for word, found in zip(words, leads(weights, words), strict=True):
        assert found == pytest.approx(by_hand(600, 1.0, word.count(2)), rel=1e-9)


def test_what_the_arithmetic_can_not_carry_is_refused() -> None:
    with pytest.raises(BuildRefused, match=r"use a smaller spec or maximum length$"):
        assemble(parity(50_000))
    with pytest.raises(BuildRefused, match=r"or float64$"):
        assemble(parity(100), arithmetic="float32")
    with pytest.raises(BuildRefused, match=r"--max-length .* must be a whole number of at least 1, not 0"):
        parity(0)
    with pytest.raises(BuildRefused, match="c must be positive"):
        parity(3, 0.0)


def test_any_parity_check_in_its_own_names() -> None:
    spec = Automaton.from_dict(
        states=["odd", "even"],
        alphabet=["x", "y", "z"],
        transitions={
            "odd": {"x": "even", "y": "odd", "z": "even"},
            "even": {"x": "odd", "y": "even", "z": "odd"},
        },
        initial="even",
        accepting=["odd"],
    )
    weights = build(spec, "parity", max_length=6)
    assert certify(weights, spec).verdict == "holds"
    assert run(weights, list("xyzyyx")).label == "odd"
    assert run(weights, list("xyzyyy")).label == "even"
    for words in ("xyz", "xyzxyzx"):
        with pytest.raises(InputError, match="was built for at"):
            run(weights, list(words))
    with pytest.raises(InputError, match="shorter than the network reads: at least 6"):
        certify(weights, spec, max_length=4)


def test_what_is_no_parity_check_is_refused_with_the_reason() -> None:
    for spec, reason in (
        (cyclic(3), "it has 3"),
        (cyclic(1), "it has 1"),
        (Automaton.from_regex("(a|b)*a"), "the letter .* leads from both to"),
    ):
        with pytest.raises(BuildRefused, match=reason):
            build(spec, "parity", max_length=5)
    with pytest.raises(BuildRefused, match="one net per length"):
        build(cyclic(2), "parity")
    with pytest.raises(BuildRefused, match="leave --attention out"):
        build(cyclic(2), "parity", attention="hard", max_length=5)


def test_a_certificate_asks_only_about_words_of_the_length() -> None:
    spec = cyclic(2)
    short, long = (build(spec, "parity", max_length=length) for length in (5, 40))
    assert certify(short, spec).domains[0] == Domain("words", Method.EXHAUSTIVE, 32, 5, 5)
    first = certify(long, spec).domains[0]
    assert (first.method, first.count, first.shortest, first.longest) == (Method.SAMPLED, 41, 40, 40)
    broken = zeroed(Subject("", weights=long), "blocks.1.attn.W_K", slice(None)).weights
    assert certify(broken, spec).verdict == "fails"
