"""Whole numbers from random bits: right frequencies, and the same as slow arithmetic says."""

from __future__ import annotations

from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exact_rows import share
from vitrify.sandboxes.kit.draws import below, distinct, shuffled, waits

BITS = np.random.default_rng(3).integers(1 << 32, size=(60_000, 3), dtype=np.uint32)


def test_numbers_below_a_bound_are_the_upper_half_of_a_product() -> None:
    edges = np.array([0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1], dtype=np.uint32)
    words = np.concatenate([BITS[:500, 0], edges])
    for bound in (1, 2, 3, 97, 4095, 65_535, 65_536):
        got = jax.jit(below)(words, bound)
        assert got.tolist() == [int(word) * bound >> 32 for word in words.tolist()]


@pytest.mark.slow
def test_different_numbers_are_those_of_a_shuffle() -> None:
    """Bit for bit the partial shuffle of a list, and all orders alike."""

    def slowly(words: list[int], bound: int) -> list[int]:
        deck = list(range(bound))
        for i, word in enumerate(words):
            j = i + (word * (bound - i) >> 32)
            deck[i], deck[j] = deck[j], deck[i]
        return deck[: len(words)]

    for bound, count in ((1, 1), (4, 3), (7, 7), (65_536, 33), (40, 33)):
        words = np.random.default_rng(bound).integers(1 << 32, size=(300, count), dtype=np.uint32)
        got = jax.jit(jax.vmap(lambda bits, bound=bound: distinct(bits, bound)))(words)
        assert got.tolist() == [slowly(row, bound) for row in words.tolist()]
    got = np.asarray(jax.jit(jax.vmap(lambda bits: distinct(bits, 4)))(BITS))
    lists, times = np.unique(got, axis=0, return_counts=True)
    assert [*map(tuple, lists.tolist())] == sorted(permutations(range(4), 3))
    assert share(times, np.ones(24)) > 1e-6


def test_shuffles_are_permutations_and_all_alike() -> None:
    got = np.asarray(jax.jit(jax.vmap(shuffled))(BITS))
    lists, times = np.unique(got, axis=0, return_counts=True)
    assert [*map(tuple, lists.tolist())] == sorted(permutations(range(3)))
    assert share(times, np.ones(6)) > 1e-6
    for count in (1, 2, 128, 129):
        bits = np.random.default_rng(count).integers(1 << 32, size=count, dtype=np.uint32)
        assert sorted(jax.jit(shuffled)(bits).tolist()) == [*range(count)]


def test_waiting_times_are_logarithms() -> None:
    words = np.concatenate([BITS[:, 0], np.array([1, 2, 3, 1 << 31, (1 << 32) - 1], dtype=np.uint32)])
    wanted = -np.log2(words / 2.0**32) * 2**24
    got = np.asarray(jax.jit(waits)(words)).astype(np.float64)
    assert np.abs(got - wanted).max() <= 3
    assert int(jax.jit(waits)(jnp.uint32(0))) == 33 << 24
