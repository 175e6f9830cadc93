"""Counts modulo numbers on whole numbers: companion matrices against SymPy, and every length, bit by bit."""

from __future__ import annotations

from math import gcd

import numpy as np
import pytest
from sympy import Poly, Symbol, cyclotomic_poly
from sympy import totient as sympy_totient

from cases import each
from vitrify.certification import certify
from vitrify.certification.evidence import Scope
from vitrify.constructions.catalogue import build
from vitrify.constructions.cyclotomic import companion, cyclotomic_polynomial, ramanujan_sum, totient
from vitrify.errors import BuildRefused
from vitrify.net.inference import batch_logits
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, flip_flop, product, symmetric_group


def test_polynomials_and_degrees_are_those_of_sympy() -> None:
    x = Symbol("x")
    for order in [*range(1, 61), 105]:
        polynomial = Poly(cyclotomic_poly(order, x), x).all_coeffs()[::-1]
        assert list(cyclotomic_polynomial(order)) == [int(c) for c in polynomial]
        assert totient(order) == int(sympy_totient(order))


def test_a_power_of_a_companion_matrix_is_the_identity_at_its_order_first() -> None:
    for order in range(1, 31):
        power = np.eye(totient(order))
        for exponent in range(1, order + 1):
            power = power @ companion(order)
            assert np.array_equal(power, np.eye(totient(order))) == (exponent == order)


def test_sums_of_roots_are_largest_at_zero_and_follow_the_recurrence() -> None:
    for order in range(1, 31):
        sums = [ramanujan_sum(order, difference) for difference in range(2 * order)]
        exact = [
            sum(np.exp(2j * np.pi * a * m / order) for a in range(order) if gcd(a, order) == 1) for m in range(order)
        ]
        assert sums[:order] == pytest.approx(np.real(exact), abs=1e-9)
        assert all(value < sums[0] for value in sums[1:order])
        taps = cyclotomic_polynomial(order)
        assert all(sum(c * sums[at + i] for i, c in enumerate(taps)) == 0 for at in range(order - len(taps)))


@each("modulus", [2, 3, 4, 5, 9, 12])
def test_states_repeat_without_rounding(modulus: int) -> None:
    weights = build(cyclic(modulus, 3), "cyclotomic", max_length=20_000)
    words = np.random.default_rng(modulus).integers(0, 3, size=(1, 20_000))
    seen: dict[str, np.ndarray] = {}
    tokens = np.pad(words + 1, ((0, 0), (1, 0)))
    weights.architecture.forward(weights.prepared, tokens, record=seen.__setitem__)
    assert len(np.unique(seen["blocks.0.hook_state"][0], axis=0)) == modulus
    answers = batch_logits(weights, tokens).argmax(axis=-1)
    assert (answers == cyclic(modulus, 3).run_batch(words)).all()


def test_groups_of_several_factors_are_proved_at_every_length() -> None:
    for machine, size in ((product(cyclic(3), cyclic(3)), 4), (product(cyclic(2), cyclic(4)), 3), (cyclic(1), 1)):
        weights = build(machine, "cyclotomic")
        evidence = certify(weights, machine, prove=True, work=1e7)
        assert weights.sizes.d_model == size
        assert {link.scope for link in evidence.links} == {Scope.EVERY_LENGTH}


@pytest.mark.parametrize(
    ("machine", "why"),
    [(symmetric_group(3), "the order of its letters matters"), (flip_flop(), "the letter .* merges states")],
)
def test_what_is_no_count_is_refused(machine: Automaton, why: str) -> None:
    with pytest.raises(BuildRefused, match=f"sums of letters that permute the states, but {why}"):
        build(machine, "cyclotomic")
