"""Random n-gram models: what the two families share between contexts, and the optimum by all words."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from enumerated import Word, entropies, expect_next, said
from vitrify.errors import InputError
from vitrify.sandboxes.random_ngram import RandomNGram

Family = Literal["general", "representation"]


@pytest.mark.parametrize(("n", "states", "family"), [(3, 2, "general"), (2, 3, "representation"), (1, 3, "general")])
def test_the_optimum_is_that_of_all_words(n: int, states: int, family: Family) -> None:
    sandbox = RandomNGram(n=n, states=states, family=family, length=5, task=1)

    def joint(word: Word) -> float:
        p = 1.0
        for t, symbol in enumerate(word):
            past = word[max(0, t - n + 1) : t]
            number = sum(digit * states**place for place, digit in enumerate(reversed(past)))
            p *= sandbox.tables[len(past)][number, symbol]
        return float(p)

    expect_next(sandbox, joint)
    assert np.allclose(sandbox.floor(), entropies(joint, states, 5), atol=1e-9)
    assert [*sandbox.predictors()] == ["uniform", "unigram", "bigram"][:n]


@pytest.mark.parametrize(("family", "shared"), [("representation", True), ("general", False)])
def test_contexts_share_parameters_in_one_family(family: Family, shared: bool) -> None:
    """Logits add up over places, so no pair of symbols matters beyond its symbols; and they have the rank R."""
    sandbox = RandomNGram(n=3, states=6, family=family, rank=2)
    logits = np.log(sandbox.tables[2].reshape(6, 6, 6))
    logits = logits - logits.mean(axis=2, keepdims=True)
    places = logits.mean(axis=0, keepdims=True) + logits.mean(axis=1, keepdims=True)
    crossed = logits - places + logits.mean(axis=(0, 1))
    assert np.allclose(crossed, 0, atol=1e-9) is shared
    rank = int(np.linalg.matrix_rank(logits.reshape(36, 6), tol=1e-9))
    assert rank == (2 if shared else 5)
    boundary = np.log(sandbox.tables[1]) - np.log(sandbox.tables[1]).mean(axis=1, keepdims=True)
    together = np.concatenate([logits.reshape(36, 6), boundary])
    assert bool(np.linalg.matrix_rank(together, tol=1e-9) == 2) is shared  # contexts with a boundary use the same E


def test_what_a_symbol_says_depends_on_how_far_back_it_stands_and_on_nothing_else() -> None:
    tables = RandomNGram(n=3, states=4, family="representation").tables
    table = tables[2].reshape(4, 4, 4)
    assert not np.allclose(table, table.swapaxes(0, 1))
    after, opening = np.log(table[2]), np.log(tables[1])  # one symbol back, behind a symbol or a boundary
    changes = [(rows - rows[:1]) - (rows - rows[:1]).mean(axis=1, keepdims=True) for rows in (after, opening)]
    assert np.allclose(changes[0], changes[1], atol=1e-9)


def test_temperature_flattens_and_the_scale_is_as_stated() -> None:
    flat = RandomNGram(temperature=1e6)
    assert flat.rate() == pytest.approx(np.log(16))
    for family in ("general", "representation"):
        logits = np.log(RandomNGram(n=3, states=16, family=family, rank=64, temperature=0.5).tables[2])
        spread = (logits - logits.mean(axis=1, keepdims=True)).std()
        assert spread == pytest.approx(2.0, rel=0.15)


def test_what_less_symbols_foretell_is_the_mean_in_a_long_row() -> None:
    sandbox = RandomNGram(n=3, states=2, length=4, task=5)
    kernel = sandbox.tables[2].reshape(2, 2, 2)
    law = np.full((2, 2), 0.25)
    for _ in range(500):
        law = np.einsum("ab,abc->bc", law, kernel)
    bigram = law / law.sum(axis=1, keepdims=True)
    found = said(sandbox, sandbox.predictors()["bigram"], [(1, 0, 1)])[0]
    assert np.allclose(found, [law.sum(axis=0), bigram[1], bigram[0], bigram[1]], atol=1e-6)


def test_all_that_is_wrong_is_said() -> None:
    with pytest.raises(InputError) as error:
        RandomNGram(n=0, states=1, length=1, rank=0, temperature=0, task=-1)
    assert str(error.value) == (
        "no such random_ngram: length must be a whole number of at least 2, not 1; "
        "n must be a whole number of at least 1, not 0; states must be a whole number of at least 2, not 1; "
        "rank must be a whole number of at least 1, not 0; temperature must be a number above 0, not 0; "
        "task must be a whole number of at least 0, not -1"
    )
    with pytest.raises(InputError, match="n = 8 with 64 states makes 281474976710656 probabilities: 16777216 fit"):
        RandomNGram(n=8, states=64)
