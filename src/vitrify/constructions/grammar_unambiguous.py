r"""An unambiguous grammar of depth $d$ becomes a transformer of exactly $d$ blocks that counts its parses.

In the spirit of Nandakumar et al. (2026, arXiv 2606.17522). As in `grammar_one_pass.py`, block $h$ computes what is
complete at level $h$ and what could come next there; but nothing is ever turned into a bit:

- $Q_{h,k}[A] = \sum_{A \to B_1 \dots B_n} \prod_i Q_{h-1}[B_i]$ is 0 or 1, because a string has at most one parse for
  each label and shape. One unit per rule: $\mathrm{relu}(1 - 2 \sum_i (1 - Q[B_i]))$.
- $F_{h,k,p}[A, w] = \sum_{A \to B_1 \dots} \prod_{i<j} Q_{h-1}[B_i] \cdot F_{h-1}[B_j, w]$ *counts* the ways to go on
  with $w$. A gate passes the count: $\mathrm{relu}(F - 2U \sum_{i<j} (1 - Q[B_i]))$, $U$ the largest possible count.

| | formula |
| --- | --- |
| blocks | $d$, the depth with the end of the sentence |
| heads | one for each shape and distance at which it is read |
| units | at most one per rule of each complete state, one per rule, word and dot of each open one |
| softmax | an error of what is read grows by at most $2n$ in a $Q$, $r(2Un + 1)$ in an $F$, $n$ children, $r$ rows |

The inverse temperatures follow from the last line, backwards from the error that the answer may have: a quarter for
sets, and $10^{-13}/(\lvert\Sigma\rvert + 2)$ of a count for probabilities. The proved error of every state is among its
labels.

Where all derivations of a sentence's beginning use rules of the same probability at the same places (one shape, and
at each of its nodes one probability for all rules), the counts are proportional to probabilities: then
$F_d[S', w] / \sum_{w'} F_d[S', w']$ is the exact probability of the next word. The Random Hierarchy Model (Cagnetta et
al. 2024, arXiv 2307.02129) is of this kind.

The construction `plane` holds each $Q$ in two dimensions: label $A$ of $N$ is the point at the angle $2\pi A/N$, which
a line separates from all others with the margin $1 - \cos(2\pi/N)$. No two labels of a state may then derive the same
string. Its rules have two units each, a ramp between $\cos(2\pi/N)$ and 1, which removes noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as OneOf
from typing import cast

import numpy as np

from vitrify.constructions._parses import ANSWERS, MAX_SHAPES, SOURCE, Parses, one_pass_program, spread
from vitrify.constructions._programs import Bit, BitGroup, BitProgram, Wiring, inputs
from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.grammar_shapes import bounds, complete, last_symbols, most_conjunctions
from vitrify.kit.gadgets.clauses import Clause, clauses
from vitrify.kit.network import Circle, Integers, MultiHot, Network, Output, Readout, Space
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.shapes import Shapes

Code = OneOf["axes", "circle"]
TOLERANCE = 1e-13  # of a probability: rounding adds as much


def sizes(grammar: Grammar) -> DeclaredSizes:
    """Return layers and heads exactly: as many as the grammar is deep, one for each shape and distance; else bounds."""
    return _sizes(grammar, 1)


def plane_sizes(grammar: Grammar) -> DeclaredSizes:
    """Return the same for planes: two units for each rule of a complete state, two dimensions for each state."""
    return _sizes(grammar, 2)


def _sizes(grammar: Grammar, times: int) -> DeclaredSizes:
    parses = Parses.of(grammar)
    up, down = most_conjunctions(parses.shapes)
    counted = len(parses.shapes.levels.words) * down
    width = times * cast(int, bounds(parses.shapes, up + counted, 0).at_most["d_model"])
    exact = {"layers": parses.depth, "heads": len(distances(parses.shapes))}
    return DeclaredSizes(exact, at_most={"units": times * up + counted, "d_model": width})


def distances(shapes: Shapes) -> set[tuple[int, int, int]]:
    """Return the complete states (level, shape) that some state reads further back, with how far back it does."""
    fetched: set[tuple[int, int, int]] = set()
    recognized = set(complete(shapes))
    for level, trees in enumerate(shapes.trees[1:]):
        for shape, tree in enumerate(trees):
            widths = [shapes.widths[level][child] for child in tree]
            for end in range(1, len(tree) + 1):
                inside = range(widths[end]) if end < len(tree) else range((level + 1, shape) in recognized)
                fetched |= {(level, tree[i], sum(widths[i + 1 : end]) + read) for i in range(end) for read in inside}
    return {(level, shape, back) for level, shape, back in fetched if back}


@construction(
    "unambiguous", "unambiguous grammars in as many blocks as they are deep", sizes, certified=("to T", "to T")
)
def unambiguous(
    grammar: Grammar,
    code: Code = "axes",
    limit: int = MAX_SHAPES,
    *,
    attention: Attention = "softmax",
    max_length: MaxLength | None = None,
) -> Network:
    """A transformer of $d$ blocks: the set of next words, or their exact probabilities where counts give them."""
    parses = Parses.of(grammar, limit)
    program = _program(parses, code)
    name = "unambiguous grammar" if code == "axes" else "unambiguous grammar in planes"
    net = parses.builder(grammar, name, attention, max_length)
    max_counts = _max_counts(program)
    kind = (MultiHot if code == "axes" else Circle)(parses.words)
    counts = Wiring(net, program, inputs(net, kind, parses.longest), ANSWERS).run(_written(code, max_counts))
    symbols, matrix = spread(grammar, program)
    facts = {**parses.facts(grammar), "largest count": max(max_counts.values())}
    if proportional(grammar, parses):
        need = TOLERANCE / (len(symbols) + 1)  # p = F / sum(F) with sum(F) of at least 1
        readout = Readout(((counts, matrix),), np.zeros(len(symbols)), {counts: need})
        output = Output("lm", symbols, scores="linear")
    else:
        readout = Readout(((counts, matrix),), np.full(len(symbols), -0.5), {counts: 0.25})
        output = Output("next", symbols)
    return net.network(output, readout, name, facts, source=SOURCE, reuse=False)


def proportional(grammar: Grammar, parses: Parses) -> bool:
    """Return whether counts are proportional to probabilities: one shape, equally probable rules at each node."""
    if not grammar.probabilistic or len(parses.shapes) > 1:
        return False
    ends = last_symbols(parses.shapes)
    for level in range(1, parses.depth):
        names = parses.shapes.levels.symbols[level]
        symbols = [symbol for symbol in range(len(names)) if symbol not in ends[level]]
        for shape in range(len(parses.shapes.trees[level])):
            if len({rule.probability for symbol in symbols for rule in parses.usable(level, shape, symbol)}) > 1:
                return False
    return True


def _program(parses: Parses, code: Code) -> BitProgram:
    """Return the rows of the one-pass program, unsimplified; refuse ambiguous grammars, whose counts would be wrong."""
    twice = parses.shapes.ambiguous()
    if twice:
        raise BuildRefused(
            f"no symbol may derive the same words in two ways in one shape of tree, but {twice.symbol} derives "
            f"{' '.join(twice.words)!r} so: use --construction one-pass or shapes"
        )
    program = one_pass_program(parses)
    program.rows = {bit: program.rows[bit] for bit in sorted(program.rows)}
    if code == "circle":
        for group, bits in program.groups.items():
            if not group.sums:
                _refuse_shared(parses, bits)
    return program


def _refuse_shared(parses: Parses, bits: list[Bit]) -> None:
    """Refuse a state two of whose labels may hold at once: a point of a circle is one label."""
    level, shape = (int(part) for part in bits[0].group.name.split()[1].split("."))
    for index, bit in enumerate(bits):
        for other in bits[:index]:
            words = parses.shapes.common[level][shape].get((bit.number, other.number))
            if words is not None:
                raise BuildRefused(
                    f"a state in a plane has one label at a time, but {other.name} and {bit.name} both derive "
                    f"{' '.join(words)!r} in one shape of tree: use --construction unambiguous"
                )


def _max_counts(program: BitProgram) -> dict[Bit, int]:
    """Return an upper bound of each count, over all words."""
    max_counts: dict[Bit, int] = {}
    for bit, rows in program.rows.items():
        if bit.group.sums:
            ways = ((row, program.weights[bit, row]) for row in rows)
            max_counts[bit] = sum(
                weight * max((max_counts.get(part, 1) for part, _ in row), default=1) for row, weight in ways
            )
    return max_counts


def _written(code: Code, max_counts: dict[Bit, int]) -> Callable[[Wiring, BitGroup], Space]:
    """Return the function that writes a group: complete states as sets or points of a circle, next words as counts."""

    def write(wiring: Wiring, group: BitGroup) -> Space:
        bits = wiring.program.groups[group]
        names = tuple(bit.name for bit in bits)
        rows = []
        for index, bit in enumerate(bits):
            for row, name in wiring.program.rows[bit].items():
                passed = [literal for literal in row if literal[0].group.sums]
                conditions = wiring.values(literal for literal in row if not literal[0].group.sums)
                value = wiring.value(passed[0]) if passed else None
                rows.append(Clause(conditions, index, value, float(wiring.program.weights[bit, row]), name))
        if group.sums:
            kind: Integers | MultiHot | Circle = Integers(names, 0.0, float(max(max_counts[bit] for bit in bits)))
        else:
            kind = MultiHot(names) if code == "axes" else Circle(names)
        snap = code == "circle" and not group.sums
        return clauses(wiring.net, rows, Space(group.name, kind), snap=snap, name=f"and: {group.name}")

    return write


@construction("plane", "the same, each grammatical state in two dimensions", plane_sizes, certified=("to T", "to T"))
def plane(grammar: Grammar, *, attention: Attention = "softmax", max_length: MaxLength | None = None) -> Network:
    """Return the network of an unambiguous grammar whose grammatical states are points of circles."""
    return unambiguous(grammar, code="circle", attention=attention, max_length=max_length)
