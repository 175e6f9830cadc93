r"""A one-layer induction head needs as many bits in its partial sums as the word has pairs.

Statement: Let one attention layer with $H$ heads, value size $m$ and $p$ bits per number return the symbol after the
last occurrence of the current one on all words of length $T = 2n + 1$. Then $H(m+1)(p + \lceil\log_2 n\rceil) \ge n$.
Why: What a head returns is a quotient of sums over positions. Two parties who hold half of the positions each run the
layer with one message, the partial sums, and thereby solve INDEX of size $n$, which takes $n$ bits.
Checked: The protocol and the layer give the same output, and the bits sent equal the formula, on all instances or 64
random ones: five random layers below the bound ($n = 16$ to 200), one that stores as many values as fit in 84 % of the
needed bits ($n = 200$), two hand-written layers that are right ($n = 3, 5$), and a built 3-gram net ($n = 12$), all
quantized. For each layer below the bound, and for the 3-gram net, two words with the same output and different answers
are found, some by lattice reduction, and run again.
Not checked: All layers below the bound: the theorem covers them by counting, the search here refutes the ones named
above. The paper states the rate $Hmp = \Omega(T)$; the constant and the $\log_2 n$ for exact sums are ours.
Source: Sanford, Hsu & Telgarsky 2024, arXiv 2408.14332 [S] (rate); the protocol and its constants are ours.
Saboteur: A layer that is right takes the place of a small one, so that nothing can be refuted; the right layer's
message loses the last bit of every number.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from vitrify.bounds.by_hand import capacity, indexing_layer
from vitrify.bounds.games import index_game
from vitrify.bounds.protocols import PartialSums
from vitrify.bounds.quantize import quantize
from vitrify.claims._figures import bits_sent, show
from vitrify.claims._protocols import check_game, layers, sabotage_game, subject, summing, sums_formula
from vitrify.claims.catalogue import Claim, Subjects
from vitrify.constructions.catalogue import build
from vitrify.spec.ngrams.families import random_ngram

# pairs, heads, value size, query size, bits
SMALL = ((16, 1, 1, 2, 1), (24, 1, 1, 2, 2), (40, 2, 1, 2, 1), (64, 1, 2, 2, 2), (200, 1, 8, 2, 8))
RIGHT = (3, 5)  # pairs
STORED = ((200, 5, 20),)  # pairs, value size, bits


def subjects() -> Subjects:
    yield from layers(index_game, SMALL, RIGHT, "{} pairs", lambda out: "01"[np.argmax(out)], sure=18)
    for count, size, bits in STORED:
        game = index_game(count)
        model, full = indexing_layer(game, size, bits), ceil(count / capacity(game, bits, 2)) + 1
        right = PartialSums(indexing_layer(game, full, bits), game)
        name = f"layer that stores what fits, {count} pairs"
        yield subject(name, PartialSums(model, game), sums_formula(model, count), right=right)
    net = build(random_ngram(4, 3, seed=43), "heads", attention="softmax", max_length=25)
    game = index_game(12, net.architecture.inputs[1:5])
    model = quantize(net, game.symbols, game.length, 8)
    protocol, right = PartialSums(model, game), summing(game, 18)
    yield subject("built 3-gram net, 12 pairs", protocol, sums_formula(model, 12), right=right)


FIGURE = show(bits_sent("of the layer"))
CLAIM = Claim(
    subjects,
    check_game,
    sabotage_game,
    id="B4",
    standing="theorem",
    uncertified="about what no net can do",
    figure=FIGURE,
)
