r"""Shapes of derivation trees: trees without labels, all leaves at level 0.

A shape of level $h$ is the tuple of its children's shapes, and is named by its index within its level. The trees of
symbol $A$ have the shapes $\bigcup_{A \to B_1 \dots B_k} \mathrm{shapes}(B_1) \times \dots \times
\mathrm{shapes}(B_k)$; there can be exponentially many, so listing them has a limit; counting them has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from vitrify.errors import BuildRefused
from vitrify.spec.grammars.levels import Leveled, LevelRule


@dataclass(frozen=True)
class Node:
    """A node of a shape: it spans the words `first` to `last`, counted from 1.

    `children` are indices of nodes of the level below, from left to right; `shape` is the index of its shape.
    """

    first: int
    last: int
    shape: int
    children: tuple[int, ...]


Shared = dict[tuple[int, int], tuple[str, ...]]  # pairs of symbols with a string that both derive


class Ambiguity(NamedTuple):
    """A symbol of a level that derives some words twice in one shape."""

    level: int
    symbol: str
    shape: int
    words: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Shapes:
    """All shapes of a leveled grammar: `trees[h][k]` are the children of shape k of level h.

    Children are indices of shapes of level h - 1. `of_symbol[h][A]` are the shapes that symbol A of level h can have.
    """

    levels: Leveled
    trees: tuple[tuple[tuple[int, ...], ...], ...]
    of_symbol: tuple[tuple[tuple[int, ...], ...], ...]

    def __len__(self) -> int:
        return len(self.of_start)

    def __repr__(self) -> str:
        return f"<Shapes: {len(self)} of sentences, by level {tuple(map(len, self.trees))}>"

    @property
    def of_start(self) -> tuple[int, ...]:
        """Shapes of the start symbol: all of the highest level."""
        return self.of_symbol[-1][0]

    @cached_property
    def widths(self) -> tuple[tuple[int, ...], ...]:
        """Number of words of each shape, by level."""
        widths: list[tuple[int, ...]] = [(1,)]
        for level in self.trees[1:]:
            below = widths[-1]
            widths.append(tuple(sum(below[child] for child in tree) for tree in level))
        return tuple(widths)

    @cached_property
    def _sets(self) -> tuple[tuple[frozenset[int], ...], ...]:
        return tuple(tuple(map(frozenset, level)) for level in self.of_symbol)

    def usable(self, level: int, rule: LevelRule, shape: int) -> bool:
        """Return True if a rule of a level can stand at a node of this shape."""
        tree, below = self.trees[level][shape], self._sets[level - 1]
        return len(tree) == len(rule.rhs) and all(
            child in below[symbol] for child, symbol in zip(tree, rule.rhs, strict=True)
        )

    def nodes(self, shape: int) -> tuple[tuple[Node, ...], ...]:
        """Return the nodes of a shape of the highest level, by level, from left to right.

        >>> from vitrify.spec.grammars.grammar import Grammar
        >>> shapes = Grammar.from_text("S -> A A\\nA -> 'a' | 'a' 'b'").leveled().shapes()
        >>> for node in shapes.nodes(1)[1]:
        ...     print(node)
        Node(first=1, last=1, shape=0, children=(0,))
        Node(first=2, last=3, shape=1, children=(1, 2))
        """
        levels = []
        shapes = [shape]
        for h in range(len(self.trees) - 1, -1, -1):
            here, below, first = list[Node](), list[int](), 1
            for shape_index in shapes:
                children = self.trees[h][shape_index]
                last = first + self.widths[h][shape_index] - 1
                here.append(Node(first, last, shape_index, tuple(range(len(below), len(below) + len(children)))))
                below += children
                first = last + 1
            levels.append(tuple(here))
            shapes = below
        return tuple(reversed(levels))

    def labels(self, shape: int, words: Sequence[str]) -> tuple[tuple[frozenset[int], ...], ...]:
        """Return the symbols that derive the words below each of `nodes(shape)`, in the shape of that node.

        >>> from vitrify.spec.grammars.grammar import Grammar
        >>> shapes = Grammar.from_text("S -> A A\\nA -> 'a' | 'a' 'b'").leveled().shapes()
        >>> shapes.labels(1, ["a", "a", "b"])[1:]
        ((frozenset({0}), frozenset({0})), (frozenset({0}),))
        """
        below = tuple(frozenset({self.levels.words.index(word)}) for word in words)
        labels = [below]
        for h, nodes in enumerate(self.nodes(shape)[1:], start=1):
            below = tuple(
                frozenset(
                    rule.lhs
                    for rule in self.levels.rules[h]
                    if self.usable(h, rule, node.shape)
                    and all(part in labels[-1][child] for part, child in zip(rule.rhs, node.children, strict=True))
                )
                for node in nodes
            )
            labels.append(below)
        return tuple(labels)

    def ambiguous(self) -> Ambiguity | None:
        r"""Return a symbol, a shape and words that the symbol derives twice in that shape, or None.

        None means that a string has at most one parse for each label and shape. Within one shape children are aligned,
        so $A$ derives a string twice iff two of its rules derive a common one child by child, or one with a child that
        derives one twice.

        >>> from vitrify.spec.grammars.grammar import Grammar
        >>> Grammar.from_text("S -> A A | B B\nA -> 'a' | 'b'\nB -> 'b'").leveled().shapes().ambiguous()
        Ambiguity(level=2, symbol='S', shape=0, words=('b', 'b'))
        """
        for h in range(1, len(self.trees)):
            for number in range(len(self.trees[h])):
                for rule, other, words in self._meetings(h, number, self.common[h - 1]):
                    if rule is not other and rule.lhs == other.lhs:
                        return Ambiguity(h, self.levels.symbols[h][rule.lhs], number, words)
        return None

    @cached_property
    def common(self) -> tuple[tuple[Shared, ...], ...]:
        """Pairs of symbols that derive a common string in a shape, with such a string, by level and shape."""
        levels: list[tuple[Shared, ...]] = [({(a, a): (word,) for a, word in enumerate(self.levels.words)},)]
        for h in range(1, len(self.trees)):
            here: list[Shared] = [{} for _ in self.trees[h]]
            for number, pairs in enumerate(here):
                for rule, other, words in self._meetings(h, number, levels[-1]):
                    pairs.setdefault((rule.lhs, other.lhs), words)
                    pairs.setdefault((other.lhs, rule.lhs), words)
            levels.append(tuple(here))
        return tuple(levels)

    def _meetings(
        self, level: int, shape: int, below: Sequence[Shared]
    ) -> Iterator[tuple[LevelRule, LevelRule, tuple[str, ...]]]:
        """Yield pairs of rules that derive a common string in a shape, with that string; also a rule and itself."""
        tree = self.trees[level][shape]
        fitting = [rule for rule in self.levels.rules[level] if self.usable(level, rule, shape)]
        for index, rule in enumerate(fitting):
            for other in fitting[: index + 1]:
                pairs = zip(tree, zip(rule.rhs, other.rhs, strict=True), strict=True)
                parts = [below[child].get(pair) for child, pair in pairs]
                if None not in parts:
                    yield rule, other, tuple(word for part in parts if part for word in part)


def shapes(levels: Leveled, limit: int) -> Shapes:
    """Return the shapes of a leveled grammar; refused where a level has more than `limit`."""
    trees: list[tuple[tuple[int, ...], ...]] = [((),)]
    of_symbol: list[tuple[tuple[int, ...], ...]] = [tuple((0,) for _ in levels.words)]
    for h in range(1, levels.depth + 1):
        number: dict[tuple[int, ...], int] = {}
        shapes_of: list[dict[int, None]] = [{} for _ in levels.symbols[h]]
        for rule in levels.rules[h]:
            for tree in product(*(of_symbol[h - 1][child] for child in rule.rhs)):
                shapes_of[rule.lhs][number.setdefault(tree, len(number))] = None
                if len(number) > limit:
                    raise BuildRefused(
                        f"level {h} of {levels.depth} has more than {limit} shapes of derivation trees "
                        f"({len(number)} reached); raise the limit, or use a construction over spans"
                    )
        trees.append(tuple(number))
        of_symbol.append(tuple(tuple(sorted(indices)) for indices in shapes_of))
    return Shapes(levels, tuple(trees), tuple(of_symbol))


MAX_SYMBOL_SETS = 20_000  # that count_shapes holds at one level


def count_shapes(levels: Leveled) -> int:
    r"""Return the number of shapes of the start symbol, by dynamic programming over sets of symbols.

    At each level, shapes are counted by the set of symbols that can have them, so every shape counts once, however many
    rules lead to it. The sets of the next level follow by going through right sides child by child; only the rules that
    the children so far fit matter.
    """
    kinds: dict[frozenset[int], int] = {frozenset(range(len(levels.words))): 1}
    for h in range(1, levels.depth + 1):
        steps, heads = _prefix_tree(levels.rules[h])
        above: defaultdict[frozenset[int], int] = defaultdict(int)
        open_ones: dict[frozenset[int], int] = {frozenset({0}): 1}  # by the nodes of the tree that fit so far
        while open_ones:
            further: defaultdict[frozenset[int], int] = defaultdict(int)
            for fitting, count in open_ones.items():
                for kind, many in kinds.items():
                    if longer := {after for at in fitting for child, after in steps[at].items() if child in kind}:
                        further[frozenset(longer)] += count * many
            for fitting, count in further.items():
                if ended := frozenset(lhs for at in fitting for lhs in heads[at]):
                    above[ended] += count
            open_ones = dict(further)
            if max(len(above), len(open_ones)) > MAX_SYMBOL_SETS:
                raise BuildRefused(f"counting shapes at level {h} needs more than {MAX_SYMBOL_SETS} sets of symbols")
        kinds = dict(above)
    return sum(kinds.values())


def _prefix_tree(rules: Sequence[LevelRule]) -> tuple[list[dict[int, int]], list[list[int]]]:
    """Return the prefix tree of right sides: by node, the next node for each child, and the left sides that end."""
    steps: list[dict[int, int]] = [{}]
    heads: list[list[int]] = [[]]
    for rule in rules:
        at = 0
        for child in rule.rhs:
            if child not in steps[at]:
                steps[at][child] = len(steps)
                steps.append({})
                heads.append([])
            at = steps[at][child]
        heads[at].append(rule.lhs)
    return steps, heads
