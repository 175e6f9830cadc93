"""Orbits on words of one letter: periods of real diagonal recurrences divide powers of two, others need not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from vitrify.bounds.orbits import Orbit, orbit, random_stack
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.net.transformer_forward import Cache
from vitrify.spec.automata.families import cyclic, flip_flop


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_periods_divide_a_power_of_two_and_are_one_without_negative_factors(layers: int) -> None:
    signed = [orbit(random_stack(seed, "signed", layers), "1").period for seed in range(8)]
    assert all(2**layers % period == 0 for period in signed)
    assert 2 in signed
    assert {orbit(random_stack(seed, "positive", layers), "1").period for seed in range(8)} == {1}


def test_equal_states_are_equal_answers() -> None:
    for seed in range(6):
        stack = random_stack(seed, "signed", 2)
        found = orbit(stack, "1")
        pair = found.confused(3)
        assert pair is not None
        assert (pair[1] - pair[0]) % 3
        cache, logits = Cache(), []
        for token in [0] + [2] * pair[1]:
            cache.positions = 0
            logits.append(stack.architecture.forward(stack.prepared, np.array([[token]]), cache=cache).tobytes())
        assert logits[pair[0]] == logits[pair[1]]


def test_the_states_of_one_recurrence_repeat_where_rounded_numbers_do() -> None:
    stack = random_stack(3, "signed", 1, state=1)
    arrays = stack.arrays
    x = arrays["embed.W_E"][2]
    factor = float(np.tanh((x @ arrays["blocks.0.rec.W_A"] + arrays["blocks.0.rec.b"])[0]))
    begun, drive = (float((arrays["embed.W_E"][token] @ arrays["blocks.0.rec.W_B"])[0]) for token in (0, 2))
    states = [begun]
    while states[-1] not in states[:-1]:
        product = float(Fraction(states[-1]) * Fraction(factor))  # rounded once, as is the sum
        states.append(float(Fraction(product) + Fraction(drive)))
    first = states.index(states[-1])
    assert orbit(stack, "1") == Orbit("1", first, len(states) - 1 - first)


def test_complex_eigenvalues_count_modulo_three() -> None:
    for modulus in (3, 5, 6):
        found = orbit(build(cyclic(modulus), "cyclotomic"), "1")
        assert (found.start, found.period) == (0, modulus)
    assert orbit(build(cyclic(3), "cyclotomic"), "1").confused(3) is None
    assert orbit(build(cyclic(2), "diagonal"), "1").period == 2
    assert orbit(build(flip_flop(), "diagonal"), "set").period == 1


def test_what_is_no_orbit_is_refused() -> None:
    with pytest.raises(InputError, match="recurrent layers alone"):
        orbit(build(cyclic(2), "log-depth", max_length=4), "1")
    with pytest.raises(InputError, match="do not repeat within 5 letters '1': raise max_steps"):
        orbit(random_stack(0, "signed", 1), "1", max_steps=5)
