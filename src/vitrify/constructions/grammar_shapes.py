r"""A bounded-depth grammar becomes a deep transformer that gives the exact set of next words, one state per shape.

In the spirit of Nandakumar et al. (2026, arXiv 2606.17522): two passes over a levelled grammar of depth $d$, bottom-up
and top-down, with states that all sentences share.

- *Complete*: $Q_{h,k}[A] = 1$ at $t$ iff $A$, of level $h$, derives the last words up to $w_t$ in shape $k$. A shape
  has a fixed width, so its children end at fixed distances before $t$: one head per shape and distance.
- *Open*: $O_{h,k,p}[A] = 1$ at $t$ iff the node of level $h$ that holds word $t+1$ may be an $A$ of shape $k$ of which
  $p$ words have been read. At the top, $p$ is the position. Going down, the child that holds the next word follows
  from $(k, p)$; its elder siblings must be complete. At level 0 this is the answer.

Each pass costs one conjunction per rule, shape (and dot), two units where its noise is cut. Where several rules can
say the same, a second MLP turns their count into a bit, two units per symbol. What says the same in other words, and
what no sentence can ask for, is left out (`_programs.py` says how), so `sizes` counts what is left.

| | formula |
| --- | --- |
| layers | at most $4d - 3$, $d$ the depth with the end of the sentence |
| conjunctions | at most $\sum U'_{hk}$ over shapes with a younger sibling and their parts, $+ \sum w_{hk} U_{hk}$ |

$U_{hk}$ is the number of rules that can stand at a node of shape $k$ ($U'$: leaving out those that end the sentence),
and $w_{hk}$ the number of words that it spans.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.constructions import grammar_spans
from vitrify.constructions._parses import (
    ANSWERS,
    SHAPES,
    Dotted,
    Parses,
    answer,
    next_words_net,
    recognised,
    where,
)
from vitrify.constructions._programs import Bit, Group, Literal, Program
from vitrify.constructions.catalogue import Construction, Settings
from vitrify.errors import BuildRefused
from vitrify.kit.network import Network
from vitrify.net.transformer import AttentionKind
from vitrify.spec.grammar import END, Grammar
from vitrify.spec.grammar_levels import LevelRule
from vitrify.spec.grammar_shapes import Shapes


def grammar_shapes(
    grammar: Grammar,
    *,
    attention: AttentionKind = "softmax",
    max_length: int | None = None,
    limit: int = SHAPES,
) -> Network:
    """A transformer whose output after every beginning of a sentence is the set of words that may come next."""
    parses = Parses.of(grammar, limit)
    return next_words_net(grammar, parses, _program(parses), "grammar", "over shapes", attention, max_length)


def sizes(grammar: Grammar, limit: int = SHAPES) -> dict[str, int]:
    """Layers, heads, conjunctions and units of the net, and the most layers that the formula allows."""
    parses = Parses.of(grammar, limit)
    return _program(parses).sizes(ANSWERS) | {"most_layers": 4 * parses.depth - 3}


def most_conjunctions(shapes: Shapes) -> tuple[int, int]:
    r"""The most that can be needed: $\sum U'_{hk}$ over shapes to be recognised, $\sum w_{hk} U_{hk}$ over all."""
    ends = last_symbols(shapes)
    up = sum(rule.lhs not in ends[h] for h, k in complete(shapes) if h for rule in _usable(shapes, h, k))
    down = sum(
        shapes.widths[h][k] * len(list(_usable(shapes, h, k)))
        for h in range(1, len(shapes.trees))
        for k in range(len(shapes.trees[h]))
    )
    return up, down


def _program(parses: Parses) -> Program:
    """Both passes: from the start symbol down to the words, elder siblings being recognised on demand."""
    program = Program(parses.longest)
    opened = {(dot, 0): where(dot.read) for dot in parses.roots()}
    for _ in range(parses.depth):
        below: dict[tuple[Dotted, int], Literal] = {}
        for (dot, symbol), reached in opened.items():
            for step in parses.steps(dot, symbol):
                target = _open(parses, step.child, step.symbol)
                below[step.child, step.symbol] = target, 0
                program.put(target, [reached, *(recognised(program, parses, part) for part in step.elders)], step.name)
        opened = below
    return program.smaller(ANSWERS)


def _open(parses: Parses, dot: Dotted, symbol: int) -> Bit:
    if dot.level == 0:
        return answer(parses, symbol)
    group = Group(2 * parses.depth - dot.level, f"open {dot.level}.{dot.shape}.{dot.read}")
    return Bit(group, symbol, parses.name(dot.level, symbol))


def complete(shapes: Shapes) -> list[tuple[int, int]]:
    """The shapes (level, number) that must be recognised: those with a younger sibling, and all they are made of."""
    wanted: set[tuple[int, int]] = set()
    for h in range(len(shapes.trees) - 1, 0, -1):
        for k, tree in enumerate(shapes.trees[h]):
            children = tree if (h, k) in wanted else tree[:-1]
            wanted |= {(h - 1, child) for child in children}
    return sorted(wanted)


def last_symbols(shapes: Shapes) -> list[set[int]]:
    """By level, the symbols that end with the end of the sentence: these are never complete before it."""
    found = [{word for word, name in enumerate(shapes.levels.words) if name == END}]
    for rules in shapes.levels.rules[1:]:
        found.append({rule.lhs for rule in rules if rule.rhs[-1] in found[-1]})
    return found


def _usable(shapes: Shapes, level: int, shape: int) -> Iterator[LevelRule]:
    return (rule for rule in shapes.levels.rules[level] if shapes.usable(level, rule, shape))


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Grammar)
    return grammar_shapes(spec, attention=settings.attention, max_length=settings.max_length)


def _choose(spec: object, settings: Settings) -> Network:
    """Over shapes where they can be listed, else over spans."""
    assert isinstance(spec, Grammar)
    try:
        Parses.of(spec)
    except BuildRefused:
        return grammar_spans.make(spec, settings)
    return _make(spec, settings)


CONSTRUCTIONS = (
    Construction(
        "auto",
        Grammar,
        "shapes, or spans where there are too many shapes",
        _choose,
        default=True,
        choices=("attention", "max_length", "positions"),
        certified="proved",
    ),
    Construction("shapes", Grammar, "bounded-depth grammars, one state per shape of a tree", _make, certified="proved"),
)
