"""Composition: answers as the task spec has them, of uniform functions in a uniform order."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product

import jax
import numpy as np
import pytest

from exact_rows import asked, drawn, foretold, share, told
from vitrify.errors import InputError
from vitrify.sandboxes.composition import CompositionSandbox
from vitrify.spec.tasks.composition import Composition as Task


def test_answers_are_those_of_the_task() -> None:
    sandbox = CompositionSandbox(size=7)
    found = drawn(sandbox, 200)
    best = foretold(sandbox, found)
    for number, (word, answers) in enumerate(asked(sandbox, found)):
        assert answers == told(Task(7).answers(word))
        assert sandbox.answers[best[number, -1].argmax()] == answers[15]
        f = dict(zip(map(str, range(7)), found.latent["f"][number], strict=True))
        assert {f"f{x}={y}" for x, y in f.items()} <= {*word}


def test_all_words_are_equally_likely() -> None:
    found = drawn(CompositionSandbox(size=2), 60_000)
    words = Counter(map(tuple, found.tokens.tolist()))
    every = {
        (*(entries[i] for i in order), 8 + x)
        for g0, g1, f0, f1 in product(range(2), repeat=4)
        for entries in [(g0, 2 + g1, 4 + f0, 6 + f1)]
        for order in permutations(range(4))
        for x in range(2)
    }
    assert words.keys() == every
    assert share([*words.values()], np.ones(len(every))) > 1e-6


def test_whoever_only_knows_f_guesses_among_its_values() -> None:
    sandbox = CompositionSandbox(size=5)
    found = drawn(sandbox, 3)
    guess = np.exp(jax.jit(jax.vmap(sandbox.image))(found))
    for row, f in zip(guess, found.latent["f"], strict=True):
        assert np.allclose(row[-1], np.bincount(f, minlength=5) / 5, atol=1e-6)


def test_bad_parameters_are_named() -> None:
    with pytest.raises(InputError, match="size must be a whole number from 1 to 512, not 0"):
        CompositionSandbox(size=0)
