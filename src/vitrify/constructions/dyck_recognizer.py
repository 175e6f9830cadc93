r"""A transformer of $D + 1$ attention layers decides whether a word of brackets is well nested and at most $D$ deep.

In the spirit of Yao et al. (2021, arXiv 2105.11115); the weights are our own derivation. In each of $D$ rounds, every
bracket that has no partner yet attends to its nearest neighbors without one: the last on its left, the first on its
right. An opening bracket and a closing one of the same kind that attend to each other are partners. A pair that holds
$r - 1$ pairs inside each other is found in round $r$, so after $D$ rounds a bracket is left over iff the word is not in
the language. The last layer tests whether there is one. The answer is the same at every position, BOS included.

What a head copies from a neighbour is the code of the bracket and one more bit, which says that it has no partner yet:
if every bracket already has a partner, the head reads one of those, and the bit shows it.

With $B = \max(2, \lceil\log_2 2k\rceil)$ bits for the $2k$ brackets:

| | formula |
| --- | --- |
| layers, heads | $D + 1$; $2D + 1$ |
| units | $D(2k + 1)$, and $(D - 1)(2B + 3) + 2$ that erase what a round has found |
| width | $3B + 4$, whatever the depth; $3B + 3$ for hard attention, which needs no positions |
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, construction
from vitrify.constructions.dyck import reading_length
from vitrify.kit.gadgets.clauses import Clause, clauses
from vitrify.kit.heads.match import last_marked
from vitrify.kit.heads.select import Test, select
from vitrify.kit.network import Affine, Bits, Builder, Flag, Network, Output, Readout, Space
from vitrify.spec.kinds import ANSWERS
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.ngrams.model import BEGIN


def sizes(language: Dyck, *, attention: str) -> DeclaredSizes:
    """Return all sizes: one layer per depth, and one more."""
    kinds, depth = len(language.brackets), language.depth
    bits = max(2, (2 * kinds - 1).bit_length())
    units = depth * (2 * kinds + 1) + (depth - 1) * (2 * bits + 3) + 2
    width = 3 * bits + 4 - (attention == "hard")
    return DeclaredSizes({"layers": depth + 1, "heads": 2 * depth + 1, "units": units, "d_model": width})


@construction(
    "dyck-recognizer",
    "whether a word of brackets is well nested, a layer per depth",
    sizes,
    certified=("to T", "sampled"),
)
def dyck_recognizer(
    language: Dyck, *, attention: Attention = "softmax", max_length: MaxLength | None = None
) -> Network:
    """Return a transformer of one layer per depth, and one more, that outputs whether a word is in the language."""
    kinds, depth = len(language.brackets), language.depth
    name = f"recognizer of brackets of {kinds} kinds to depth {depth}, {attention}"
    net = Builder(name, (BEGIN, *language.vocabulary), reading_length(language, max_length), attention)
    brackets = Bits(language.vocabulary)
    bracket = net.embed("bracket", brackets, np.vstack([brackets.codes[:1], brackets.codes]))  # BOS has any code
    alone = net.embed("alone", Flag(), np.array([[0.0], *[[1.0]] * (2 * kinds)]))
    spare = 2**brackets.size  # codes of brackets that have a partner come first
    seen = Bits((*(f"paired {n}" for n in range(spare)), *language.vocabulary), void=True)
    marked = Affine.constant(0.0)  # in round 1 no bracket has a partner: the nearest are next to each other
    for number in range(1, depth + 1):
        state = Affine.of({bracket: np.eye(brackets.size, seen.size)}) + Affine.of(
            {alone: 2 * np.eye(1, seen.size, k=brackets.size)}, -np.eye(seen.size)[-1]
        )
        left = last_marked(net, marked, (state, seen), mask="strict", sink=False, name=f"left neighbor {number}")
        right = last_marked(
            net, marked, (state, seen), which="first", mask="after", sink=False, name=f"right neighbor {number}"
        )
        rows = [Clause(((alone, 0),), 0, name="alone before"), *_pairs(bracket, alone, left, right, kinds, spare)]
        alone = clauses(net, rows, Space(f"alone after round {number}", Flag()), name=f"round {number}")
        marked = Affine.copy(alone)
    one = Test(Affine.constant(1.0), marked, 1.0)
    rest = select(net, [one], marked, Space("some bracket is alone", Flag()), sink="none", mask="none", shares=False)
    readout = Readout(((rest, np.array([[1.0, 0.0]])),), np.array([0.0, 0.5]), {rest: 0.25})
    facts = {"kinds": kinds, "depth": depth}
    source = "in the spirit of Yao et al. 2021, arXiv 2105.11115"
    return net.network(Output("class", ANSWERS), readout, "brackets, one layer per depth", facts, source=source)


def _pairs(bracket: Space, alone: Space, left: Space, right: Space, kinds: int, spare: int) -> Iterator[Clause]:
    """Yield the clauses that pair a bracket: its counterpart is its nearest neighbor on the right side."""
    for kind in range(kinds):
        opening, closing = 2 * kind, 2 * kind + 1
        for own, other, side in ((opening, closing, right), (closing, opening, left)):
            yield Clause(
                ((alone, 0), (bracket, own), (side, spare + other)),
                0,
                weight=-1.0,
                name=f"{bracket.kind.values[own]} sees {bracket.kind.values[other]}",  # type: ignore[union-attr]
            )
