"""Counting languages against a list of all words."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import Example, examples, make
from vitrify.sandboxes.counting import Counting


@pytest.mark.parametrize(("letters", "most"), [(1, 3), (2, 5), (3, 4)])
def test_laws_are_those_of_all_words(letters: int, most: int) -> None:
    sandbox = Counting(letters, most)
    end = sandbox.symbols[-1]
    texts = ["".join(name * n for name in sandbox.symbols[:-1]) for n in range(1, most + 1)]
    words = [[*text, *[end] * (letters * most + 1 - len(text))] for text in texts]
    numbers = np.array([[sandbox.symbols.index(symbol) for symbol in word] for word in words])
    batch = Example(numbers[:, :-1], numbers, np.ones(numbers.shape), {})
    predictors = {"optimal": sandbox.optimal, **sandbox.predictors()}
    found = jax.jit(lambda batch: {name: jax.vmap(each)(batch) for name, each in predictors.items()})(batch)
    found = jax.device_get(found)
    for n, text in enumerate(texts):
        for t in range(len(text) + 1):
            for name, seen in {"optimal": t, "bigram": 1, "unigram": 0}.items():
                begin = max(t - seen, 0)
                same = [
                    k for k, other in enumerate(texts) if len(other) >= t and words[k][begin:t] == words[n][begin:t]
                ]
                law = np.bincount(numbers[same, t], minlength=letters + 1) / len(same)
                assert np.allclose(np.exp(found[name][n, t]), law, atol=1e-6)


def test_rows_are_words_and_nothing_is_asked_after_their_end() -> None:
    sandbox = Counting(letters=2, max_count=6)
    batch = jax.device_get(jax.jit(lambda: examples(sandbox, 0, "test", 0, 300))())
    for word, weight, n in zip(batch.targets, batch.weight, batch.latent["n"], strict=True):
        assert word.tolist() == [0] * n + [1] * n + [2] * (13 - 2 * n)
        assert weight.tolist() == [1.0] * (2 * n + 1) + [0.0] * (12 - 2 * n)
    assert set(batch.latent["n"].tolist()) == set(range(1, 7))


def test_bad_parameters_are_told_at_once() -> None:
    with pytest.raises(
        InputError,
        match=r"at least 1, not 0; max_count must be a whole number of at least 1, not -1",
    ):
        make("counting", {"letters": 0, "max_count": -1})
