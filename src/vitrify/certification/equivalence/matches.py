r"""Lemma "a match": one head says of every number whether some number of the word matches it.

The network is the ideal one (`ideal.py`): heads select exactly. *Instances* are the finitely many cases of a statement,
and each is computed.

Notation: $x$ is the number at the query, $y$ at a key. Positions must play no role (instances: all position
embeddings). If $x + y \equiv 0$ modulo $M$ then the score of $y$ exceeds that of BOS, else it is below (instances: all
pairs). The head's value vector is the same for all numbers. So the head reads that value if the word has a match for
$x$, $x$ itself included, and else the value of BOS, at every length; the logits of both are right for every $x$
(instances).
"""

from __future__ import annotations

import numpy as np

from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.ideal import need_above
from vitrify.certification.equivalence.slots import ZERO
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.right import logit_margins
from vitrify.spec.tasks.match2 import Match2

MAX_MODULUS = 1 << 12


@lemma(Match2)
def a_match(case: SpecCase) -> SpecProof:
    """Prove that a network finds pairs of numbers that add up to 0."""
    ideal, spec = case.ideal, case.spec
    net = ideal.net
    if net.pads != 1 or [len(block.heads) for block in net.blocks] != [1] or net.blocks[0].units:
        raise Undecided("matches are followed behind one pad, by one head without units")
    if spec.modulus > MAX_MODULUS:
        raise Undecided(f"scores of {spec.modulus} numbers are too many to compare")
    (maps,) = ideal.selecting(0)
    if maps.head.mask != "none":
        raise Undecided("the head does not see the whole word")
    places = ideal.positions
    for matrix in (maps.q, maps.k, maps.v, ideal.w_u):
        if np.ptp(places[1:] @ matrix, axis=0).max(initial=0.0) > 0:
            raise Undecided("positions play a role")
    bos, x = ideal.embed[0] + places[0], ideal.embed[1:] + places[1]
    query = x @ maps.q + maps.b_q
    scores, level = query @ (x @ maps.k + maps.b_k).T, query @ (bos @ maps.k + maps.b_k)
    numbers = np.array([int(symbol) for symbol in net.inputs[1:]])
    match = (numbers[:, None] + numbers[None]) % spec.modulus == 0
    size = float(np.abs(scores).max() + np.abs(level).max())
    need_above(np.where(match, scores, np.inf), level[:, None], size, "BOS may be better than a match")
    need_above(level[:, None], np.where(match, -np.inf, scores), size, "a mismatch may be better than BOS")
    values = x @ maps.v
    if np.ptp(values @ ideal.w_u, axis=0).max() > ZERO:
        raise Undecided("the values of numbers differ")
    for answer, value in enumerate((bos @ maps.v, values[0])):
        logits = (x + value + maps.b_v) @ ideal.w_u + ideal.b_u
        expected = net.output.symbols.index(spec.outputs[answer])
        if not (logit_margins(logits, np.full(len(x), expected)) > case.oracle.TIE + 2 * ZERO).all():
            raise Undecided(f"the answer {spec.outputs[answer]!r} is not the best one")
    return SpecProof("a match", None, {"scores": scores.size, "answers": 2 * len(x)})
