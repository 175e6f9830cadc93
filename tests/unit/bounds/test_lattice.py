"""The lattice refuter: pairs with one message where searches among inputs fail, and nothing where there is none."""

from __future__ import annotations

from itertools import product
from math import log2
from time import process_time
from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.arrays import Ints
from vitrify.bounds.by_hand import (
    averaging_layer,
    capacity,
    checked_digits,
    comparing_register,
    digits,
    fingerprint_layer,
    gathering_layer,
    indexing_layer,
    least_squares,
    overlap_layer,
    register,
)
from vitrify.bounds.games import (
    Game,
    averaging_game,
    brackets_game,
    composition_game,
    disjointness_game,
    equality_game,
    index_game,
    match3_game,
    pointer_game,
)
from vitrify.bounds.lattice import REACH, equal_messages, moves
from vitrify.bounds.protocols import Cut, PartialSums, Query
from vitrify.bounds.quantized import random_layer
from vitrify.bounds.quantized_recurrent import random_recurrent
from vitrify.bounds.refute import Refutation, refute


class Sums:
    """A message that is a matrix times the bits, or a table's rows added up."""

    def __init__(self, matrix: Any, choices: int = 2) -> None:
        self.table = np.array(matrix)  # [entry, number, choice - 1]
        self.table = self.table[..., None] if self.table.ndim == 2 else self.table
        self.game = Game("sums", ("0",), self.table.shape[1], choices, (0,), *[lambda *_: []] * 4)  # type: ignore[arg-type]

    def numbers(self, alice: Ints) -> Ints:
        steps = np.concatenate([np.zeros_like(self.table[..., :1]), self.table], axis=2)
        return np.array([[sum(row[i, c] for i, c in enumerate(word)) for row in steps] for word in alice]) + 7


def words_of(refutation: Refutation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return refutation.first, refutation.second


def collide(message: Sums) -> bool:
    """Whether two inputs have one message, by trying all."""
    inputs = list(product(range(message.game.choices), repeat=message.game.size))
    sums = message.numbers(np.array(inputs))
    return len({tuple(row) for row in sums.tolist()}) < len(inputs)


@each("seed", range(60))
def test_small_sums_are_decided_as_by_trying_all_inputs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    choices = 2 + seed % 2
    message = Sums(rng.integers(-30, 31, (1 + seed % 3, int(rng.integers(4, 9)), choices - 1)), choices)
    search = equal_messages(message)
    assert search is not None
    assert (search.pair is not None) == collide(message)
    if search.pair is not None:
        one, other = message.numbers(np.array(search.pair))
        assert np.array_equal(one, other)
        assert not np.array_equal(*search.pair)


def test_the_determinant_is_that_of_the_lattice_of_all_integer_solutions() -> None:
    for scale in (1, 6):
        search = equal_messages(Sums(scale * np.array([[3, 5, 7]])))
        assert search is not None
        assert search.log2_det == pytest.approx(log2(9 + 25 + 49) / 2)
    repeated = equal_messages(Sums([[3, 5, 7], [6, 10, 14], [0, 0, 0]]))
    assert repeated is not None
    assert repeated.log2_det == pytest.approx(log2(83) / 2)


def test_powers_of_two_are_told_apart_and_nothing_is_searched_where_there_is_no_kernel() -> None:
    digits_apart = equal_messages(Sums([[1 << place for place in range(20)]]), subsets=5)
    assert digits_apart is not None
    assert (digits_apart.pair, digits_apart.subsets) == (None, 5)
    unit = equal_messages(Sums(np.eye(9, dtype=np.int64)))
    assert unit is not None
    assert (unit.pair, unit.subsets) == (None, 0)


def test_messages_that_are_not_sums_are_left_to_the_search_among_inputs() -> None:
    game = pointer_game(12)
    assert moves(Cut(random_recurrent(game.symbols, "-+", size=2, bits=6), game)) is None
    pointers = averaging_game(5)
    assert equal_messages(Query(averaging_layer(pointers, 5, 8), pointers)) is not None
    assert moves(Cut(register(game), game)) is not None


@pytest.mark.long
@each("seed", range(3))
def test_200_pairs_with_144_bits_are_refuted_within_seconds(seed: int) -> None:
    game = index_game(200)
    layer = random_layer(game.symbols, game.length, bits=8, value_size=8, query_size=2, ask=game.ask, seed=seed)
    start = process_time()
    search = refute(PartialSums(layer, game), tries=256)
    assert process_time() - start < 10  # 2 s where nothing else runs; asked are 5
    assert (search.message, search.needed, search.forced) == (144, 200.0, True)
    assert search.lattice is not None
    assert 70 < search.lattice.log2_det < 95
    refutation = search.refutation
    assert refutation is not None
    words = [[game.symbols.index(symbol) for symbol in word] for word in (refutation.first, refutation.second)]
    one, other = layer.run(words)
    assert np.array_equal(one, other)
    assert game.truth(words[0]) != game.truth(words[1])
    assert "a collision is forced, after 256 inputs, then by lattice reduction (log2 det" in str(search)


def test_what_is_out_of_reach_is_not_found_and_never_called_safe() -> None:
    game = index_game(300)
    layer = random_layer(game.symbols, game.length, bits=8, value_size=12, query_size=2, ask=game.ask)
    search = refute(PartialSums(layer, game), tries=64)
    assert search.refutation is None
    assert search.lattice is not None
    assert search.lattice.log2_det > REACH
    assert search.forced
    assert "forced, but not found among 64 inputs, then by lattice reduction (log2 det = 1" in str(search)
    timed = equal_messages(PartialSums(layer, game), seconds=0.01)
    assert timed is not None
    assert timed.subsets > 0


@each("game", [match3_game(120), index_game(120), brackets_game(120)])
def test_layers_with_half_of_the_bits_are_refuted_in_every_game(game: Game) -> None:
    layer = random_layer(game.symbols, game.length, bits=7, value_size=4, query_size=2, ask=game.ask, seed=1)
    search = refute(PartialSums(layer, game), tries=64)
    assert search.message == 70
    assert search.refutation is not None
    first, second = ([game.symbols.index(symbol) for symbol in word] for word in words_of(search.refutation))
    assert game.truth(first) != game.truth(second)
    assert np.array_equal(layer.run(first), layer.run(second))


def test_more_choices_make_at_most_one_move_of_each_number() -> None:
    game = composition_game(16)
    layer = random_layer(game.symbols, game.length, bits=4, value_size=4, query_size=2, ask=game.ask)
    search = refute(PartialSums(layer, game), tries=64)
    assert search.refutation is not None
    assert search.lattice is not None


@each("make", [equality_game, brackets_game, lambda size: equality_game(size, 3)])
@each("kind", [digits, checked_digits, least_squares])
def test_layers_that_compare_are_refuted_below_the_bound(make: Any, kind: Any) -> None:
    game = make(60)
    layer = fingerprint_layer(game, kind(game, 2, 16), 16)
    same = [index % game.choices for index in range(60)]
    assert layer.run(game.words(same, same)).argmax() == 1
    search = refute(PartialSums(layer, game), tries=64)
    assert search.forced == (search.message < search.needed)
    assert search.refutation is not None
    assert search.refutation.answers == (1, 0)


def test_layers_that_store_everything_are_right_and_nothing_is_forced() -> None:
    rng = np.random.default_rng(0)
    for game in (equality_game(40), equality_game(30, 4), brackets_game(40)):
        size = -(-game.size // capacity(game, 18, game.choices))
        layer = fingerprint_layer(game, digits(game, size, 18), 18)
        for _ in range(50):
            one = rng.integers(game.choices, size=game.size)
            other = one.copy()
            other[rng.integers(game.size)] = rng.integers(game.choices)
            word = game.words(one, tuple(other.tolist()))
            assert layer.run(word).argmax() == game.truth(word[0].tolist())
        search = refute(PartialSums(layer, game), tries=64, subsets=2)
        assert search.refutation is None
        assert not search.forced
        assert "no collision forced" in str(search)


@each("size", [3, 7])
def test_stored_pairs_are_answered_and_others_are_guessed(size: int) -> None:
    game = index_game(12)
    layer, fits = indexing_layer(game, size, 10), capacity(game, 10, 2)
    assert fits == 5  # 25 * 2^4 < 2^9 < 25 * 2^5
    stored = min(12, fits * (size - 1))
    for alice in np.random.default_rng(0).integers(2, size=(10, 12)).tolist():
        for index in range(12):
            word = game.words(alice, index)
            expected = game.truth(word[0].tolist()) if index < stored else "0"
            assert "01"[layer.run(word).argmax()] == expected
    search = refute(PartialSums(layer, game), tries=16, subsets=4)
    assert (search.refutation is None) == (stored == 12)


@each("stored", [5, 9])
def test_short_registers_answer_the_last_symbols(stored: int) -> None:
    game = pointer_game(9)
    net = Cut(register(game, stored), game)
    assert net.bits == stored
    for alice in np.random.default_rng(0).integers(2, size=(10, 9)).tolist():
        for index in range(9):
            answer = "-+"[net.direct(game.words(alice, index))[0].argmax()]
            assert answer == (game.label(alice, index) if index >= 9 - stored else "-")


@each("make", [lambda: equality_game(4), lambda: equality_game(3, 3), lambda: disjointness_game(4)])
def test_a_comparing_register_is_right(make: Any) -> None:
    game = make()
    net = Cut(comparing_register(game), game)
    for bob in game.questions[::3]:
        words = game.words(game.numbered(0, game.inputs), bob)
        assert net.direct(words).argmax(axis=1).tolist() == [game.truth(word) for word in words.tolist()]


def test_overlaps_of_stored_elements() -> None:
    game = disjointness_game(12)
    layer, stored = overlap_layer(game, 1, 13), capacity(game, 13, 3)
    assert stored == 5  # 25 * 3^4 < 2^12 < 25 * 3^5
    rng = np.random.default_rng(1)
    for _ in range(100):
        one, other = rng.integers(2, size=(2, 12))
        word = game.words(one, tuple(other.tolist()))
        assert layer.run(word).argmax() == int(not (one & other)[:stored].any())


@each("make", [equality_game, disjointness_game, brackets_game, lambda size: equality_game(size, 3)])
def test_labels_of_both_parties_are_the_right_answers_of_words(make: Any) -> None:
    game = make(3)
    assert len(game.questions) == game.choices**3
    for alice in game.numbered(0, game.inputs).tolist():
        for bob in game.questions:
            assert game.truth(game.words(alice, bob)[0].tolist()) == game.label(alice, bob)
        for other in game.numbered(0, game.inputs).tolist():
            if alice != other:
                query = game.question(alice, other)
                assert game.label(alice, query) != game.label(other, query)


def test_balanced_brackets_need_every_pair_to_close() -> None:
    truth = brackets_game(2).truth
    assert [truth([*map("([)]?".index, word)]) for word in ("()[]?", "(][)?", "[)()?")] == [1, 0, 0]


def test_larger_queries_are_those_with_one_other_symbol() -> None:
    assert len(equality_game(20).questions) == 22
    assert gathering_layer(equality_game(3), 16).run([[0, 1, 1, 0, 1, 1, 2]]).argmax() == 1
