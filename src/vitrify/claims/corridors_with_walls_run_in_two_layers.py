r"""A corridor with walls runs on two attention layers, however many cells it has.

Statement: for every gridworld of $S$ cells (letters move one cell up or down and stop at the walls, or stay) a
transformer of two layers with $2S - 1$ heads and $4T + 2S$ units gives the cell after every letter, exactly.
Why: the cell is told by where the sum of the moves, taken as if there were no walls, has last spanned the whole
corridor; one head counts the sum, and heads of the second layer find its last times at every distance.
Checked: all words to length 8, words that repeat, alternate and wander, every prefix of random walks of length 100,
from walls and from inner cells; layers, heads and units against the formulas.
Source: Liu et al. 2023, arXiv 2210.10749, theorem 3 [S]; the rule and the weights here are our own derivation.
Saboteur: one head of the second layer reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import ATTENTIONS, examined, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.gridworld import gridworld, sizes
from vitrify.kit import assemble
from vitrify.net.weights import Ledger
from vitrify.spec.automata import gridworld as corridor

LENGTH = 100


def subjects() -> Iterator[Subject]:
    """Corridors of 2 to 7 cells, from different cells; the kinds of attention take turns."""
    for place, (cells, start) in enumerate(((2, 1), (5, 4), (3, 0), (7, 3))):
        machine = replace(corridor(cells), initial=start)
        attention = ATTENTIONS[place % 3]
        weights = assemble(gridworld(machine, attention=attention, max_length=LENGTH))
        yield Subject(f"{cells} cells from cell {start}, {attention}", machine, weights)


def check(subject: Subject) -> Evidence:
    """Cells and sizes."""
    size, promised = Ledger.of(subject.weights), sizes(len(subject.spec.states), LENGTH)
    return examined(subject, 8, promised, {name: getattr(size, name) for name in promised})


def sabotage(subject: Subject) -> Subject:
    """One head of the second layer reads nothing."""
    return zeroed(subject, "blocks.1.attn.W_V", 0)


CLAIM = Claim(row="R16", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
