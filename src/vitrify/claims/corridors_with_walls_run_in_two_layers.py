r"""A corridor with walls runs on two attention layers, however many cells it has.

Statement: For every gridworld of $S$ cells in a line (each letter moves one cell up or down and stops at the walls, or
stays) and every length $T$ there is a transformer with two layers, $2S - 1$ heads and $4T + 2S$ units that gives the
cell after every letter, exactly.
Why: Going back from now, the running sums of moves (walls ignored) fill a growing interval. When it has $S$ values,
these are the $S$ cells, and so the present sum gives the cell. One head computes the sum; heads of the second layer
find when it last had each other value at most $S - 1$ away.
Checked: Corridors of 2, 3, 5 and 7 cells at $T = 100$, each with one of softmax, sparsemax and hard attention: all
words to length 8, words that repeat, alternate and wander, and every prefix of random walks of length 100. Layers,
heads and units are compared with the formulas.
Not checked: Words longer than 100, more than 7 cells, and gridworlds of more than one dimension. The paper's network
and its width bound were not read in the original; the rule used here is ours, and units grow with $T$.
Source: Liu et al. 2023, arXiv 2210.10749, theorem 3 [S]; the rule and the weights are our own derivation.
Saboteur: One head of the second layer reads nothing.
"""

from __future__ import annotations

from dataclasses import replace

from vitrify.claims._figures import layers_of_automata, points, show
from vitrify.claims._nets import Claim, Subjects, checking, in_turn, zeroing
from vitrify.spec.automata.families import gridworld as corridor

LENGTH = 100
CORRIDORS = ((2, 1), (5, 4), (3, 0), (7, 3))  # cells, and the one to start from


def subjects() -> Subjects:
    machines = {f"{cells} cells from cell {at}": replace(corridor(cells), initial=at) for cells, at in CORRIDORS}
    return in_turn(machines, "gridworld", max_length=LENGTH)


sabotage = zeroing("blocks.1.attn.W_V", 0)  # one head of the second layer reads nothing
FIGURE = show(
    layers_of_automata,
    points(
        "{} cells",
        {"heads of the second layer": "heads_per_layer[1]", "layers": "layers"},
        "cells",
        "count",
        joined=True,
        laws={"2(n − 1)": lambda n: 2 * (n - 1)},
    ),
)
CLAIM = Claim(
    subjects,
    checking(max_length=8),
    sabotage,
    id="R16",
    standing="theorem",
    certified="sampled",
    budget_seconds=20,
    figure=FIGURE,
)
