"""Parses of a grammar, grouped by tree shape, as bit programs: conditions on bits at earlier positions.

A tree shape has a fixed width in words, so its children end at fixed distances before its own end. Once the number of
its words that have been read is known, so are the child that holds the next word and how much of that child was read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions import _programs
from vitrify.constructions._programs import POSITIONS, WORDS, Bit, BitGroup, BitProgram, Literal
from vitrify.errors import BuildRefused
from vitrify.kit.network import AttentionKind, Builder, MultiHot, Network, Output, Readout
from vitrify.spec.grammars.grammar import BEGIN, END, Grammar
from vitrify.spec.grammars.levels import LevelRule
from vitrify.spec.grammars.shapes import Shapes

MAX_SHAPES = 2_000  # per level; more make nets too wide to be inspected
ANSWERS = BitGroup(1 << 30, "next words", sums=True)  # computed last
SOURCE = "in the spirit of Nandakumar et al. 2026, arXiv 2606.17522"


class Dotted(NamedTuple):
    """A partly read node: its level (words are level 0), its shape, and the number of its words that have been read."""

    level: int
    shape: int
    read: int


class ParsePart(NamedTuple):
    """A complete phrase: its level, shape and symbol; its last word is `back` positions back."""

    level: int
    shape: int
    symbol: int
    back: int


class ParseStep(NamedTuple):
    """A rule at an open node: the elder children it requires to be complete, and the child with the next word."""

    elders: tuple[ParsePart, ...]
    child: Dotted
    symbol: int
    name: str


@dataclass(frozen=True, eq=False)
class Parses:
    """The parses of a leveled grammar with the end of the sentence, by shape."""

    shapes: Shapes

    @classmethod
    def of(cls, grammar: Grammar, limit: int = MAX_SHAPES) -> Parses:
        return cls(grammar.leveled().with_end().shapes(limit))

    @property
    def depth(self) -> int:
        return self.shapes.levels.depth

    @property
    def longest(self) -> int:
        """The length of the longest sentence, in words."""
        return max(self.shapes.widths[-1]) - 1

    @property
    def words(self) -> tuple[str, ...]:
        """The words, without the end of the sentence."""
        return self.shapes.levels.words[:-1]

    def name(self, level: int, symbol: int) -> str:
        return self.shapes.levels.symbols[level][symbol]

    def roots(self) -> Iterator[Dotted]:
        """Yield the root nodes of all sentences, with every number of words read."""
        top = self.depth
        return (Dotted(top, k, p) for k in self.shapes.of_start for p in range(self.shapes.widths[top][k]))

    def usable(self, level: int, shape: int, symbol: int) -> Iterator[LevelRule]:
        """Yield the rules of a symbol that fit a node of a shape."""
        rules = self.shapes.levels.rules_of[level][symbol]
        return (rule for rule in rules if self.shapes.usable(level, rule, shape))

    def complete_rules(self, level: int, shape: int, symbol: int) -> Iterator[tuple[tuple[ParsePart, ...], str]]:
        """Yield, per rule of a symbol at a node that ends here, the children that must be complete, and its name."""
        tree, widths = self.shapes.trees[level][shape], self.shapes.widths[level - 1]
        for rule in self.usable(level, shape, symbol):
            back, parts = 0, list[ParsePart]()
            for child, part in zip(reversed(tree), reversed(rule.rhs), strict=True):
                parts.append(ParsePart(level - 1, child, part, back))
                back += widths[child]
            yield tuple(parts), self._text(level, rule)

    def steps(self, dot: Dotted, symbol: int) -> Iterator[ParseStep]:
        """Yield a step for each rule of a symbol at an open node."""
        level, shape, inside = dot
        tree, widths = self.shapes.trees[level][shape], self.shapes.widths[level - 1]
        child_index = 0
        while inside >= widths[tree[child_index]]:
            inside -= widths[tree[child_index]]
            child_index += 1
        for rule in self.usable(level, shape, symbol):
            back, elders = inside, list[ParsePart]()
            for i in reversed(range(child_index)):
                elders.append(ParsePart(level - 1, tree[i], rule.rhs[i], back))
                back += widths[tree[i]]
            child = Dotted(level - 1, tree[child_index], inside)
            yield ParseStep(tuple(elders), child, rule.rhs[child_index], self._text(level, rule))

    def _text(self, level: int, rule: LevelRule) -> str:
        return f"{self.name(level, rule.lhs)} → {' '.join(self.name(level - 1, child) for child in rule.rhs)}"

    def builder(self, grammar: Grammar, name: str, attention: AttentionKind, max_length: int | None) -> Builder:
        """Return an empty net that reads the words of the grammar."""
        if max_length is not None and max_length < self.longest:
            raise BuildRefused(
                f"sentences have up to {self.longest} words: --max-length must be at least that, or left out"
            )
        title = f"{name} of depth {self.depth}, {len(self.shapes)} shapes, {attention}"
        return Builder(title, (BEGIN, *grammar.vocabulary), max_length or self.longest, attention)

    def facts(self, grammar: Grammar) -> dict[str, object]:
        """Return the sizes of a grammar and its shapes, by name."""
        sizes = {"depth": self.depth, "shapes": len(self.shapes), "longest sentence": self.longest}
        return {"rules": len(grammar.rules), **sizes}


# Bits over parses


def words_read(read: int) -> Literal:
    """Return the literal that is 1 after `read` words."""
    return Bit(POSITIONS, read, str(read)), 0


def answer(parses: Parses, word: int) -> Bit:
    """Return the bit of a word that may come next; its value is the number of ways, 0 if it may not."""
    return Bit(ANSWERS, word, parses.name(0, word))


def recognized(program: BitProgram, parses: Parses, part: ParsePart) -> Literal:
    """Return the literal that is 1 where a part is complete; new rows for it and its parts are added to the program."""
    level, shape, symbol, back = part
    if level == 0:
        return Bit(WORDS, symbol, parses.name(0, symbol)), back
    bit = Bit(BitGroup(level, f"complete {level}.{shape}"), symbol, parses.name(level, symbol))
    if bit not in program.rows:
        for children, name in parses.complete_rules(level, shape, symbol):
            program.put(bit, [recognized(program, parses, child) for child in children], name)
    return bit, back


# By word that can come next: the literal that counts the ways, or their number if it does not depend on the input.
NextWords = dict[int, Literal | int]


def one_pass_program(parses: Parses) -> BitProgram:
    r"""Return the bottom-up program of $F_{h,k,p}[A, w]$: $w$ can come next in an $A$ of level $h$ and shape $k$.

    $p$ words of the $A$ have been read; for $p = 0$, $F$ is a constant. As disjunctions, the rows give the words that
    can come next; as sums of products, in how many ways (see `grammar_one_pass.py`).
    """
    program = BitProgram(parses.longest)
    known: dict[tuple[Dotted, int], NextWords] = {}
    for dot in parses.roots():
        for step in parses.steps(dot, 0):  # 0 is the start symbol
            elders = [recognized(program, parses, part) for part in step.elders]
            for word, literal in _next(program, parses, known, step.child, step.symbol).items():
                literals, ways = ([], literal) if isinstance(literal, int) else ([literal], 1)
                program.put(answer(parses, word), [words_read(dot.read), *elders, *literals], step.name, ways)
    return program


def _next(
    program: BitProgram, parses: Parses, known: dict[tuple[Dotted, int], NextWords], dot: Dotted, symbol: int
) -> NextWords:
    """Return the words that can come next in a partly read node; new rows for them are added to the program."""
    if dot.level == 0:
        return {symbol: 1}
    if (dot, symbol) in known:
        return known[dot, symbol]
    by_word: NextWords = {}
    constant: Counter[int] = Counter()
    group = BitGroup(dot.level, f"next {dot.level}.{dot.shape}.{dot.read}", sums=True)
    for step in parses.steps(dot, symbol):
        elders = [recognized(program, parses, part) for part in step.elders]
        for word, literal in _next(program, parses, known, step.child, step.symbol).items():
            literals, ways = ([], literal) if isinstance(literal, int) else ([literal], 1)
            if dot.read == 0:
                constant[word] += ways
                continue
            name = f"{parses.name(dot.level, symbol)} … {parses.name(0, word)}"
            bit = Bit(group, symbol * len(parses.shapes.levels.words) + word, name)
            program.put(bit, [*elders, *literals], step.name, ways)
            by_word[word] = bit, 0
    known[dot, symbol] = by_word or dict(constant)
    return known[dot, symbol]


def next_words_net(
    grammar: Grammar,
    parses: Parses,
    program: BitProgram,
    name: str,
    way: str,
    attention: AttentionKind,
    max_length: int | None,
) -> Network:
    """Return the net of a program whose answers are the words that may come next; `way` describes the construction."""
    net = parses.builder(grammar, name, attention, max_length)
    spaces = _programs.inputs(net, MultiHot(parses.words), parses.longest)
    counts = _programs.Wiring(net, program, spaces, ANSWERS).run(_programs.as_bits)
    symbols, matrix = spread(grammar, program)
    readout = Readout(((counts, matrix),), np.full(len(symbols), -0.5), {counts: 0.25})
    facts = parses.facts(grammar)
    return net.network(
        Output("next", symbols), readout, f"bounded-depth grammar {way}", facts, source=SOURCE, reuse=False
    )


def spread(grammar: Grammar, program: BitProgram) -> tuple[tuple[str, ...], Floats]:
    """Return the output symbols, and a 0/1 matrix [count, symbol]: which symbol each count is for."""
    symbols = (*grammar.vocabulary, END)
    matrix = np.zeros((len(program.groups[ANSWERS]), len(symbols)))
    for index, bit in enumerate(program.groups[ANSWERS]):
        matrix[index, symbols.index(bit.name)] = 1.0
    return symbols, matrix
