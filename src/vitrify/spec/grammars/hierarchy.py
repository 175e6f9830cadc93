r"""Hierarchies: grammars in which every level rewrites into the next, so that a sentence is parsed level by level.

All nonterminals of one height have right sides of one length, made of symbols of the height just below, and no two
rules of one height have the same right side. The Random Hierarchy Model is the best known family. The start symbol may
have rules of one nonterminal each, then the *classes* of sentences; otherwise the start symbol is the only class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vitrify.errors import BuildRefused
from vitrify.spec.grammars.grammar import Grammar, Rule


@dataclass(frozen=True)
class Hierarchy:
    """Rules of a grammar by height, lowest first, and the class symbols of its sentences.

    >>> from vitrify.spec.grammars.families import random_hierarchy
    >>> tree = Hierarchy.of(random_hierarchy(3, 2, 2, 2, seed=0, classes=2))
    >>> tree.classes, tree.arities, [len(rules) for rules in tree.levels]
    (('L2_0', 'L2_1'), (2, 2), [6, 4])
    >>> tree.classify("aaaa"), tree.classify("aaac")
    ('L2_0', None)
    """

    words: tuple[str, ...]
    classes: tuple[str, ...]
    levels: tuple[tuple[Rule, ...], ...]

    @classmethod
    def of(cls, grammar: Grammar) -> Hierarchy:
        """Return the hierarchy of a grammar; for one of another form, raise an error that shows a rule at fault."""
        grammar = grammar.reachable()
        top = grammar.rules_of(grammar.start)
        roots = all(len(rule.rhs) == 1 and not rule.rhs[0].terminal for rule in top)
        classes = tuple(rule.rhs[0].name for rule in top) if roots else (grammar.start,)
        heights = grammar.heights
        if len({heights[name] for name in classes}) > 1:
            raise _refused("its classes must have one height, has", *top)
        levels: list[list[Rule]] = [[] for _ in range(heights[classes[0]])]
        for rule in grammar.rules:
            if not roots or rule.lhs != grammar.start:
                levels[heights[rule.lhs] - 1].append(rule)
        for height, rules in enumerate(levels, start=1):
            odd = [rule for rule in rules if len(rule.rhs) != len(rules[0].rhs)]
            if odd:
                raise _refused("the right sides of one height must have one length, but there are", rules[0], odd[0])
            low = [r for r in rules if any((0 if s.terminal else heights[s.name]) != height - 1 for s in r.rhs)]
            if low:
                raise _refused("a right side must be of symbols of the height just below, but there is", low[0])
            first: dict[object, Rule] = {}
            for rule in rules:
                if first.setdefault(rule.rhs, rule) is not rule:
                    raise _refused("no two rules may have the same right side, but there are", first[rule.rhs], rule)
        return cls(grammar.terminals, classes, tuple(map(tuple, levels)))

    @property
    def arities(self) -> tuple[int, ...]:
        """Length of the right sides, by level."""
        return tuple(len(rules[0].rhs) for rules in self.levels)

    @property
    def length(self) -> int:
        """Number of words of every sentence."""
        return int(np.prod(self.arities))

    @cached_property
    def _parents(self) -> tuple[dict[tuple[str, ...], str], ...]:
        return tuple({tuple(s.name for s in rule.rhs): rule.lhs for rule in rules} for rules in self.levels)

    def classify(self, words: Sequence[str]) -> str | None:
        """The class of a sentence, by parsing it level by level; None for any other string of words."""
        row: tuple[str | None, ...] = tuple(words)
        for parents, arity in zip(self._parents, self.arities, strict=True):
            groups = [row[at : at + arity] for at in range(0, len(row), arity)]
            row = tuple(parents.get(group) for group in groups)  # type: ignore[arg-type]  # None is in no right side
        return row[0] if len(row) == 1 and row[0] in self.classes else None

    def examples(self, rng: np.random.Generator) -> Iterator[tuple[str, ...]]:
        """Yield a sentence for each rule, symbol on its right side and rule of that symbol; all else is random."""
        for level, rules in enumerate(self.levels):
            for rule in rules:
                for place, child in enumerate(rule.rhs):
                    below = [r for r in self.levels[level - 1] if r.lhs == child.name] if level else []
                    for forced in [{place: inner} for inner in below] or [{}]:
                        yield self._upwards(rng, level, rule, self._expand(rng, level, rule, forced))

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        """A random sentence: each rule of a symbol is equally likely, whatever its probability in the grammar."""
        return self._down(rng, len(self.levels), self.classes[int(rng.integers(len(self.classes)))])

    def _down(self, rng: np.random.Generator, height: int, symbol: str) -> tuple[str, ...]:
        if height == 0:
            return (symbol,)
        rules = [rule for rule in self.levels[height - 1] if rule.lhs == symbol]
        return self._expand(rng, height - 1, rules[int(rng.integers(len(rules)))], {})

    def _expand(self, rng: np.random.Generator, level: int, rule: Rule, forced: dict[int, Rule]) -> tuple[str, ...]:
        """The words of a rule whose children are expanded by the forced rules, or at random."""
        parts = (
            self._expand(rng, level - 1, forced[place], {}) if place in forced else self._down(rng, level, child.name)
            for place, child in enumerate(rule.rhs)
        )
        return tuple(word for part in parts for word in part)

    def _upwards(self, rng: np.random.Generator, level: int, rule: Rule, words: tuple[str, ...]) -> tuple[str, ...]:
        """A sentence that has these words of a rule in it."""
        while level + 1 < len(self.levels):
            level += 1
            users = [
                (parent, place)
                for parent in self.levels[level]
                for place, symbol in enumerate(parent.rhs)
                if symbol.name == rule.lhs
            ]
            parent, where = users[int(rng.integers(len(users)))]
            row: list[str] = []
            for place, symbol in enumerate(parent.rhs):
                row += words if place == where else self._down(rng, level, symbol.name)
            rule, words = parent, tuple(row)
        return words


def _refused(message: str, *rules: Rule) -> BuildRefused:
    return BuildRefused(f"the grammar is no hierarchy: {message} {' and '.join(map(str, rules))}")
