r"""One layer of attention must send as many bits as a word has pairs, to be an induction head.

Statement: let a layer of $H$ heads, value size $m$ and $p$ bits say what followed the last occurrence of the current
symbol, on all words of length $T = 2n + 1$. Two parties run it with $H(m+1)(p + \lceil\log_2 n\rceil)$ bits in one
message and so solve INDEX of size $n$, which takes $n$ bits; so a layer with fewer can't be right.
Why: what a head brings is a quotient of sums, and a sum over one party's places is a few numbers.
Checked: random layers, a layer by hand that is right, and a built 3-gram net, all quantised: the output of the
protocol against that of the layer on all instances (or 64 random ones), bits sent against the formula; for layers
below the bound, and for the 3-gram net, two words with one output and different answers, run once more.
Source: Sanford, Hsu & Telgarsky 2024, arXiv 2408.14332 [S] (rate); the protocol and its figures are ours.
Saboteur: in place of a small layer one that is right, which is not refuted; of the right layer's message every number
loses its last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from vitrify.bounds.games import Game, index_game
from vitrify.bounds.protocols import Sums
from vitrify.bounds.quantise import quantise
from vitrify.bounds.quantised import OneLayer, random_layer
from vitrify.bounds.right import gathering_layer
from vitrify.claims._protocols import check_game, sabotage_game, subject
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.ngram import ngram
from vitrify.kit import assemble
from vitrify.spec.ngrams import random_ngram

SMALL = ((16, 1, 1, 1), (24, 1, 1, 2), (40, 2, 1, 1), (64, 1, 2, 2))  # pairs, heads, value size, bits
RIGHT = (3, 5)  # pairs


def bits(model: OneLayer, pairs: int) -> int:
    """The formula, from the sizes of the layer."""
    logarithm = int(pairs - 1).bit_length()
    return model.heads * (model.value_size + 1) * (model.bits + logarithm)


def subjects() -> Iterator[Subject]:
    """Layers below the bound, layers that are right, and a built net."""
    for pairs, heads, size, p in SMALL:
        game = index_game(pairs)
        model = random_layer(
            game.symbols, game.length, bits=p, heads=heads, value_size=size, query_size=2, ask=game.ask, seed=pairs
        )
        yield subject(f"random, {pairs} pairs", Sums(model, game), bits(model, pairs), right=_right(game))
    for pairs in RIGHT:
        game = index_game(pairs)
        model = gathering_layer(game, 16)
        yield subject(f"right, {pairs} pairs", Sums(model, game), bits(model, pairs), lambda out: "01"[np.argmax(out)])
    net = assemble(ngram(random_ngram(4, 3, seed=43), shape="heads", attention="softmax", max_length=25))
    game = index_game(12, net.architecture.inputs[1:5])
    model = quantise(net, game.symbols, game.length, 8)
    yield subject("built 3-gram net, 12 pairs", Sums(model, game), bits(model, 12), right=_right(game))


def _right(game: Game) -> Any:
    return Sums(gathering_layer(game, 18), game)


CLAIM = Claim(row="B4", status="proved", subjects=subjects, check=check_game, sabotage=sabotage_game)
