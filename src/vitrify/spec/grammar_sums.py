r"""A probabilistic grammar's next-word probabilities as sums of products, in the order in which they can be computed.

Two kinds of *weights*, at each position $t$ of a sentence:

- $(X, k)$ with $k \ge 1$: the probability that $X$ derives exactly the last $k$ words;
- $(X, 0)$, *begun*: the probability that a sentence begins with the $t$ words read, and that some $X$ begins there.

A begun word is the next word, a begun `</s>` the end. Every weight is a sum of products of weights at $t$ or earlier,
one *row* for each rule and each way to share the words out among its children:

$$(A, k) = \sum p(r) \prod_i (X_i, k_i)@\,(t - k_{i+1} - \dots - k_m), \qquad
  (B, 0) = \sum p(r)\, (A, 0)@\,(t-k) \prod_{i<j} (X_i, k_i)@\,(t - k_{i+1} - \dots - k_{j-1}),$$

over the rules $r = A \to X_1 \dots X_m$, with $k$ the sum of the $k_i$ and, for begun ones, $X_j = B$. Two kinds need
no sum: $(X, 1)$ is a function of the last word alone, and the start symbol is begun before the first word and never
again. Only weights that a next word depends on are listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np

from vitrify.errors import BuildRefused
from vitrify.spec import grammar_language
from vitrify.spec.grammar import END, Grammar, Rule, Symbol
from vitrify.spec.grammar_rules import grouped

ROWS = 32  # in one sum: more make heads wider than it saves layers
LIMIT = 10_000  # of rows in all, unless told otherwise


class Weight(NamedTuple):
    """The weight of a symbol that spans so many words, or is begun (0); a `part` of its rows, or all of them (0)."""

    symbol: Symbol
    width: int
    part: int = 0

    def __str__(self) -> str:
        name = f"{self.symbol} of {self.width}" if self.width else f"{self.symbol} begun"
        return f"{name}, part {self.part}" if self.part else name


class Term(NamedTuple):
    """A weight, and how many places back it is read."""

    weight: Weight
    back: int


@dataclass(frozen=True)
class Row:
    """A product: a rule's probability and some weights, each so many places back."""

    chance: Fraction
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Sum:
    """A weight and its rows; where it is not 0 its logarithm lies between `low` and `high`.

    `stage` is the number of sums, one after another, that it takes to get there.
    """

    weight: Weight
    rows: tuple[Row, ...]
    low: float
    high: float
    stage: int


@dataclass(frozen=True, eq=False, repr=False)
class Sums:
    """All sums of a grammar without recursion; `letters` has, by word, the weights $(X, 1)$ that are not 0.

    `rounds` is the number of stages that the longest sum takes by itself: with $R$ products, the least $n$ such that
    $R \\le 32^n$.

    >>> found = sums(Grammar.from_text("S -> A A [1.0]\\nA -> 'a' [0.25] | 'a' 'b' [0.75]"))
    >>> found
    <Sums: 8 in 3 stages, at most 3 rows>
    >>> row, = found[Weight(Symbol("A"), 2)].rows
    >>> str(row.chance), [(str(term.weight), term.back) for term in row.terms]
    ('3/4', [("'a' of 1", 1), ("'b' of 1", 0)])
    """

    start: Symbol
    longest: int
    letters: Mapping[str, Mapping[Symbol, Fraction]]
    listed: tuple[Sum, ...]
    rounds: int

    def __repr__(self) -> str:
        return f"<Sums: {len(self.listed)} in {self.stages} stages, at most {self.most_rows} rows>"

    def __getitem__(self, weight: Weight) -> Sum:
        return self._by_weight[weight]

    @cached_property
    def _by_weight(self) -> dict[Weight, Sum]:
        return {found.weight: found for found in self.listed}

    @property
    def stages(self) -> int:
        """How many sums have to be taken one after another."""
        return max(found.stage for found in self.listed)

    @property
    def most_rows(self) -> int:
        """The rows of the longest sum."""
        return max(len(found.rows) for found in self.listed)

    @property
    def low(self) -> float:
        """A bound from below on the logarithm of every weight that is not 0."""
        return min(found.low for found in self.listed)

    def values(self, words: Sequence[str]) -> dict[Weight, list[Fraction]]:
        """Every weight after each number of words, exactly.

        >>> found = sums(Grammar.from_text("S -> A A [1.0]\\nA -> 'a' [0.25] | 'a' 'b' [0.75]"))
        >>> [str(number) for number in found.values("aba")[Weight(Symbol("A"), 0)]]
        ['1', '1/4', '3/4', '0']
        """
        places = range(len(words) + 1)
        known = {Weight(self.start, 0): [Fraction(t == 0) for t in places]}
        for symbol in self.single:
            letters = [self.letters[word].get(symbol, Fraction(0)) for word in words]
            known[Weight(symbol, 1)] = [Fraction(0), *letters]
        for found in self.listed:
            known[found.weight] = [
                sum((row.chance * _product(known, row, t) for row in found.rows), Fraction(0)) for t in places
            ]
        return known

    @property
    def single(self) -> tuple[Symbol, ...]:
        """The symbols whose weight for the last word alone is asked for, in order."""
        weights = (term.weight for found in self.listed for row in found.rows for term in row.terms)
        return tuple(dict.fromkeys(weight.symbol for weight in weights if weight.width == 1 and not weight.part))


def sums(grammar: Grammar, limit: int = LIMIT) -> Sums:
    """The sums of a grammar, alternatives equally probable where it has no probabilities; refused if they are too many.

    Probabilities that do not add up to one are scaled as for `Grammar.next_word_probs`. A sum of more rows than `ROWS`
    is taken in parts, which are then added.
    """
    return _Tables(grammar.proper(), limit).sums()


class _Tables:
    """Widths and rows, while they are being collected."""

    def __init__(self, grammar: Grammar, limit: int) -> None:
        self.grammar, self.limit = grammar, limit
        self.start = Symbol(grammar.start)
        lengths = grammar_language.lengths(grammar.children_first(), grouped(grammar.rules))
        self.widths = {name: sorted(widths) for name, widths in lengths.items()}
        self.letters: dict[str, dict[Symbol, Fraction]] = {
            word: {Symbol(word, True): Fraction(1)} for word in grammar.terminals
        }
        for name in grammar.children_first():
            for rule in grammar.rules_of(name):
                self._add_letters(name, rule)
        self.rows: dict[Weight, list[Row]] = {}
        self.count = 0

    def _add_letters(self, name: str, rule: Rule) -> None:
        """What a rule with one child adds to the weight of its left side for each last word."""
        if len(rule.rhs) == 1:
            for weights in self.letters.values():
                if rule.rhs[0] in weights:
                    more = _chance(rule) * weights[rule.rhs[0]]
                    weights[Symbol(name)] = weights.get(Symbol(name), Fraction(0)) + more

    def _shares(self, symbols: Sequence[Symbol], total: int | None) -> Iterator[tuple[int, ...]]:
        """The ways to share out some words (any number of them, if the total is None) among symbols, in order."""
        if not symbols:
            if not total:
                yield ()
            return
        for width in [1] if symbols[0].terminal else self.widths[symbols[0].name]:
            if total is None or width <= total - (len(symbols) - 1):
                rest = None if total is None else total - width
                yield from ((width, *shares) for shares in self._shares(symbols[1:], rest))

    def _add(self, weight: Weight, row: Row) -> None:
        self.rows.setdefault(weight, []).append(row)
        self.count += 1
        if self.count > self.limit:
            raise BuildRefused(
                f"there are more than {self.limit} products of a rule and a way to share out the words among its "
                "children: choose a grammar whose phrases have fewer lengths, or cut it at a smaller depth"
            )

    def sums(self) -> Sums:
        """All sums, begun weights parents first, and the complete weights that they rest on."""
        for name in reversed(self.grammar.children_first()):
            for rule in self.grammar.rules_of(name):
                for j, child in enumerate(rule.rhs):
                    for shares in self._shares(rule.rhs[:j], None):
                        begun = Term(Weight(Symbol(name), 0), sum(shares))
                        self._add(Weight(child, 0), Row(_chance(rule), (begun, *_placed(rule.rhs[:j], shares))))
        for width in self.widths[self.start.name]:
            terms = (Term(Weight(self.start, 0), width), Term(Weight(self.start, width), 0))
            self._add(Weight(Symbol(END, True), 0), Row(Fraction(1), terms))
        waiting = [term.weight for rows in self.rows.values() for row in rows for term in row.terms]
        for weight in waiting:  # grows while it is walked
            if weight.width > 1 and weight not in self.rows:
                for rule in self.grammar.rules_of(weight.symbol.name):
                    for shares in self._shares(rule.rhs, weight.width):
                        self._add(weight, Row(_chance(rule), _placed(rule.rhs, shares)))
                waiting += [term.weight for row in self.rows[weight] for term in row.terms]
        most = max(map(len, self.rows.values()))
        rounds = next(n for n in count(1) if most <= ROWS**n)
        return Sums(self.start, max(self.widths[self.start.name]), self.letters, self._ranged(), rounds)

    def _order(self, weight: Weight) -> tuple[bool, int]:
        """Complete weights children first, then begun ones parents first."""
        height = 0 if weight.symbol.terminal else self.grammar.heights[weight.symbol.name]
        return weight.width == 0, height if weight.width else -height

    def _ranged(self) -> tuple[Sum, ...]:
        """The sums with their ranges and stages, by stage."""
        known: dict[Weight, tuple[float, float, int]] = {Weight(self.start, 0): (0.0, 0.0, 0)}
        for symbol in {symbol for weights in self.letters.values() for symbol in weights}:
            logs = [log(weights[symbol]) for weights in self.letters.values() if symbol in weights]
            known[Weight(symbol, 1)] = (min(logs), max(logs), 0)
        found = []
        for whole in sorted(self.rows, key=self._order):
            for weight, rows in _parts(whole, self.rows[whole]):
                parts = [[known[term.weight] for term in row.terms] for row in rows]
                chances = [log(row.chance) for row in rows]
                low = min(c + sum(p[0] for p in row) for c, row in zip(chances, parts, strict=True))
                highs = [c + sum(p[1] for p in row) for c, row in zip(chances, parts, strict=True)]
                high = min(0.0, max(highs) + math.log(sum(math.exp(x - max(highs)) for x in highs)))
                stage = 1 + max(p[2] for row in parts for p in row)
                known[weight] = (low, high, stage)
                found.append(Sum(weight, tuple(rows), low, high, stage))
        return tuple(sorted(found, key=lambda s: s.stage))


def _parts(weight: Weight, rows: list[Row]) -> Iterator[tuple[Weight, list[Row]]]:
    """A sum in parts of at most so many rows, then the sum of these."""
    number = 0
    while len(rows) > ROWS:
        parts = []
        for chunk in np.array_split(np.arange(len(rows)), math.ceil(len(rows) / ROWS)):
            number += 1
            parts.append(Row(Fraction(1), (Term(weight._replace(part=number), 0),)))
            yield weight._replace(part=number), [rows[place] for place in chunk]
        rows = parts
    yield weight, rows


def _product(known: Mapping[Weight, Sequence[Fraction]], row: Row, place: int) -> Fraction:
    factors = [known[term.weight][place - term.back] if term.back <= place else Fraction(0) for term in row.terms]
    return Fraction(0) if 0 in factors else math.prod(factors, start=Fraction(1))


def log(number: Fraction) -> float:
    """The natural logarithm, also of numbers that are too small for a float."""
    small = number < Fraction(1, 10**300)
    return math.log(number.numerator) - math.log(number.denominator) if small else math.log(number)


def _chance(rule: Rule) -> Fraction:
    assert rule.probability is not None
    return rule.probability


def _placed(symbols: Sequence[Symbol], shares: Sequence[int]) -> tuple[Term, ...]:
    """Symbols that stand side by side, the last of them ending here."""
    backs = [sum(shares[i + 1 :]) for i in range(len(shares))]
    triples = zip(symbols, shares, backs, strict=True)
    return tuple(Term(Weight(symbol, width), back) for symbol, width, back in triples)
