r"""A bounded-depth grammar becomes a deep transformer that gives the exact set of next words, one state per shape.

In the spirit of Nandakumar et al. (2026, arXiv 2606.17522): two passes over a leveled grammar of depth $d$, bottom-up
and top-down, with states that all sentences share.

- *Complete*: $Q_{h,k}[A] = 1$ at $t$ iff $A$, of level $h$, derives the last words up to $w_t$ in shape $k$. A shape
  has a fixed width, so its children end at fixed distances before $t$: one head per shape and distance.
- *Open*: $O_{h,k,p}[A] = 1$ at $t$ iff the node of level $h$ that holds word $t+1$ may be an $A$ of shape $k$ of which
  $p$ words have been read. At the top, $p$ is the position. Going down, the child that holds the next word follows
  from $(k, p)$; its elder siblings must be complete. At level 0 this is the answer.

Each pass costs one conjunction per rule, shape (and dot), two units where noise is removed. Where several rules can
make a bit 1, a second MLP turns their count into the bit, two units per symbol. Redundant and unused rows are left out
(see `_programs.py`): all sizes are bounds.

| | formula |
| --- | --- |
| layers | at most $4d - 3$, $d$ the depth with the end of the sentence |
| conjunctions | at most $\sum U'_{hk}$ over shapes with a younger sibling and their parts, $+ \sum w_{hk} U_{hk}$ |

$U_{hk}$ is the number of rules that can stand at a node of shape $k$ ($U'$: leaving out those that end the sentence),
and $w_{hk}$ the number of words that it spans.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.constructions import _parses
from vitrify.constructions._parses import ANSWERS, Dotted, Parses, answer, next_words_net, recognized, words_read
from vitrify.constructions._programs import Bit, BitGroup, BitProgram, Literal
from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, construction
from vitrify.kit.network import Network
from vitrify.spec.grammars.grammar import END, Grammar
from vitrify.spec.grammars.levels import LevelRule
from vitrify.spec.grammars.shapes import Shapes


def sizes(grammar: Grammar) -> DeclaredSizes:
    """Return bounds: both passes."""
    parses = Parses.of(grammar)
    return bounds(parses.shapes, sum(most_conjunctions(parses.shapes)), 4 * parses.depth - 3)


def bounds(shapes: Shapes, conjunctions: int, layers: int) -> DeclaredSizes:
    r"""Return bounds from those of the conjunctions, $C$, and of the layers.

    With sentences of up to $T$ words, $S$ states that must be complete and right sides of up to $K$ symbols: $S(T - 1)$
    heads, $3C$ units, and $\lvert\Sigma\rvert + T + 2 + (K + 2)C$ dimensions. A conjunction has at most one bit and one
    count of its own, and reads $K$ bits.
    """
    longest, arity = max(shapes.widths[-1]) - 1, max(len(tree) for level in shapes.trees[1:] for tree in level)
    return DeclaredSizes(
        at_most={
            "layers": layers,
            "heads": max(1, len(complete(shapes))) * (longest - 1),
            "units": 3 * conjunctions,
            "d_model": len(shapes.levels.words) + longest + 2 + (arity + 2) * conjunctions,
        }
    )


@construction("shapes", "bounded-depth grammars, one state per shape of a tree", sizes, certified=("to T", "to T"))
def grammar_shapes(
    grammar: Grammar,
    limit: int = _parses.MAX_SHAPES,
    *,
    attention: Attention = "softmax",
    max_length: MaxLength | None = None,
) -> Network:
    """A transformer whose output after every beginning of a sentence is the set of words that may come next."""
    parses = Parses.of(grammar, limit)
    return next_words_net(grammar, parses, _program(parses), "grammar", "over shapes", attention, max_length)


def most_conjunctions(shapes: Shapes) -> tuple[int, int]:
    r"""Return bounds: $\sum U'_{hk}$ over the shapes to be recognized, $\sum w_{hk} U_{hk}$ over all shapes."""
    ends = last_symbols(shapes)
    up = sum(rule.lhs not in ends[h] for h, k in complete(shapes) if h for rule in _usable(shapes, h, k))
    down = sum(
        shapes.widths[h][k] * len(list(_usable(shapes, h, k)))
        for h in range(1, len(shapes.trees))
        for k in range(len(shapes.trees[h]))
    )
    return up, down


def _program(parses: Parses) -> BitProgram:
    """Return the program of both passes: from the start symbol down, recognizing elder siblings on demand."""
    program = BitProgram(parses.longest)
    opened = {(dot, 0): words_read(dot.read) for dot in parses.roots()}
    for _ in range(parses.depth):
        below: dict[tuple[Dotted, int], Literal] = {}
        for (dot, symbol), reached in opened.items():
            for step in parses.steps(dot, symbol):
                target = _open(parses, step.child, step.symbol)
                below[step.child, step.symbol] = target, 0
                program.put(target, [reached, *(recognized(program, parses, part) for part in step.elders)], step.name)
        opened = below
    return program.smaller(ANSWERS)


def _open(parses: Parses, dot: Dotted, symbol: int) -> Bit:
    if dot.level == 0:
        return answer(parses, symbol)
    group = BitGroup(2 * parses.depth - dot.level, f"open {dot.level}.{dot.shape}.{dot.read}")
    return Bit(group, symbol, parses.name(dot.level, symbol))


def complete(shapes: Shapes) -> list[tuple[int, int]]:
    """Return the shapes (level, index) that must be recognized: those with a younger sibling, and their parts."""
    wanted: set[tuple[int, int]] = set()
    for h in range(len(shapes.trees) - 1, 0, -1):
        for k, tree in enumerate(shapes.trees[h]):
            children = tree if (h, k) in wanted else tree[:-1]
            wanted |= {(h - 1, child) for child in children}
    return sorted(wanted)


def last_symbols(shapes: Shapes) -> list[set[int]]:
    """Return, by level, the symbols whose last word is the end of the sentence: they are never complete before it."""
    ends = [{word for word, name in enumerate(shapes.levels.words) if name == END}]
    for rules in shapes.levels.rules[1:]:
        ends.append({rule.lhs for rule in rules if rule.rhs[-1] in ends[-1]})
    return ends


def _usable(shapes: Shapes, level: int, shape: int) -> Iterator[LevelRule]:
    return (rule for rule in shapes.levels.rules[level] if shapes.usable(level, rule, shape))
