"""Interleaved chains: the posterior of the lag by all words, and rows that keep to their lag."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cases import each
from enumerated import Word, expect_next, many, said
from vitrify.errors import InputError
from vitrify.sandboxes.interleaved import Interleaved


@pytest.mark.parametrize(("states", "lags", "length"), [(2, (1, 3), 6), (3, (2, 1), 4), (2, (2,), 5)])
def test_the_optimum_is_that_of_all_words(states: int, lags: tuple[int, ...], length: int) -> None:
    sandbox = Interleaved(states=states, lags=lags, length=length, task=2)
    kernel = sandbox.table[:-1]
    law = np.linalg.matrix_power(kernel, 200)[0]

    def joint(word: Word) -> float:
        total = 0.0
        for lag in lags:
            p = 1.0 / len(lags)
            for t, symbol in enumerate(word):
                p *= law[symbol] if t < lag else kernel[word[t - lag], symbol]
            total += p
        return total

    expect_next(sandbox, joint)


def test_rows_are_chains_in_turns() -> None:
    sandbox = Interleaved(states=3, lags=(1, 2, 4), length=12, task=1)
    found = many(sandbox, 6000)
    lag, symbols = found.latent["lag"], found.targets
    assert np.abs(np.bincount(lag)[[1, 2, 4]] - 2000).max() < 5 * np.sqrt(6000 * 2 / 9)
    for number in (1, 2, 4):
        rows = symbols[lag == number]
        pairs = np.zeros((3, 3))
        np.add.at(pairs, (rows[:, :-number].ravel(), rows[:, number:].ravel()), 1)
        seen = pairs / pairs.sum(axis=1, keepdims=True)
        assert np.abs(seen - sandbox.table[:-1]).max() < 5 * 0.5 / np.sqrt(pairs.sum(axis=1).min())
        for t in (0, 3, 11):  # stationary from the start
            law = np.bincount(rows[:, t], minlength=3) / len(rows)
            assert np.abs(law - sandbox.table[-1]).max() < 5 * 0.5 / np.sqrt(len(rows))


def test_other_predictors_look_where_they_say() -> None:
    sandbox = Interleaved(states=3, lags=(1, 2), length=4)
    found = {name: said(sandbox, p, [(2, 0, 1)])[0] for name, p in sandbox.predictors().items()}
    first, second = sandbox.table[[-1, 2, 0, 1]], sandbox.table[[-1, -1, 2, 0]]
    assert np.allclose(found["lag_1"], first, atol=1e-6)
    assert np.allclose(found["lag_2"], second, atol=1e-6)
    assert np.allclose(found["lags"], (first + second) / 2, atol=1e-6)
    assert np.allclose(found["unigram"], sandbox.table[-1], atol=1e-6)


def test_the_rate_is_that_of_one_chain() -> None:
    sandbox = Interleaved(states=3)
    kernel, law = sandbox.table[:-1], sandbox.table[-1]
    assert np.allclose(law @ kernel, law)
    assert sandbox.rate() == pytest.approx(-(law[:, None] * kernel * np.log(kernel)).sum())


@each(
    ("wrong", "expected"),
    [
        (
            {"states": 1, "lags": (0, 1), "alpha": 0, "task": -2},
            "states must be a whole number of at least 2, not 1; lags.0 must be a whole number of at least 1, not 0; "
            "alpha must be a number above 0, not 0; task must be a whole number of at least 0, not -2",
        ),
        ({"lags": (2, 2)}, "lags must be different"),
        ({"lags": ()}, "not none"),
        ({"lags": (1, 9), "length": 9}, "length must be more than the largest lag, 9, not 9"),
    ],
)
def test_all_that_is_wrong_is_said(wrong: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        Interleaved(**wrong)
