"""How states are followed: step by step, as a CPU does, and all at once, as a GPU does."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.sandboxes.catalogue import LEAST_LOG
from vitrify.sandboxes.kit.draws import _composed, _stepped, integer_below, logarithm
from vitrify.spec.automata.families import random_automaton


def test_both_ways_to_follow_an_automaton_pass_through_its_states() -> None:
    automaton = random_automaton(5, 3, seed=2)
    letters = np.random.default_rng(0).integers(3, size=17)
    table = jnp.asarray(automaton.table)

    @jax.jit
    def both() -> tuple[jax.Array, jax.Array]:
        first, inputs = jnp.int32(automaton.initial), jnp.asarray(letters)
        return (
            _stepped(lambda q, a: table[q, a], first, inputs),
            _composed(lambda q, a: table[q, a], 5, first, inputs),
        )

    right = automaton.run_batch(letters[None])[0, 1:]
    assert all(np.array_equal(found, right) for found in both())


def test_whole_numbers_and_logarithms_at_their_ends() -> None:
    most = np.float32(1) - np.float32(2**-23)  # the largest number that a uniform draw gives
    for count in (1, 3, 1000, 2**20 + 1):
        assert integer_below(jnp.array([0, most]), count).tolist() == [0, count - 1]
    assert logarithm(jnp.array([0.0, 1.0])).tolist() == [np.float32(LEAST_LOG), 0]
