r"""One layer of attention must send as many bits as half the numbers, to find three of them that sum to zero.

Statement: let a layer of $H$ heads, value size $m$ and $p$ bits say whether the first of $N = 2n + 1$ numbers and two
others sum to 0 modulo $M = N + 3$. Two parties run it with $H(m+1)(p + \lceil\log_2 n\rceil)$ bits in one message and
so decide whether two sets of $n$ elements are disjoint, which takes $n$ bits; so a layer with fewer can't be right.
Why: Alice's numbers are $i + 2$ and Bob's $M - i - 3$, where they have $i$, and 0 elsewhere; with a 1 in front only
equal $i$ make a zero. What a head brings is a quotient of sums, and Alice's share of a sum is one number.
Checked: random layers and layers by hand that are right, all quantised: the output of the protocol against that of the
layer on instances, bits sent against the formula; for layers below the bound, two inputs with one output and different
answers, run once more; that no three numbers sum to zero by accident, for all sets to $n = 5$.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896, Theorem 7 [S], which has $mpH \ge cN/\log\log N$; exact sums
cost $\log_2 n$ bits more each, which is what our formula says.
Saboteur: in place of a small layer one that is right, which is not refuted; of the right layer's message every number
loses its last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from vitrify.bounds.games import match3_game
from vitrify.bounds.protocols import Sums
from vitrify.bounds.quantised import OneLayer, random_layer
from vitrify.bounds.right import gathering_layer
from vitrify.certify.evidence import Evidence
from vitrify.claims._protocols import check_game, sabotage_game, subject
from vitrify.claims.catalogue import Claim, Subject

SMALL = ((16, 1, 1, 1), (24, 1, 1, 2), (32, 1, 1, 4))  # elements, heads, value size, bits
RIGHT = (3, 5)  # elements


def bits(model: OneLayer, size: int) -> int:
    """The formula, from the sizes of the layer."""
    return model.heads * (model.value_size + 1) * (model.bits + int(size - 1).bit_length())


def subjects() -> Iterator[Subject]:
    """Layers below the bound and layers that are right."""
    for size, heads, value, p in SMALL:
        game = match3_game(size)
        model = random_layer(game.symbols, game.length, bits=p, heads=heads, value_size=value, ask=game.ask, seed=size)
        right = Sums(gathering_layer(game, 20), game)
        yield subject(f"random, sets of {size}", Sums(model, game), bits(model, size), right=right)
    for size in RIGHT:
        game = match3_game(size)
        model = gathering_layer(game, 16)
        yield subject(f"right, sets of {size}", Sums(model, game), bits(model, size), lambda out: int(np.argmax(out)))


def check(subject: Subject) -> Evidence:
    """The protocol, and that the numbers mean what they should."""
    evidence = check_game(subject)
    game = subject.data["protocol"].game
    if game.size > max(RIGHT) or evidence.verdict != "holds":
        return evidence
    for alice, bob in product(product((0, 1), repeat=game.size), repeat=2):
        word = game.words(alice, bob)[0]
        if game.truth(word.tolist()) != game.label(alice, bob):
            return replace(evidence, verdict="fails", witness={"input": " ".join(game.spell(word))})
    return replace(evidence, cases=evidence.cases + 4**game.size)


CLAIM = Claim(row="B2", status="proved", subjects=subjects, check=check, sabotage=sabotage_game)
