r"""A permutation of $n$ points with $c$ cycles takes $n - c$ Householder factors, so $S_5$ takes four.

Statement: Let every letter of an automaton permute its $n$ states. A linear recurrence with a state of $n$ numbers
whose transitions are products of Householder factors $I - v^\top v$ ($v$ a row with $|v|^2 = 2$, or 0) gives the state
after every letter. A letter with $c$ cycles takes $n - c$ factors, and no fewer suffice. If the state begins with $n$
different numbers, their order is the product of all letters read. So the word problem of $S_5$ (which of its 120
permutations is the product?) runs on five numbers and four factors.
Why: A cycle of $m$ points is a product of $m - 1$ swaps, and a swap is the reflection at $v = e_p - e_q$. Each factor
changes the rank of $A - I$ by at most 1, and that rank is $n - c$ for a permutation.
Checked: Six groups of permutations of 2 to 9 points and the word problems of $S_5$ and $A_5$: all words to length 8 and
every prefix of 1,000 random words of length 120. Factors in use per letter are counted on the arrays, and the rank of
$A - I$ is computed from the multiplied-out transitions; both are compared with $n - c$.
Not checked: All products of fewer factors: that these cannot work is the rank argument, of which only the rank is
measured. Words longer than 120 are not run, though no size depends on the length. Training is not part of this claim.
Source: Grazzi et al. 2024, arXiv 2411.12537 [A] and Siems et al. 2025, arXiv 2502.10297 [A]: products of Householder
factors in linear recurrences; that $S_5$ takes four [S]; the weights are our own derivation.
Saboteur: The last factor is the identity, as in a net with one factor fewer.
"""

from __future__ import annotations

import numpy as np

from vitrify.claims._figures import bars, points, show
from vitrify.claims._nets import Claim, Evidence, Quantity, Subject, Subjects, check_net, zeroing
from vitrify.constructions.recurrent_automaton import count_factors, householder, tracked_permutation
from vitrify.net.explain_cells import transition
from vitrify.spec.automata.families import alternating_group, cyclic, divisibility, permutation_group, symmetric_group

LENGTH, WORDS = 120, 1_000
WORK = 1e9  # multiplications spent on words beyond those listed


def subjects() -> Subjects:
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
        group, weights = tracked_permutation(points[name], max_length=LENGTH)
        yield Subject(f"word problem of {name[:2]}", group, weights, {"points": points[name]})


def check(subject: Subject) -> Evidence:
    points, cell = subject.data["points"], subject.weights.architecture.cell
    w_a, rows = subject.weights.arrays["blocks.0.rec.W_A"], subject.weights.arrays["embed.W_E"][1:]
    needed = count_factors(points)
    turns = [transition(cell, w_a, row) - np.eye(cell.state) for row in rows]
    return check_net(subject, max_length=8, samples=WORDS, work=WORK).adding(
        Quantity("numbers in the state", cell.state, len(points.states), "="),
        Quantity("factors", cell.factors, max(needed), "="),
        Quantity("factors in use, by letter", [int((row @ w_a).any(axis=-1).sum()) for row in rows], needed, "="),
        Quantity("rank of A − I, by letter", [int(np.linalg.matrix_rank(turn)) for turn in turns], needed, "="),
    )


sabotage = zeroing("blocks.0.rec.W_A", -1)  # the last factor is the identity for all letters
FIGURE = show(
    points(
        "rank of A − I, by letter[1]",
        "factors in use, by letter[1]",
        "rank of A − I",
        "factors of the largest letter",
        laws={"one each": lambda rank: rank},
    ),
    bars({"numbers in the state": "numbers in the state", "factors": "factors"}, "count"),
)
CLAIM = Claim(subjects, check, sabotage, id="R24", standing="theorem", certified="proved", figure=FIGURE)
