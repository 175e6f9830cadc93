r"""An unambiguous grammar of depth $d$ becomes a transformer of exactly $d$ blocks that counts its parses.

In the spirit of Nandakumar et al. (2026, arXiv 2606.17522). As in `grammar_one_pass.py`, block $h$ computes what is
complete at level $h$ and what could come next there; but nothing is ever turned into a bit:

- $Q_{h,k}[A] = \sum_{A \to B_1 \dots B_n} \prod_i Q_{h-1}[B_i]$ is 0 or 1, because a string has at most one parse for
  each label and shape. One unit per rule: $\mathrm{relu}(1 - 2 \sum_i (1 - Q[B_i]))$.
- $F_{h,k,p}[A, w] = \sum_{A \to B_1 \dots} \prod_{i<j} Q_{h-1}[B_i] \cdot F_{h-1}[B_j, w]$ *counts* the ways to go on
  with $w$. A gate passes the count: $\mathrm{relu}(F - 2U \sum_{i<j} (1 - Q[B_i]))$, $U$ the largest possible one.

| | formula |
| --- | --- |
| blocks | $d$, the depth with the end of the sentence |
| heads | one for each shape and distance at which it is read |
| units | one per rule of each complete state, one per rule, word and dot of each open one; equal ones merged |
| softmax | an error of what is read grows by at most $2n$ in a $Q$, $r(2Un + 1)$ in an $F$, $n$ children, $r$ rows |

The temperatures follow from the last line, backwards from the error that the answer may have: a quarter for sets, and
$10^{-13}/(\lvert\Sigma\rvert + 2)$ of a count for probabilities. The proved error of every state is among its labels.

Where all derivations of a sentence's beginning use rules of the same probability at the same places (one shape, and
at each of its nodes one probability for all rules), the counts are proportional to probabilities: then
$F_d[S', w] / \sum_{w'} F_d[S', w']$ is the exact probability of the next word. The Random Hierarchy Model (Cagnetta et
al. 2024, arXiv 2307.02129) is of this kind.

The shape `plane` holds each $Q$ in two dimensions: label $A$ of $N$ is the point at the angle $2\pi A/N$, which a line
separates from all others with the margin $1 - \cos(2\pi/N)$. No two labels of a state may then derive the same string.
Its rules have two units each, a ramp between $\cos(2\pi/N)$ and 1, which removes noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as OneOf

import numpy as np

from vitrify.constructions._parses import ANSWERS, SHAPES, Parses, one_pass_program, spread
from vitrify.constructions._programs import Bit, Group, Program, Wiring, inputs
from vitrify.constructions.catalogue import Construction, Settings
from vitrify.constructions.grammar_shapes import last_symbols
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets import Clause, clauses
from vitrify.kit.network import Network, Readout, Space
from vitrify.net.architecture import Output
from vitrify.net.spaces import Circle, Integers, MultiHot
from vitrify.net.transformer import AttentionKind
from vitrify.spec.grammar import Grammar

Code = OneOf["axes", "circle"]
TOLERANCE = 1e-13  # of a probability: rounding adds as much


def unambiguous(
    grammar: Grammar,
    *,
    code: Code = "axes",
    attention: AttentionKind = "softmax",
    max_length: int | None = None,
    limit: int = SHAPES,
) -> Network:
    """A transformer of $d$ blocks: the set of next words, or their exact probabilities where counts give them."""
    parses = Parses.of(grammar, limit)
    program = _program(parses, code)
    name = "unambiguous grammar" if code == "axes" else "unambiguous grammar in planes"
    net = parses.builder(grammar, name, attention, max_length)
    most = _most(program)
    kind = (MultiHot if code == "axes" else Circle)(parses.words)
    counts = Wiring(net, program, inputs(net, kind, parses.longest), ANSWERS).run(_written(code, most))
    symbols, matrix = spread(grammar, program)
    about = parses.about(grammar, name, attention) | {"largest count": max(most.values())}
    if proportional(grammar, parses):
        need = TOLERANCE / (len(symbols) + 1)  # p = F / sum(F) with sum(F) of at least 1
        readout = Readout(((counts, matrix),), np.zeros(len(symbols)), {counts: need})
        return net.network(Output("lm", symbols, scores="linear"), readout, about, reuse=False)
    readout = Readout(((counts, matrix),), np.full(len(symbols), -0.5), {counts: 0.25})
    return net.network(Output("next", symbols), readout, about, reuse=False)


def sizes(grammar: Grammar, code: Code = "axes", limit: int = SHAPES) -> dict[str, int]:
    """Layers, heads and units of the net."""
    parses = Parses.of(grammar, limit)
    program = _program(parses, code)
    literals = [literal for rows in program.rows.values() for row in rows for literal in row]
    twice = code == "circle"
    return {
        "layers": parses.depth,
        "heads": len({(bit.group, back) for bit, back in literals if back}),
        "units": sum(len(rows) * (2 if twice and not bit.group.sums else 1) for bit, rows in program.rows.items()),
    }


def proportional(grammar: Grammar, parses: Parses) -> bool:
    """Whether the number of ways to go on is proportional to the probability: one shape, equal rules at each node."""
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


def _program(parses: Parses, code: Code) -> Program:
    """The rows of the one pass, none left out; refused where counts would not be what they should be."""
    twice = parses.shapes.ambiguous()
    if twice:
        raise BuildRefused(
            f"the grammar must derive no words twice from one symbol in one shape of tree, but {twice.symbol} derives "
            f"{' '.join(twice.words)!r} in two ways: use --shape one-pass or shapes"
        )
    program = one_pass_program(parses)
    program.rows = {bit: program.rows[bit] for bit in sorted(program.rows)}
    if code == "circle":
        for group, bits in program.groups.items():
            if not group.sums:
                _refuse_shared(parses, bits)
    return program


def _refuse_shared(parses: Parses, bits: list[Bit]) -> None:
    """A point of a circle is one label: no two labels of a state may hold at once."""
    level, shape = (int(part) for part in bits[0].group.name.split()[1].split("."))
    for place, bit in enumerate(bits):
        for other in bits[:place]:
            words = parses.shapes.common[level][shape].get((bit.place, other.place))
            if words is not None:
                raise BuildRefused(
                    f"a state in a plane has one label at a time, but {other.name} and {bit.name} both derive "
                    f"{' '.join(words)!r} in one shape of tree: use --shape unambiguous"
                )


def _most(program: Program) -> dict[Bit, int]:
    """The largest count that each number can reach, whatever the words."""
    most: dict[Bit, int] = {}
    for bit, rows in program.rows.items():
        if bit.group.sums:
            ways = ((row, program.weights[bit, row]) for row in rows)
            most[bit] = sum(weight * max((most.get(part, 1) for part, _ in row), default=1) for row, weight in ways)
    return most


def _written(code: Code, most: dict[Bit, int]) -> Callable[[Wiring, Group], Space]:
    """How a group becomes a space: complete states as sets or points of a circle, what may come next as counts."""

    def write(wiring: Wiring, group: Group) -> Space:
        bits = wiring.program.groups[group]
        names = tuple(bit.name for bit in bits)
        rows = []
        for place, bit in enumerate(bits):
            for row, name in wiring.program.rows[bit].items():
                passed = [literal for literal in row if literal[0].group.sums]
                asked = wiring.values(literal for literal in row if not literal[0].group.sums)
                value = wiring.value(passed[0]) if passed else None
                rows.append(Clause(asked, place, value, float(wiring.program.weights[bit, row]), name))
        if group.sums:
            kind: Integers | MultiHot | Circle = Integers(names, 0.0, float(max(most[bit] for bit in bits)))
        else:
            kind = MultiHot(names) if code == "axes" else Circle(names)
        snap = code == "circle" and not group.sums
        return clauses(wiring.net, rows, Space(group.name, kind), snap=snap, name=f"and: {group.name}")

    return write


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Grammar)
    return unambiguous(spec, attention=settings.attention, max_length=settings.max_length)


def _make_plane(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Grammar)
    return unambiguous(spec, code="circle", attention=settings.attention, max_length=settings.max_length)


CONSTRUCTIONS = (
    Construction(
        "unambiguous", Grammar, "unambiguous grammars in as many blocks as they are deep", _make, certified="proved"
    ),
    Construction(
        "plane", Grammar, "the same, each grammatical state in two dimensions", _make_plane, certified="proved"
    ),
)
