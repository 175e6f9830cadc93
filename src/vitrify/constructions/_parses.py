"""What a parse over shapes asks of the words read so far: complete children so far back, and the child that is open.

A shape has a fixed width, so its children end at fixed distances before its own end; and once so many of its words
have been read, the child that holds the next word, and how many of its words have been read, are fixed too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vitrify.constructions._programs import PLACES, WORDS, Bit, Group, Literal, Program, build, inputs
from vitrify.errors import BuildRefused
from vitrify.kit.network import Builder, Network, Readout
from vitrify.net.architecture import Output
from vitrify.net.spaces import MultiHot
from vitrify.net.transformer import AttentionKind
from vitrify.spec.grammar import BEGIN, END, Grammar
from vitrify.spec.grammar_levels import LevelRule
from vitrify.spec.grammar_shapes import Shapes

SHAPES = 2_000  # more shapes in a level than this make nets that are too wide to be read
ANSWERS = Group(1 << 30, "next words", sums=True)  # computed last


class Dotted(NamedTuple):
    """A node of a level and a shape of which so many words have been read."""

    level: int
    shape: int
    read: int


class Part(NamedTuple):
    """A symbol of a level that is complete in a shape, so many places back."""

    level: int
    shape: int
    symbol: int
    back: int


class Step(NamedTuple):
    """A rule at an open node: what it demands of elder children, and the child that holds the next word."""

    elders: tuple[Part, ...]
    child: Dotted
    symbol: int
    name: str


@dataclass(frozen=True, eq=False)
class Parses:
    """The parses of a levelled grammar with the end of the sentence, by shape."""

    shapes: Shapes

    @classmethod
    def of(cls, grammar: Grammar, limit: int = SHAPES) -> Parses:
        return cls(grammar.levelled().with_end().shapes(limit))

    @property
    def depth(self) -> int:
        return self.shapes.levels.depth

    @property
    def longest(self) -> int:
        """The words of the longest sentence."""
        return max(self.shapes.widths[-1]) - 1

    @property
    def words(self) -> tuple[str, ...]:
        """The words, without the end of the sentence."""
        return self.shapes.levels.words[:-1]

    def name(self, level: int, symbol: int) -> str:
        return self.shapes.levels.symbols[level][symbol]

    def roots(self) -> Iterator[Dotted]:
        """Whole sentences, with every number of words read: the start symbol has number 0."""
        top = self.depth
        return (Dotted(top, k, p) for k in self.shapes.whole for p in range(self.shapes.widths[top][k]))

    def usable(self, level: int, shape: int, symbol: int) -> Iterator[LevelRule]:
        """The rules of a symbol that can stand at a node of a shape."""
        rules = self.shapes.levels.rules_of[level][symbol]
        return (rule for rule in rules if self.shapes.usable(level, rule, shape))

    def whole(self, level: int, shape: int, symbol: int) -> Iterator[tuple[tuple[Part, ...], str]]:
        """For each rule of a symbol at a node that ends here: the children that must be complete, and its name."""
        tree, widths = self.shapes.trees[level][shape], self.shapes.widths[level - 1]
        for rule in self.usable(level, shape, symbol):
            back, found = 0, list[Part]()
            for child, part in zip(reversed(tree), reversed(rule.rhs), strict=True):
                found.append(Part(level - 1, child, part, back))
                back += widths[child]
            yield tuple(found), self._text(level, rule)

    def steps(self, dot: Dotted, symbol: int) -> Iterator[Step]:
        """For each rule of a symbol at an open node: what it demands, and the child that holds the next word."""
        level, shape, inside = dot
        tree, widths = self.shapes.trees[level][shape], self.shapes.widths[level - 1]
        place = 0
        while inside >= widths[tree[place]]:
            inside -= widths[tree[place]]
            place += 1
        for rule in self.usable(level, shape, symbol):
            back, found = inside, list[Part]()
            for i in reversed(range(place)):
                found.append(Part(level - 1, tree[i], rule.rhs[i], back))
                back += widths[tree[i]]
            child = Dotted(level - 1, tree[place], inside)
            yield Step(tuple(found), child, rule.rhs[place], self._text(level, rule))

    def _text(self, level: int, rule: LevelRule) -> str:
        return f"{self.name(level, rule.lhs)} → {' '.join(self.name(level - 1, child) for child in rule.rhs)}"

    def builder(self, grammar: Grammar, name: str, attention: AttentionKind, max_length: int | None) -> Builder:
        """An empty net that reads the words of the grammar."""
        if max_length is not None and max_length < self.longest:
            raise BuildRefused(
                f"sentences have up to {self.longest} words: --max-length must be at least that, or left out"
            )
        return Builder(
            name=f"{name} of depth {self.depth}, {len(self.shapes)} shapes, {attention}",
            inputs=(BEGIN, *grammar.vocabulary),
            max_length=max_length or self.longest,
            attention=attention,
        )

    def about(self, grammar: Grammar, construction: str, attention: AttentionKind) -> dict[str, object]:
        """What a net built over shapes says of itself."""
        return {
            "construction": construction,
            "attention": attention,
            "rules": len(grammar.rules),
            "depth": self.depth,
            "shapes": len(self.shapes),
            "longest sentence": self.longest,
            "source": "in the spirit of Nandakumar et al. 2026, arXiv 2606.17522",
        }


# Bits over parses


def where(read: int) -> Literal:
    """So many words have been read."""
    return Bit(PLACES, read, str(read)), 0


def answer(parses: Parses, word: int) -> Bit:
    """A word may come next."""
    return Bit(ANSWERS, word, parses.name(0, word))


def recognised(program: Program, parses: Parses, part: Part) -> Literal:
    """A part is complete; its rows, and those of what it is made of, are added to the program when they are new."""
    level, shape, symbol, back = part
    if level == 0:
        return Bit(WORDS, symbol, parses.name(0, symbol)), back
    bit = Bit(Group(level, f"complete {level}.{shape}"), symbol, parses.name(level, symbol))
    if bit not in program.rows:
        for children, name in parses.whole(level, shape, symbol):
            program.put(bit, [recognised(program, parses, child) for child in children], name)
    return bit, back


Found = dict[
    int, Literal | int
]  # by word: the bit that says whether it can come next, or in how many ways it always can


def one_pass_program(parses: Parses) -> Program:
    r"""Bottom-up, with every word: $F_{h,k,p}[A, w]$ of the child that is open, where the children before are complete.

    Taken as sets, the rows say what can come next; taken as sums of products, in how many ways. $F$ of a node of which
    nothing has been read is a constant.
    """
    program = Program(parses.longest)
    known: dict[tuple[Dotted, int], Found] = {}
    for dot in parses.roots():
        for step in parses.steps(dot, 0):
            elders = [recognised(program, parses, part) for part in step.elders]
            for word, literal in _next(program, parses, known, step.child, step.symbol).items():
                given, ways = ([], literal) if isinstance(literal, int) else ([literal], 1)
                program.put(answer(parses, word), [where(dot.read), *elders, *given], step.name, ways)
    return program


def _next(program: Program, parses: Parses, known: dict[tuple[Dotted, int], Found], dot: Dotted, symbol: int) -> Found:
    """What can come next in a node of which so many words have been read; rows are added when they are new."""
    if dot.level == 0:
        return {symbol: 1}
    if (dot, symbol) in known:
        return known[dot, symbol]
    found: Found = {}
    constant: Counter[int] = Counter()
    group = Group(dot.level, f"next {dot.level}.{dot.shape}.{dot.read}", sums=True)
    for step in parses.steps(dot, symbol):
        elders = [recognised(program, parses, part) for part in step.elders]
        for word, literal in _next(program, parses, known, step.child, step.symbol).items():
            given, ways = ([], literal) if isinstance(literal, int) else ([literal], 1)
            if dot.read == 0:
                constant[word] += ways
                continue
            name = f"{parses.name(dot.level, symbol)} … {parses.name(0, word)}"
            bit = Bit(group, symbol * len(parses.shapes.levels.words) + word, name)
            program.put(bit, [*elders, *given], step.name, ways)
            found[word] = bit, 0
    known[dot, symbol] = found or dict(constant)
    return known[dot, symbol]


def next_words_net(
    grammar: Grammar,
    parses: Parses,
    program: Program,
    name: str,
    way: str,
    attention: AttentionKind,
    max_length: int | None,
) -> Network:
    """The net of a program whose answers are the words that may come next."""
    net = parses.builder(grammar, name, attention, max_length)
    counts = build(net, program, inputs(net, MultiHot(parses.words), parses.longest), ANSWERS)
    symbols, matrix = spread(grammar, program)
    readout = Readout(((counts, matrix),), np.full(len(symbols), -0.5), {counts: 0.25})
    return net.network(
        Output("next", symbols), readout, parses.about(grammar, f"bounded-depth grammar {way}", attention), reuse=False
    )


def spread(grammar: Grammar, program: Program) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """What a net may answer, and which of its answers each count is for [count, symbol]."""
    symbols = (*grammar.vocabulary, END)
    matrix = np.zeros((len(program.groups[ANSWERS]), len(symbols)))
    for place, bit in enumerate(program.groups[ANSWERS]):
        matrix[place, symbols.index(bit.name)] = 1.0
    return symbols, matrix
