r"""Next-word probabilities of a probabilistic grammar as sums of products, in an order of computation.

Two kinds of *weights*, at each position $t$ of a sentence:

- $(X, k)$ with $k \ge 1$: the probability that $X$ derives exactly the last $k$ words;
- $(X, 0)$, *begun*: the probability that a sentence begins with the $t$ words read, and that some $X$ begins there.

A begun word is the next word, a begun `</s>` the end. Every weight is a sum of products of weights at $t$ or earlier,
one product for each rule and each way to split the words among its children:

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
from vitrify.spec.grammars import language as grammar_language
from vitrify.spec.grammars.grammar import END, Grammar, Rule, Symbol
from vitrify.spec.grammars.rules import grouped

SUM_PRODUCTS = 32  # in one sum: more would widen heads by more than it saves in layers
MAX_PRODUCTS = 10_000  # in all, by default


class Weight(NamedTuple):
    """The weight of a symbol that spans `width` words, or is begun (0); a `part` of its products or all (0)."""

    symbol: Symbol
    width: int
    part: int = 0

    def __str__(self) -> str:
        name = f"{self.symbol} of {self.width}" if self.width else f"{self.symbol} begun"
        return f"{name}, part {self.part}" if self.part else name


class Term(NamedTuple):
    """A weight, and the number of positions back at which it is read."""

    weight: Weight
    back: int


@dataclass(frozen=True)
class Product:
    """A product: a rule's probability times some weights at earlier positions."""

    probability: Fraction
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Sum:
    """A weight and its products; where it is not 0 its logarithm lies between `low` and `high`.

    `stage` is the number of sums that must be computed one after another to get it.
    """

    weight: Weight
    products: tuple[Product, ...]
    low: float
    high: float
    stage: int


@dataclass(frozen=True, eq=False, repr=False)
class Sums:
    """All sums of a grammar without recursion; `letters` has, by word, the weights $(X, 1)$ that are not 0.

    `rounds` is the number of stages of the longest sum by itself: with $R$ products, the least $n$ such that
    $R \\le 32^n$.

    >>> table = sums(Grammar.from_text("S -> A A [1.0]\\nA -> 'a' [0.25] | 'a' 'b' [0.75]"))
    >>> table
    <Sums: 8 in 3 stages, at most 3 products>
    >>> product, = table[Weight(Symbol("A"), 2)].products
    >>> str(product.probability), [(str(term.weight), term.back) for term in product.terms]
    ('3/4', [("'a' of 1", 1), ("'b' of 1", 0)])
    """

    start: Symbol
    longest: int
    letters: Mapping[str, Mapping[Symbol, Fraction]]
    listed: tuple[Sum, ...]
    rounds: int

    def __repr__(self) -> str:
        return f"<Sums: {len(self.listed)} in {self.stages} stages, at most {self.max_products} products>"

    def __getitem__(self, weight: Weight) -> Sum:
        return self._by_weight[weight]

    @cached_property
    def _by_weight(self) -> dict[Weight, Sum]:
        return {total.weight: total for total in self.listed}

    @property
    def stages(self) -> int:
        """Number of sums that must be computed one after another."""
        return max(total.stage for total in self.listed)

    @property
    def max_products(self) -> int:
        """Number of products of the longest sum."""
        return max(len(total.products) for total in self.listed)

    @property
    def low(self) -> float:
        """Lower bound of the logarithm of every weight that is not 0."""
        return min(total.low for total in self.listed)

    def values(self, words: Sequence[str]) -> dict[Weight, list[Fraction]]:
        """Return every weight after 0, 1, … words, exactly.

        >>> table = sums(Grammar.from_text("S -> A A [1.0]\\nA -> 'a' [0.25] | 'a' 'b' [0.75]"))
        >>> [str(number) for number in table.values("aba")[Weight(Symbol("A"), 0)]]
        ['1', '1/4', '3/4', '0']
        """
        places = range(len(words) + 1)
        known = {Weight(self.start, 0): [Fraction(t == 0) for t in places]}
        for symbol in self.single:
            letters = [self.letters[word].get(symbol, Fraction(0)) for word in words]
            known[Weight(symbol, 1)] = [Fraction(0), *letters]
        for total in self.listed:
            known[total.weight] = [
                sum((product.probability * _product(known, product, t) for product in total.products), Fraction(0))
                for t in places
            ]
        return known

    @property
    def single(self) -> tuple[Symbol, ...]:
        """Symbols whose weight for the last word alone is needed, in order."""
        weights = (term.weight for total in self.listed for product in total.products for term in product.terms)
        return tuple(dict.fromkeys(weight.symbol for weight in weights if weight.width == 1 and not weight.part))


def sums(grammar: Grammar, limit: int = MAX_PRODUCTS) -> Sums:
    """Return the sums of a grammar, by default with equally likely rules; refused above `limit` products.

    Probabilities that do not sum to one are scaled as for `Grammar.next_word_probs`. A sum of more than `SUM_PRODUCTS`
    products is computed in parts, which are then added.
    """
    return _Tables(grammar.proper(), limit).sums()


class _Tables:
    """Widths and products collected so far."""

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
                for weights in self.letters.values() if len(rule.rhs) == 1 else ():
                    if rule.rhs[0] in weights:  # a rule with one child adds to the weight for each last word
                        more = _chance(rule) * weights[rule.rhs[0]]
                        weights[Symbol(name)] = weights.get(Symbol(name), Fraction(0)) + more
        self.products: dict[Weight, list[Product]] = {}
        self.count = 0

    def _shares(self, symbols: Sequence[Symbol], total: int | None) -> Iterator[tuple[int, ...]]:
        """Yield the ways to split `total` words (any number if None) among symbols, in order."""
        if not symbols:
            if not total:
                yield ()
            return
        for width in [1] if symbols[0].terminal else self.widths[symbols[0].name]:
            if total is None or width <= total - (len(symbols) - 1):
                remaining = None if total is None else total - width
                yield from ((width, *shares) for shares in self._shares(symbols[1:], remaining))

    def _add(self, weight: Weight, product: Product) -> None:
        self.products.setdefault(weight, []).append(product)
        self.count += 1
        if self.count > self.limit:
            raise BuildRefused(
                f"there are more than {self.limit} products of a rule and a way to split the words among its "
                "children: choose a grammar whose phrases have fewer lengths, or cut it at a smaller depth"
            )

    def sums(self) -> Sums:
        """Return all sums: begun weights, parents first, and the complete weights that they use."""
        for name in reversed(self.grammar.children_first()):
            for rule in self.grammar.rules_of(name):
                for j, child in enumerate(rule.rhs):
                    for shares in self._shares(rule.rhs[:j], None):
                        begun = Term(Weight(Symbol(name), 0), sum(shares))
                        self._add(Weight(child, 0), Product(_chance(rule), (begun, *_placed(rule.rhs[:j], shares))))
        for width in self.widths[self.start.name]:
            terms = (Term(Weight(self.start, 0), width), Term(Weight(self.start, width), 0))
            self._add(Weight(Symbol(END, True), 0), Product(Fraction(1), terms))
        waiting = [term.weight for products in self.products.values() for product in products for term in product.terms]
        for weight in waiting:  # the list grows during this loop
            if weight.width > 1 and weight not in self.products:
                for rule in self.grammar.rules_of(weight.symbol.name):
                    for shares in self._shares(rule.rhs, weight.width):
                        self._add(weight, Product(_chance(rule), _placed(rule.rhs, shares)))
                waiting += [term.weight for product in self.products[weight] for term in product.terms]
        longest = max(map(len, self.products.values()))
        rounds = next(n for n in count(1) if longest <= SUM_PRODUCTS**n)
        return Sums(self.start, max(self.widths[self.start.name]), self.letters, self._ranged(), rounds)

    def _order(self, weight: Weight) -> tuple[bool, int]:
        """Sort key: complete weights children first, then begun ones parents first."""
        height = 0 if weight.symbol.terminal else self.grammar.heights[weight.symbol.name]
        return weight.width == 0, height if weight.width else -height

    def _ranged(self) -> tuple[Sum, ...]:
        """Return the sums with their ranges and stages, by stage."""
        known: dict[Weight, tuple[float, float, int]] = {Weight(self.start, 0): (0.0, 0.0, 0)}
        for symbol in {symbol for weights in self.letters.values() for symbol in weights}:
            logs = [log(weights[symbol]) for weights in self.letters.values() if symbol in weights]
            known[Weight(symbol, 1)] = (min(logs), max(logs), 0)
        sums = []
        for total in sorted(self.products, key=self._order):
            for weight, products in _parts(total, self.products[total]):
                parts = [[known[term.weight] for term in product.terms] for product in products]
                chances = [log(product.probability) for product in products]
                low = min(c + sum(p[0] for p in product) for c, product in zip(chances, parts, strict=True))
                highs = [c + sum(p[1] for p in product) for c, product in zip(chances, parts, strict=True)]
                high = min(0.0, max(highs) + math.log(sum(math.exp(x - max(highs)) for x in highs)))
                stage = 1 + max(p[2] for product in parts for p in product)
                known[weight] = (low, high, stage)
                sums.append(Sum(weight, tuple(products), low, high, stage))
        return tuple(sorted(sums, key=lambda s: s.stage))


def _parts(weight: Weight, products: list[Product]) -> Iterator[tuple[Weight, list[Product]]]:
    """Yield a sum in parts of at most `SUM_PRODUCTS` products, then the sum of these parts."""
    number = 0
    while len(products) > SUM_PRODUCTS:
        parts = []
        for chunk in np.array_split(np.arange(len(products)), math.ceil(len(products) / SUM_PRODUCTS)):
            number += 1
            parts.append(Product(Fraction(1), (Term(weight._replace(part=number), 0),)))
            yield weight._replace(part=number), [products[index] for index in chunk]
        products = parts
    yield weight, products


def _product(known: Mapping[Weight, Sequence[Fraction]], product: Product, position: int) -> Fraction:
    factors = (known[weight][position - back] if back <= position else Fraction(0) for weight, back in product.terms)
    return math.prod(factors, start=Fraction(1))


def log(number: Fraction) -> float:
    """Return the natural logarithm, also of numbers too small for a float."""
    small = number < Fraction(1, 10**300)
    return math.log(number.numerator) - math.log(number.denominator) if small else math.log(number)


def _chance(rule: Rule) -> Fraction:
    assert rule.probability is not None
    return rule.probability


def _placed(symbols: Sequence[Symbol], shares: Sequence[int]) -> tuple[Term, ...]:
    """Return the terms of adjacent symbols, the last of them ending here."""
    backs = [sum(shares[i + 1 :]) for i in range(len(shares))]
    triples = zip(symbols, shares, backs, strict=True)
    return tuple(Term(Weight(symbol, width), back) for symbol, width, back in triples)
