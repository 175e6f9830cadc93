r"""One attention layer that decides Match3 needs as many bits in its partial sums as half the length.

Statement: Let one attention layer with $H$ heads of value size $m$, whose queries, keys, values and weights of keys are
integers of $p$ bits, decide whether the first of $N = 2n + 1$ numbers and two others sum to 0 modulo $M = N + 3$. Then
$H(m+1)(p + \lceil\log_2 n\rceil) \ge n$.
Why: Alice holds $i + 2$ and Bob $M - i - 3$ for each element $i$ of their sets, 0 elsewhere, and the first number is 1:
only a common $i$ makes a zero. Alice sends her partial sums, and both decide whether two sets of $n$ elements are
disjoint, which takes $n$ bits.
Checked: The protocol and the layer give the same output, and the bits sent equal the formula, on instances of three
random layers below the bound ($n = 16, 24, 32$) and two hand-written layers that are right ($n = 3, 5$), all quantized.
For layers below the bound two inputs with the same output and different answers are found and run again. For all sets
to $n = 5$ no three numbers sum to zero by accident.
Not checked: All layers below the bound: the theorem covers them by counting. The paper states $mpH \ge cN/\log\log N$
with an unknown constant $c$; our sums are exact and cost $\log_2 n$ bits more each.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896, theorem 7 [S]; the protocol and its constants are ours.
Saboteur: A layer that is right takes the place of a small one, so that nothing can be refuted; the right layer's
message loses the last bit of every number.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from vitrify.bounds.games import match3_game
from vitrify.certification.evidence import Domain, Evidence, Method
from vitrify.claims._figures import bits_sent, show
from vitrify.claims._protocols import check_game, layers, sabotage_game
from vitrify.claims.catalogue import Claim, Subject, Subjects

SMALL = ((16, 1, 1, 1, 1), (24, 1, 1, 1, 2), (32, 1, 1, 1, 4))  # elements, heads, value size, query size, bits
RIGHT = (3, 5)  # elements


def subjects() -> Subjects:
    return layers(match3_game, SMALL, RIGHT, "sets of {}", lambda out: int(np.argmax(out)), sure=20)


def check(subject: Subject) -> Evidence:
    evidence = check_game(subject)
    game = subject.data["protocol"].game
    if game.size > max(RIGHT) or evidence.verdict != "holds":
        return evidence
    for alice, bob in product(product((0, 1), repeat=game.size), repeat=2):
        word = game.words(alice, bob)[0]
        if game.truth(word.tolist()) != game.label(alice, bob):
            return replace(evidence, verdict="fails", witness={"input": " ".join(game.spell(word))})
    pairs = Domain("pairs of bit strings", Method.EXHAUSTIVE, 4**game.size)
    return replace(evidence, cases=evidence.cases + 4**game.size, domains=(*evidence.domains, pairs))


FIGURE = show(bits_sent("of the layer"))
CLAIM = Claim(
    subjects, check, sabotage_game, id="B2", standing="theorem", uncertified="about what no net can do", figure=FIGURE
)
