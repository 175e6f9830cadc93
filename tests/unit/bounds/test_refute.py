"""Refuters: below the bound they always find two inputs, above it they say that nothing is forced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest

from cases import each
from nets import random_net
from vitrify.bounds import games
from vitrify.bounds.by_hand import averaging_layer, gathering_layer, register
from vitrify.bounds.kernel import averaging_net, refute_averaging
from vitrify.bounds.nets import answer, refute_net
from vitrify.bounds.protocols import Cut, PartialSums, Query, TwoParty, play
from vitrify.bounds.quantized import random_layer
from vitrify.bounds.quantized_recurrent import quantize_recurrent, random_recurrent
from vitrify.bounds.refute import refute
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.cells import Cell, CellKind
from vitrify.net.inference import logits
from vitrify.net.recurrent import Recurrent
from vitrify.spec.automata.families import cyclic
from vitrify.spec.geometry.maxout import Maxout, random_maxout, random_relu
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.ngrams.families import random_ngram

SMALL: list[Callable[[int], TwoParty]] = [
    lambda seed: _sums(games.index_game(16), 1, seed),
    lambda seed: _sums(games.index_game(40, "xyz"), 3, seed),
    lambda seed: _sums(games.match3_game(16), 1, seed),
    lambda seed: _sums(games.composition_game(5, 2), 2, seed),
    lambda seed: _query(seed),
    lambda seed: Cut(
        random_recurrent(games.pointer_game(9).symbols, "-+", size=2, bits=4, seed=seed), games.pointer_game(9)
    ),
    lambda seed: Cut(random_recurrent("ab|", "ab", size=2, bits=3, seed=seed), games.copy_game(7, "ab", "|")),
]


def _sums(game: Any, bits: int, seed: int) -> PartialSums:
    return PartialSums(random_layer(game.symbols, game.length, bits=bits, ask=game.ask, seed=seed), game)


def _query(seed: int) -> Query:
    game = games.averaging_game(8)
    return Query(random_layer(game.symbols, game.length, bits=1, query_size=2, ask=game.ask, seed=seed), game)


@each("number", range(len(SMALL)))
@each("seed", range(3))
def test_small_nets_are_refuted_by_a_pair_that_the_net_confirms(number: int, seed: int) -> None:
    protocol = SMALL[number](seed)
    game, search = protocol.game, refute(protocol)
    assert search.forced
    assert search.message == protocol.bits < search.needed == game.needed
    found = search.refutation
    assert found is not None
    words = np.array([[game.symbols.index(symbol) for symbol in word] for word in (found.first, found.second)])
    outputs = [np.ravel(protocol.direct(word[None])) for word in words]
    assert np.array_equal(outputs[0], outputs[1])
    assert tuple(outputs[0]) == found.output
    assert game.truth(words[0].tolist()) == found.answers[0] != found.answers[1] == game.truth(words[1].tolist())
    assert "a collision is forced" in str(search)


@each(
    "protocol",
    [
        PartialSums(gathering_layer(games.index_game(6), 16), games.index_game(6)),
        PartialSums(gathering_layer(games.match3_game(4), 16), games.match3_game(4)),
        Query(averaging_layer(games.averaging_game(5), 5, 8), games.averaging_game(5)),
        Cut(register(games.pointer_game(7)), games.pointer_game(7)),
    ],
    ids=["induction", "match3", "averaging", "pointers"],
)
def test_nets_that_are_right_are_not_refuted(protocol: TwoParty) -> None:
    search = refute(protocol)
    assert search.refutation is None
    assert not search.forced
    assert search.tries == protocol.game.inputs
    assert f"a message has {protocol.bits} bits, {protocol.game.needed:.4g} are needed" in str(search)
    assert "no collision forced, and none found" in str(search)


def test_a_collision_above_the_bound_is_found_and_said_to_be_unforced() -> None:
    search = refute(_sums(games.index_game(12), 4, seed=1))
    assert search.message == 2 * (4 + 4) > search.needed == 12
    assert search.refutation is not None
    assert "no collision forced, yet one was found" in str(search)


def test_few_tries_are_told() -> None:
    game = games.index_game(12)
    search = refute(PartialSums(gathering_layer(game, 20), game), tries=100)
    assert (search.tries, search.refutation) == (100, None)


class Lying(PartialSums):
    """A protocol whose messages collide although the net tells the words apart."""

    def __init__(self) -> None:
        super().__init__(gathering_layer(games.index_game(3), 16), games.index_game(3))

    def numbers(self, alice: Any) -> Any:
        return np.zeros((len(alice), 1), dtype=np.int64)


def test_a_collision_that_the_net_does_not_confirm_is_no_refutation() -> None:
    with pytest.raises(AssertionError, match="not a refutation"):
        refute(Lying())


@each("seed", range(25))
def test_narrow_fully_connected_nets_are_refuted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, width = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    places = 2 * q + 1 + int(rng.integers(5))
    units = int(rng.integers(1, places * width))
    net = random_relu([places * width + places, units, 5, width], seed=seed)
    search = refute_averaging(net, places, width, q)
    assert search.z is not None
    assert search.rank == min(units, places * width)
    assert len(set(search.pointers)) == q
    norms = np.linalg.norm(search.z, axis=1)
    assert norms.max() == pytest.approx(1)
    marks = np.isin(np.arange(places), search.pointers).astype(float)
    pair = np.array([[*search.z.ravel(), *marks], [*(-search.z).ravel(), *marks]])
    outputs, mean = net(pair), search.z[list(search.pointers)].mean(axis=0)
    assert np.allclose(outputs[0], outputs[1], atol=1e-9)
    assert max(np.linalg.norm(outputs[0] - mean), np.linalg.norm(outputs[1] + mean)) > 1 / (2 * q)


def test_places_may_have_to_go_against_the_largest_block() -> None:
    v = np.array([1, -0.9, -0.9, -0.9, -0.9])  # the two largest sum to 0.1 only
    first = np.zeros((5, 10))
    first[:, :5] = np.eye(5) - np.outer(v, v) / (v @ v)
    net = Maxout.from_relu([first, np.zeros((1, 5))], [np.zeros(5), np.zeros(1)])
    search = refute_averaging(net, 5, 1, 2)
    assert search.rank == 4
    assert 0 not in search.pointers
    assert max(search.errors) == pytest.approx(0.9)


def test_pieces_of_maxout_units_count() -> None:
    narrow, wide = random_maxout([7 + 7, 3, 1], rank=2, seed=1), random_maxout([7 + 7, 4, 1], rank=2, seed=1)
    assert refute_averaging(narrow, 7, 1, 3).rank == 6
    assert refute_averaging(wide, 7, 1, 3).z is None


def test_a_net_of_full_rank_is_exact_and_not_refuted() -> None:
    net = averaging_net(7, 2, 3)
    search = refute_averaging(net, 7, 2, 3)
    assert (search.rank, search.z) == (14, None)
    assert "no kernel" in str(search)
    z = np.random.default_rng(0).uniform(-0.7, 0.7, (7, 2))
    marks = np.array([1, 0, 0, 1, 0, 1, 0])
    assert np.allclose(net(np.concatenate([z.ravel(), marks])[None])[0], z[[0, 3, 5]].mean(axis=0), atol=1e-12)


def test_kernels_that_are_not_asked_well() -> None:
    with pytest.raises(InputError, match="2q \\+ 1"):
        refute_averaging(averaging_net(5, 1, 2), 5, 1, 3)
    with pytest.raises(InputError, match="it reads 10 and outputs 1"):
        refute_averaging(averaging_net(5, 1, 2), 7, 1, 3)


def test_a_built_net_of_one_layer() -> None:
    net = build(random_ngram(4, 3, seed=2), "heads", attention="softmax", max_length=21)
    search = refute_net(net, "induction", bits=8)
    found = search.search.refutation
    assert (search.size, search.bits) == (10, 8)
    assert found is not None
    assert search.quantized in net.architecture.output.symbols
    for word, right in zip((found.first, found.second), found.answers, strict=True):
        last = max(place for place, symbol in enumerate(word[:-1]) if symbol == word[-1])
        assert word[last + 1] == right
        assert len(word) == 21


def test_three_symbols_are_enough() -> None:
    net = build(random_ngram(3, 2, seed=2), "heads", attention="softmax", max_length=9)
    found = refute_net(net, "induction", bits=4).search.refutation
    assert found is not None
    for word, right in zip((found.first, found.second), found.answers, strict=True):
        assert word[:-1].count(word[-1]) == 1
        assert word[word.index(word[-1]) + 1] == right


def test_nets_and_tasks_that_do_not_fit() -> None:
    net = build(random_ngram(4, 3, seed=2), "heads", attention="softmax", max_length=21)
    with pytest.raises(InputError, match="no task is called 'juggling'; there are: induction, copy"):
        refute_net(net, "juggling")
    with pytest.raises(InputError, match="the size must be from 1 to 10, not 11"):
        refute_net(net, "induction", size=11)
    with pytest.raises(InputError, match="has 7, to which the bound does not apply"):
        refute_net(build(cyclic(3)), "induction")
    with pytest.raises(InputError, match="it outputs: 0 1 2"):
        refute_net(build(cyclic(3), "commutative"), "induction")
    with pytest.raises(InputError, match="copy is a task for recurrent nets"):
        refute_net(net, "copy")
    with pytest.raises(InputError, match="the net must be recurrent; it is transformer"):
        quantize_recurrent(net, net.architecture.inputs[1:3], 4)


@each("cell", get_args(CellKind))
def test_recurrent_nets_of_any_cell_by_two_parties(cell: CellKind) -> None:
    letters = tuple("abcdefgh")
    kind = Cell(cell, 2, factors=1 if cell == "householder" else 0)
    net = Recurrent(("<s>", *letters), Output("transducer", letters), max_length=17, d_embed=3, cell=kind)
    weights = random_net(net, seed=3).map(lambda array: array / 2)  # type: ignore[arg-type]
    game = games.recall_game(letters[:6], letters[6:])
    fine = quantize_recurrent(weights, letters, 18)
    words = np.random.default_rng(0).integers(0, 8, (10, 5))
    true = np.array([found[-1] for found in logits(weights, (words + 1).tolist())])
    assert np.abs(fine.after(fine.start(10), words)[1] - true).max() < 1e-3
    protocol = Cut(quantize_recurrent(weights, game.symbols, 2), game)
    assert protocol.bits == 2 * (4 if cell == "lstm" else 2)
    for alice in game.numbered(0, 8).tolist():
        run = play(protocol, alice, 2)
        assert run.bits == protocol.bits
        assert np.array_equal(run.output, protocol.direct(game.words(alice, 2))[0])
    search = refute_net(weights, "induction", bits=1)
    assert search.search.task == "recall"
    assert search.size == 6
    assert search.search.refutation is not None
    copying = refute_net(weights, "copy", bits=1, size=5)
    found = copying.search.refutation
    assert found is not None
    assert found.answers == (found.first[:5], found.second[:5])
    assert len(copying.quantized.split()) == 5
    (row,) = logits(weights, [[net.input_ids[symbol] for symbol in found.first]])
    assert copying.unrounded[0].split()[0] == letters[int(row[-1].argmax())]


def test_sets_of_symbols_are_answers_too() -> None:
    output = Output("next", ("a", "b", "c"))
    assert answer(output, np.array([1.0, -1.0, 0.5])) == "a c"
    assert answer(output, np.array([0.0, -1.0, -0.5])) == "(nothing)"
    assert answer(Output("lm", ("a", "b")), np.array([0.0, 1.0])) == "b"


def test_what_a_net_with_sets_as_answers_copies_is_spelled() -> None:
    search = refute_net(build(Dyck.of("( ) [ ]", depth=2, length=8), "dyck-lstm"), "copy")
    assert search.quantized == search.unrounded[0] == ") ( )"
