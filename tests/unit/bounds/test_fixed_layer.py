"""Fixed-point nets by two parties: the same answers as the net, at the charge of a quantized layer."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from cases import each
from fixed_layer import FixedLayer
from nets import random_net
from vitrify.bounds.fixed_point import FixedNet, Grid
from vitrify.bounds.games import Game, index_game
from vitrify.bounds.protocols import PartialSums, play
from vitrify.bounds.refute import refute
from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.transformer import Block, Head, Transformer

GAME = index_game(4)


def fixed(seed: int, **changes: Any) -> FixedNet:
    heads = (Head("softmax", "causal"), Head("softmax", "strict", window=6))
    blocks = (Block(heads, d_head=2, d_value=2, units=3),)
    fields: dict[str, Any] = {"blocks": blocks, "pads": 2, **changes}
    net = Transformer(("<s>", *GAME.symbols), Output("lm", GAME.symbols), GAME.length, 3, **fields)
    return FixedNet(random_net(net, seed), Grid(fraction=2, top=4, score=3))


def sums(layer: FixedLayer, game: Game) -> PartialSums:
    """The protocol of a layer that has the methods of a quantized one, but other numbers."""
    return PartialSums(cast(Any, layer), game)


@each("seed", range(5))
def test_two_parties_run_a_fixed_point_net(seed: int) -> None:
    net = fixed(seed)
    layer = FixedLayer(net, GAME.symbols, GAME.length)
    protocol = sums(layer, GAME)
    assert layer.bits == (2 * 4 * 4).bit_length() + 2 * 3
    assert protocol.bits == 2 * 3 * (layer.bits + 2)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        alice, bob = rng.integers(0, 2, 4).tolist(), int(rng.integers(4))
        (word,) = GAME.words(alice, bob)
        run = play(protocol, alice, bob)
        assert run.bits == protocol.bits
        assert np.array_equal(run.output, net.run(word[None] + 1)[0, -1])


def test_a_small_fixed_point_net_is_refuted() -> None:
    game = index_game(40)
    blocks = (Block((Head("softmax", "causal"),), d_head=2, d_value=1),)
    net = Transformer(("<s>", *game.symbols), Output("lm", game.symbols), game.length, 3, blocks)
    small = FixedNet(random_net(net, 7), Grid(fraction=1, top=1, score=1))
    search = refute(sums(FixedLayer(small, game.symbols, game.length), game))
    assert search.message == 2 * (3 + 2 + 6) < search.needed == 40
    found = search.refutation
    assert found is not None
    ids = np.array([[net.input_ids[symbol] for symbol in word] for word in (found.first, found.second)])
    one, other = small.run(ids)[:, -1]
    assert np.array_equal(one, other)
    assert found.answers[0] != found.answers[1]


def test_more_blocks_are_refused() -> None:
    with pytest.raises(InputError, match="one block with heads; the net has 2"):
        FixedLayer(fixed(0, blocks=(Block(units=1), Block((Head(),), 1, 1))), GAME.symbols, GAME.length)
