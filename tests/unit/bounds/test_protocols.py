"""Protocols: two parties find what one finds, from the message alone, in as many bits as the formula says."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from nets import random_net
from vitrify.bounds import games
from vitrify.bounds.by_hand import averaging_layer, gathering_layer, register
from vitrify.bounds.protocols import (
    ChainOfThought,
    Cut,
    Message,
    PartialSums,
    Query,
    Transcript,
    TwoParty,
    play,
    read,
    write,
)
from vitrify.bounds.quantize import quantize
from vitrify.bounds.quantized import random_layer
from vitrify.bounds.quantized_recurrent import random_recurrent
from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.transformer import Block, Head, Transformer


@given(st.integers(2, 12), st.data())
def test_reading_undoes_writing(width: int, data: st.DataObject) -> None:
    signs = data.draw(st.lists(st.booleans(), max_size=5))
    numbers = [
        data.draw(st.integers(-(1 << (width - 1)), (1 << (width - 1)) - 1) if s else st.integers(0, (1 << width) - 1))
        for s in signs
    ]
    assert read(write(numbers, width), width, signs) == numbers


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="16 does not fit 4 bits"):
        write([16], 4)
    with pytest.raises(InputError, match="-9 does not fit 4 bits"):
        write([-9], 4)
    with pytest.raises(InputError, match="do not make 7 bits"):
        read("0000000", 4, [True, False])
    with pytest.raises(InputError, match="zeros and ones"):
        Message("Alice", "nothing", "012")


def test_a_ledger_counts_by_party() -> None:
    run = Transcript((Message("Alice", "x", "010"), Message("Bob", "y", "1")), None)
    assert (run.bits, run.sent_by("Alice"), run.sent_by("Bob"), run.sent_by("Eve")) == (4, 3, 1, 0)


def agree(protocol: TwoParty, seed: int, runs: int = 5) -> None:
    """Some runs by two parties against the net itself; the message is what Bob gets, and nothing else."""
    rng, game = np.random.default_rng(seed), protocol.game
    for _ in range(runs):
        alice = rng.integers(0, game.choices, game.size).tolist()
        bob = game.questions[rng.integers(len(game.questions))]
        run = play(protocol, alice, bob)
        assert run.bits == run.sent_by("Alice") == protocol.bits
        assert np.array_equal(run.output, protocol.direct(game.words(alice, bob))[0])


@settings(max_examples=examples(30))
@given(
    st.sampled_from(
        [
            games.index_game(1),
            games.index_game(5),
            games.match3_game(3),
            games.composition_game(3, 1),
            games.index_game(4, "xyz"),
        ]
    ),
    st.integers(1, 6),
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(0, 2**20),
)
def test_partial_sums(game: Any, bits: int, heads: int, size: int, seed: int) -> None:
    model = random_layer(
        game.symbols, game.length, bits=bits, heads=heads, value_size=size, query_size=2, ask=game.ask, seed=seed
    )
    protocol = PartialSums(model, game)
    owned = len(game.places)
    assert protocol.bits == heads * (size + 1) * (bits + (ceil(log2(owned)) if owned > 1 else 0))
    agree(protocol, seed)


@pytest.mark.parametrize("pads", [1, 3])
def test_what_stands_in_front_is_known_to_bob(pads: int) -> None:
    game = games.index_game(3)
    heads = (Head("softmax", "causal"), Head("softmax", "strict"))
    net = Transformer(
        ("<s>", *game.symbols),
        Output("lm", game.symbols),
        7,
        4,
        (Block(heads, d_head=2, d_value=2, units=3),),
        pads=pads,
    )
    protocol = PartialSums(quantize(random_net(net, pads), game.symbols, game.length, 6), game)
    assert protocol.bits == 2 * 3 * (6 + 2)
    agree(protocol, pads, runs=20)


@settings(max_examples=examples(20))
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 2), st.integers(1, 3), st.booleans(), st.integers(0, 2**20))
def test_queries(pointers: int, bits: int, heads: int, size: int, own: bool, seed: int) -> None:
    game = games.averaging_game(pointers)
    model = random_layer(
        game.symbols, game.length, bits=bits, heads=heads, query_size=size, value_size=2, ask=game.ask, seed=seed
    )
    if not own:
        model = replace(model, bias=np.where(np.arange(game.length) == game.ask, -np.inf, model.bias))
    protocol = Query(model, game)
    assert protocol.bits == heads * bits * (size + (3 if own else 0))
    agree(protocol, seed)


@settings(max_examples=examples(20))
@given(
    st.sampled_from([games.pointer_game(4), games.recall_game("klm", "xyz"), games.copy_game(3, "ab", "|")]),
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(0, 2**20),
)
def test_states(game: Any, bits: int, size: int, seed: int) -> None:
    answers = game.symbols[:-1] if game.repeats else game.symbols
    protocol = Cut(random_recurrent(game.symbols, answers, size=size, bits=bits, seed=seed), game)
    assert protocol.bits == bits * size
    agree(protocol, seed)


@pytest.mark.parametrize(
    "game", [games.index_game(4), games.match3_game(4), games.composition_game(3, 2)], ids=lambda game: game.name
)
def test_a_layer_that_gathers_the_word_wins(game: Any) -> None:
    protocol = PartialSums(gathering_layer(game, 18), game)
    pairs = [(a, b) for a in game.numbered(0, game.inputs).tolist() for b in game.questions]
    said = [int(np.argmax(play(protocol, a, b).output)) for a, b in pairs]
    kinds = sorted({game.label(a, b) for a, b in pairs})
    assert [kinds[place] for place in said] == [game.label(a, b) for a, b in pairs]


def test_a_layer_that_averages_is_right() -> None:
    game = games.averaging_game(3)
    protocol = Query(averaging_layer(game, 3, 8), game)
    for alice in game.numbered(0, 8).tolist():
        for bob in game.numbered(0, 8).tolist():
            (mean,) = play(protocol, alice, bob).output
            assert abs(mean / 127 - game.label(alice, bob)) <= 0.5 / 127


@pytest.mark.parametrize(
    ("game", "bits"),
    [(games.pointer_game(6), 6), (games.copy_game(6, "ab", "|"), 6), (games.recall_game("klm", "xy"), 8)],
)
def test_registers_win_at_the_least_size(game: Any, bits: int) -> None:
    net = register(game)
    protocol = Cut(net, game)
    assert protocol.bits == bits
    for alice in game.numbered(0, game.inputs).tolist():
        for bob in game.questions:
            out = play(protocol, alice, bob).output
            said = tuple(game.symbols[s] for s in out) if game.repeats else net.answers[int(np.argmax(out))]
            assert said == game.label(alice, bob)


def test_a_chain_of_thought_by_two_parties() -> None:
    n, steps = 5, 4
    symbols = tuple(map(str, range(n)))
    layers = [
        random_layer(symbols, 2 * n + 1 + s, bits=3, heads=2, value_size=2, answers=n, seed=s) for s in range(steps)
    ]
    chain = ChainOfThought(n, tuple(layers))
    assert chain.bits == steps * (2 * 3 * (3 + 3) + 3)
    rng = np.random.default_rng(0)
    written = set()
    for _ in range(30):
        f, g, x = rng.integers(0, n, n).tolist(), rng.integers(0, n, n).tolist(), int(rng.integers(n))
        run = chain.together(f, g, x)
        assert run.output == chain.alone(f, g, x)
        assert (run.bits, run.sent_by("Bob")) == (chain.bits, steps * 3)
        written.add(tuple(run.output))
    assert len(written) > 1
