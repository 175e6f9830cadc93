"""The harness for composition: its counts are right, and nobody beats the bound."""

from __future__ import annotations

from itertools import product
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from examples import examples
from vitrify.bounds.by_hand import gathering_layer
from vitrify.bounds.calculators.composition import by_fano, published
from vitrify.bounds.composition import (
    answers_of,
    best_reader,
    best_reader_of,
    climbed,
    every_message,
    functions,
    layer_bits,
    measured,
    storing_layer,
    table_strategy,
)
from vitrify.bounds.games import composition_game
from vitrify.bounds.quantized import random_layer
from vitrify.errors import InputError


def test_all_words_are_asked_once_and_judged_by_the_definition() -> None:
    asked: list[tuple[int, ...]] = []

    def says(words: np.ndarray) -> np.ndarray:
        asked.extend(map(tuple, words.tolist()))
        return np.zeros(len(words), dtype=np.int64)

    wrong, total = measured(says, 3)
    assert total == len(asked) == len(set(asked)) == 3**7
    assert wrong == sum(word[3 + word[word[6]]] != 0 for word in product(range(3), repeat=7))


def test_random_words_are_as_many_as_asked_for() -> None:
    assert measured(lambda words: np.zeros(len(words), dtype=np.int64), 50, 20_000)[1] == 20_000
    with pytest.raises(InputError, match="too many"):
        measured(lambda words: words[:, 0], 5)


@settings(max_examples=examples(15))
@given(st.integers(0, 2**20), st.integers(0, 3))
def test_the_best_reader_is_the_best_of_all(seed: int, bits: int) -> None:
    n = 2
    messages = np.random.default_rng(seed).integers(0, 1 << bits, n**n)
    tables = functions(n).tolist()
    kinds = sorted(set(messages.tolist()))
    best = 1.0
    for chosen in product(range(n), repeat=n * len(kinds)):  # every way to answer j for every message
        guess = {(kind, j): chosen[n * at + j] for at, kind in enumerate(kinds) for j in range(n)}
        errors = [guess[int(m), j] != f[j] for m, f in zip(messages, tables, strict=True) for j in range(n)]
        best = min(best, sum(errors) / len(errors))
    assert best_reader(messages, n) == pytest.approx(best)


def test_a_layer_never_does_better_than_its_best_reader() -> None:
    for seed in range(4):
        model = random_layer("0123", 9, bits=1, answers=4, query_size=2, seed=seed)
        wrong, total = measured(answers_of(model), 4)
        assert layer_bits(model, 4) == 2 * (1 + 2)
        reader = best_reader_of(model, 4)
        assert wrong / total >= reader - 1e-12
        assert reader >= max(published(4, 6), by_fano(4, 6))


def test_nobody_beats_the_bound() -> None:
    for bits in range(3):
        assert every_message(2, bits) >= max(published(2, bits), by_fano(2, bits)) - 1e-9
    for bits in range(5):
        assert climbed(3, bits, 300) >= max(published(3, bits), by_fano(3, bits)) - 1e-9
    for n in (2, 3, 4, 10, 64):
        for bits in range(0, int(n * log2(n)) + 2, max(1, n // 4)):
            assert table_strategy(n, bits) >= max(published(n, bits), by_fano(n, bits)) - 1e-9


def test_tables_cost_what_they_should() -> None:
    assert table_strategy(4, 0) == pytest.approx(3 / 4)
    assert table_strategy(4, 4) == pytest.approx(1 / 2 * 3 / 4)
    assert table_strategy(4, 5) == pytest.approx(1 - (2 + 2 / 4 + 1 / 4) / 4)
    assert table_strategy(4, 8) == pytest.approx(0)
    sent = (functions(4)[:, :2] * [1, 4]).sum(axis=1)
    assert best_reader(sent, 4) == pytest.approx(table_strategy(4, 4))


@each(("n", "size", "bits", "kept"), [(4, 2, 6, 1), (4, 5, 8, 4), (4, 3, 10, 4), (5, 1, 8, 0)])
def test_the_storing_layer_knows_exactly_what_it_stores(n: int, size: int, bits: int, kept: int) -> None:
    answers = answers_of(storing_layer(n, size, bits))
    rng = np.random.default_rng(0)
    words = rng.integers(0, n, (3000, 2 * n + 1))
    there = words[np.arange(3000), words[:, -1]]
    right = words[np.arange(3000), n + there]
    found = answers(words)
    assert (found == right)[there < kept].all()
    assert (found == 0)[there >= kept].all()


@pytest.mark.slow
def test_one_layer_with_room_for_everything_composes() -> None:
    game = composition_game(4)
    model = gathering_layer(game, 16)
    assert measured(answers_of(model), 4)[0] == 0
    assert layer_bits(model, 4) >= 8


def test_the_demonstration() -> None:
    assert published(64, 1 * (14 + 1) * 16) == 0.125
    model = storing_layer(64, 14, 16)
    wrong, total = measured(answers_of(model), 64, 4000)
    assert layer_bits(model, 64) == 15 * 22
    assert wrong / total >= 0.125
