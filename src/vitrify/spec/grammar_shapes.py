r"""The shapes of derivation trees: trees with the labels erased, all leaves at level 0.

A shape of level $h$ is the tuple of its children's shapes, and is named by its number among those of its level. What
symbol $A$ derives has the shapes $\bigcup_{A \to B_1 \dots B_k} \mathrm{shapes}(B_1) \times \dots \times
\mathrm{shapes}(B_k)$; there can be exponentially many, so listing them has a guard, and counting them does without.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from vitrify.errors import BuildRefused
from vitrify.spec.grammar_levels import Levelled, LevelRule


@dataclass(frozen=True)
class Node:
    """A node of a shape: it spans the words `first` to `last` (counted from 1), its children are named by their
    number among the nodes of the level below, from left to right; `shape` is its shape's number in its level.
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
    """All shapes of a levelled grammar: `trees[h][k]` are the children of shape k of level h, numbered in level h - 1.

    `of_symbol[h][A]` are the shapes that symbol A of level h can have, in order.
    """

    levels: Levelled
    trees: tuple[tuple[tuple[int, ...], ...], ...]
    of_symbol: tuple[tuple[tuple[int, ...], ...], ...]

    def __len__(self) -> int:
        return len(self.whole)

    def __repr__(self) -> str:
        return f"<Shapes: {len(self)} of whole sentences, by level {tuple(map(len, self.trees))}>"

    @property
    def whole(self) -> tuple[int, ...]:
        """The shapes of the start symbol: all of the highest level."""
        return self.of_symbol[-1][0]

    @cached_property
    def widths(self) -> tuple[tuple[int, ...], ...]:
        """How many words each shape of each level spans."""
        found: list[tuple[int, ...]] = [(1,)]
        for level in self.trees[1:]:
            below = found[-1]
            found.append(tuple(sum(below[child] for child in tree) for tree in level))
        return tuple(found)

    @cached_property
    def _sets(self) -> tuple[tuple[frozenset[int], ...], ...]:
        return tuple(tuple(map(frozenset, level)) for level in self.of_symbol)

    def usable(self, level: int, rule: LevelRule, shape: int) -> bool:
        """Whether a rule of a level can stand at a node of this shape."""
        tree, below = self.trees[level][shape], self._sets[level - 1]
        return len(tree) == len(rule.rhs) and all(
            child in below[symbol] for child, symbol in zip(tree, rule.rhs, strict=True)
        )

    def nodes(self, shape: int) -> tuple[tuple[Node, ...], ...]:
        """The nodes of a shape of the highest level, by level, from left to right.

        >>> from vitrify.spec.grammar import Grammar
        >>> shapes = Grammar.from_text("S -> A A\\nA -> 'a' | 'a' 'b'").levelled().shapes()
        >>> for node in shapes.nodes(1)[1]:
        ...     print(node)
        Node(first=1, last=1, shape=0, children=(0,))
        Node(first=2, last=3, shape=1, children=(1, 2))
        """
        found = []
        row = [shape]
        for h in range(len(self.trees) - 1, -1, -1):
            here, below, first = list[Node](), list[int](), 1
            for number in row:
                children = self.trees[h][number]
                last = first + self.widths[h][number] - 1
                here.append(Node(first, last, number, tuple(range(len(below), len(below) + len(children)))))
                below += children
                first = last + 1
            found.append(tuple(here))
            row = below
        return tuple(reversed(found))

    def labels(self, shape: int, words: Sequence[str]) -> tuple[tuple[frozenset[int], ...], ...]:
        """The symbols that derive the words below each of `nodes(shape)`, in the shape of that node.

        >>> from vitrify.spec.grammar import Grammar
        >>> shapes = Grammar.from_text("S -> A A\\nA -> 'a' | 'a' 'b'").levelled().shapes()
        >>> shapes.labels(1, ["a", "a", "b"])[1:]
        ((frozenset({0}), frozenset({0})), (frozenset({0}),))
        """
        below = tuple(frozenset({self.levels.words.index(word)}) for word in words)
        found = [below]
        for h, row in enumerate(self.nodes(shape)[1:], start=1):
            below = tuple(
                frozenset(
                    rule.lhs
                    for rule in self.levels.rules[h]
                    if self.usable(h, rule, node.shape)
                    and all(part in found[-1][child] for part, child in zip(rule.rhs, node.children, strict=True))
                )
                for node in row
            )
            found.append(below)
        return tuple(found)

    def ambiguous(self) -> Ambiguity | None:
        r"""A symbol, a shape and words such that two derivations of that symbol in that shape give these words.

        None means that a string has at most one parse for each label and shape. Within one shape children are aligned,
        so $A$ derives a string twice iff two of its rules derive a common one child by child, or one with a child that
        derives one twice.

        >>> from vitrify.spec.grammar import Grammar
        >>> Grammar.from_text("S -> A A | B B\nA -> 'a' | 'b'\nB -> 'b'").levelled().shapes().ambiguous()
        Ambiguity(level=2, symbol='S', shape=0, words=('b', 'b'))
        """
        for h in range(1, len(self.trees)):
            for number in range(len(self.trees[h])):
                for rule, other, words in self._meetings(h, number):
                    if rule is not other and rule.lhs == other.lhs:
                        return Ambiguity(h, self.levels.symbols[h][rule.lhs], number, words)
        return None

    @cached_property
    def common(self) -> tuple[tuple[Shared, ...], ...]:
        """By level and shape: the pairs of symbols that derive a common string in that shape, with one of these."""
        found: list[tuple[Shared, ...]] = [({(a, a): (word,) for a, word in enumerate(self.levels.words)},)]
        for h in range(1, len(self.trees)):
            here: list[Shared] = [{} for _ in self.trees[h]]
            for number, pairs in enumerate(here):
                for rule, other, words in _meetings(self, h, number, found[-1]):
                    pairs.setdefault((rule.lhs, other.lhs), words)
                    pairs.setdefault((other.lhs, rule.lhs), words)
            found.append(tuple(here))
        return tuple(found)

    def _meetings(self, level: int, shape: int) -> Iterator[tuple[LevelRule, LevelRule, tuple[str, ...]]]:
        return _meetings(self, level, shape, self.common[level - 1])


def _meetings(
    shapes: Shapes, level: int, shape: int, below: Sequence[Shared]
) -> Iterator[tuple[LevelRule, LevelRule, tuple[str, ...]]]:
    """Pairs of rules, each with itself too, that derive a common string in a shape, with that string."""
    tree = shapes.trees[level][shape]
    fitting = [rule for rule in shapes.levels.rules[level] if shapes.usable(level, rule, shape)]
    for place, rule in enumerate(fitting):
        for other in fitting[: place + 1]:
            pairs = zip(tree, zip(rule.rhs, other.rhs, strict=True), strict=True)
            parts = [below[child].get(pair) for child, pair in pairs]
            if None not in parts:
                yield rule, other, tuple(word for part in parts if part for word in part)


def shapes(levels: Levelled, limit: int) -> Shapes:
    """The shapes of a levelled grammar, level by level; refused where a level has more than `limit`."""
    trees: list[tuple[tuple[int, ...], ...]] = [((),)]
    of_symbol: list[tuple[tuple[int, ...], ...]] = [tuple((0,) for _ in levels.words)]
    for h in range(1, levels.depth + 1):
        number: dict[tuple[int, ...], int] = {}
        own: list[dict[int, None]] = [{} for _ in levels.symbols[h]]
        for rule in levels.rules[h]:
            for tree in product(*(of_symbol[h - 1][child] for child in rule.rhs)):
                own[rule.lhs][number.setdefault(tree, len(number))] = None
                if len(number) > limit:
                    raise BuildRefused(
                        f"the shapes of derivation trees were to be listed, but level {h} of {levels.depth} has more "
                        f"than {limit} ({len(number)} reached); raise the limit, or use a construction over spans"
                    )
        trees.append(tuple(number))
        of_symbol.append(tuple(tuple(sorted(found)) for found in own))
    return Shapes(levels, tuple(trees), tuple(of_symbol))


KINDS = 20_000  # sets of symbols that count_shapes keeps at one level


def count_shapes(levels: Levelled) -> int:
    r"""How many shapes the start symbol has, by dynamic programming over sets of symbols.

    At each level, shapes are counted by the set of symbols that can have them, which makes every shape count once
    however many rules lead to it. The next level's sets follow by going through right sides child by child: what
    matters of the children so far is which rules they fit.
    """
    kinds: dict[frozenset[int], int] = {frozenset(range(len(levels.words))): 1}
    for h in range(1, levels.depth + 1):
        tries = _prefix_tree(levels.rules[h])
        above: defaultdict[frozenset[int], int] = defaultdict(int)
        open_ones: dict[frozenset[int], int] = {frozenset({0}): 1}  # by the nodes of the tree that fit so far
        while open_ones:
            further: defaultdict[frozenset[int], int] = defaultdict(int)
            for fitting, count in open_ones.items():
                for kind, many in kinds.items():
                    steps = {after for at in fitting for child, after in tries.steps[at].items() if child in kind}
                    if not steps:
                        continue
                    further[frozenset(steps)] += count * many
            for fitting, count in further.items():
                heads = frozenset(lhs for at in fitting for lhs in tries.heads[at])
                if heads:
                    above[heads] += count
            open_ones = dict(further)
            if max(len(above), len(open_ones)) > KINDS:
                raise BuildRefused(f"counting shapes at level {h} needs more than {KINDS} sets of symbols")
        kinds = dict(above)
    return sum(kinds.values())


@dataclass(frozen=True)
class _PrefixTree:
    """Right sides as a tree: where a child leads from each node, and whose right sides end there."""

    steps: list[dict[int, int]]
    heads: list[list[int]]


def _prefix_tree(rules: tuple[LevelRule, ...]) -> _PrefixTree:
    tree = _PrefixTree([{}], [[]])
    for rule in rules:
        at = 0
        for child in rule.rhs:
            if child not in tree.steps[at]:
                tree.steps[at][child] = len(tree.steps)
                tree.steps.append({})
                tree.heads.append([])
            at = tree.steps[at][child]
        tree.heads[at].append(rule.lhs)
    return tree
