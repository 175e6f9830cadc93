"""Brackets that may cross, against counters in plain Python and against the counting program of the spec."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import Example, examples, make
from vitrify.sandboxes.shuffle_dyck import ShuffleDyck
from vitrify.spec.logic.crasp import shuffle_dyck


def test_laws_and_rows_are_those_of_counters() -> None:
    sandbox = ShuffleDyck(kinds=3, length=12, opening=0.4)

    @jax.jit
    def both() -> tuple[Example, jax.Array]:
        batch = examples(sandbox, 0, "test", 0, 60)
        return batch, jax.vmap(sandbox.optimal)(batch)

    batch, best = jax.device_get(both())
    for brackets, heights, logp in zip(batch.targets, batch.latent["heights"], best, strict=True):
        counts = [0, 0, 0]
        for t, bracket in enumerate(brackets.tolist()):
            law = []
            for count in counts:
                waiting = sum(other > 0 for other in counts)
                law += [(0.4 if waiting else 1) / 3, 0.6 / waiting if count else 0]
            assert np.allclose(np.exp(logp[t]), law, atol=1e-6)
            counts[bracket // 2] += 1 - 2 * (bracket % 2)
            assert heights[t].tolist() == counts
            assert min(counts) >= 0


def test_closing_what_waits_gives_a_word_of_the_spec() -> None:
    sandbox = ShuffleDyck(kinds=2, length=6)
    batch = jax.device_get(jax.jit(lambda: examples(sandbox, 0, "test", 0, 200))())
    pairs = [(sandbox.symbols[2 * kind], sandbox.symbols[2 * kind + 1]) for kind in range(2)]
    spec = shuffle_dyck(pairs, 12)
    number = {word: k for k, word in enumerate(spec.alphabet)}
    crossed = 0
    for brackets, heights in zip(batch.targets, batch.latent["heights"], strict=True):
        closing = [2 * kind + 1 for kind in range(2) for _ in range(heights[-1][kind])]
        word = np.array([[number[sandbox.symbols[bracket]] for bracket in [*brackets, *closing]]])
        assert spec.holds(word)[0, -1]
        crossed += "0213" in "".join(map(str, brackets))
    assert crossed, "brackets of two kinds must cross in some rows"


def test_bad_parameters_are_told_at_once() -> None:
    with pytest.raises(
        InputError,
        match=r"kinds must be .* at least 1, not 0; length must .*; opening must be .* above 0",
    ):
        make("shuffle_dyck", {"kinds": 0, "length": 1, "opening": 0})
