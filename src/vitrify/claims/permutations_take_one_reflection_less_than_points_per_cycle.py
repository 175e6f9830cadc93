r"""A permutation of $n$ points is a product of $n$ less its number of cycles Householder factors, so $S_5$ takes four.

Statement: where every letter of an automaton permutes its $n$ states, a linear recurrence on $n$ numbers whose
transitions are products of Householder factors $I - v^\top v$ gives the state after every letter. A letter takes as
many factors as $n$ less its number of cycles, and no fewer are enough. The same $n$ numbers hold the whole product of
the letters: the word problem of $S_5$, 120 states, runs on five numbers and four factors.
Why: a cycle of $m$ points is a product of $m - 1$ swaps, and a swap is the reflection at $v = e_p - e_q$; each factor
changes the rank of $A - I$ by 1 at most, and the rank of a permutation less the identity is $n$ less its cycles. A row
of $n$ different numbers shows how it was permuted.
Checked: all words to length 8 and every prefix of 1,000 random words of length 120; the factors in use by letter, from
the arrays, against the cycles; the rank of the transition less the identity, multiplied out from the arrays.
Source: products of Householder factors in linear recurrences: Grazzi et al. 2024, arXiv 2411.12537 [A], Siems et al.
2025, arXiv 2502.10297 [A]; that $S_5$ takes four [S]; the weights here are our own derivation.
Saboteur: the last factor is missing, as in a net with one factor less.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.recurrent_automaton import householder, whole_permutation
from vitrify.net.explain_cells import transition
from vitrify.spec.automata import alternating_group, cyclic, divisibility, permutation_group, symmetric_group
from vitrify.spec.groups import cycles

LENGTH, WORDS = 120, 1_000
WORK = 1e9  # multiplications for what is not asked for explicitly


def subjects() -> Iterator[Subject]:
    """Groups on points, S3 on itself, the word problems of S5 and A5."""
    points = {
        "S5 on 5 points": symmetric_group(5),
        "A5 on 5 points": alternating_group(5),
        "cycles of 2, 3 and 4 points": permutation_group([[1, 0, 3, 4, 2, 6, 7, 8, 5], [1, 2, 3, 4, 5, 6, 7, 8, 0]]),
        "S3 on itself": symmetric_group(3, regular=True),
        "parity": cyclic(2),
        "divisibility by 7 in binary": divisibility(7),
    }
    for name, machine in points.items():
        yield Subject(name, machine, householder(machine, max_length=LENGTH), {"points": machine})
    for name in ("S5 on 5 points", "A5 on 5 points"):
        group, weights = whole_permutation(points[name], max_length=LENGTH)
        yield Subject(f"word problem of {name[:2]}", group, weights, {"points": points[name]})


def check(subject: Subject) -> Evidence:
    """State sequences, factors by letter, ranks."""
    weights, points = subject.weights, subject.data["points"]
    net, w_a = weights.architecture, weights.arrays["blocks.0.rec.W_A"]
    needed = [len(points.states) - len(cycles(action)) for action in points.maps().values()]
    rows = weights.arrays["embed.W_E"][1:]
    turns = [transition(net.cell, w_a, row) - np.eye(net.cell.state) for row in rows]
    declared = {
        "numbers in the state": len(points.states),
        "factors": max(needed),
        "factors in use, by letter": needed,
        "rank of A − I, by letter": needed,
    }
    measured = {
        "numbers in the state": net.cell.state,
        "factors": net.cell.factors,
        "factors in use, by letter": [int((row @ w_a).any(axis=-1).sum()) for row in rows],
        "rank of A − I, by letter": [int(np.linalg.matrix_rank(turn)) for turn in turns],
    }
    examination = WordExamination(net, subject.spec, max_length=8, samples=WORDS, work=WORK)
    return with_sizes(examination.run(weights), declared, measured)


def sabotage(subject: Subject) -> Subject:
    """The last factor is the identity for all letters."""
    return zeroed(subject, "blocks.0.rec.W_A", -1)


CLAIM = Claim(row="R24", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
