"""Listings of what a grammar without recursion derives, and random sentences of any grammar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from vitrify.errors import BuildRefused
from vitrify.spec.grammars.rules import Rule, Symbol

RulesOf = Mapping[str, Sequence[Rule]]
Sentence = tuple[str, ...]


def derivations(children_first: Sequence[str], rules_of: RulesOf) -> dict[str, int]:
    """Return the number of derivation trees of each nonterminal."""
    counts: dict[str, int] = {}
    for symbol in children_first:
        counts[symbol] = 0
        for rule in rules_of[symbol]:
            ways = 1
            for child in rule.children:
                ways *= counts[child]
            counts[symbol] += ways
    return counts


def lengths(children_first: Sequence[str], rules_of: RulesOf) -> dict[str, frozenset[int]]:
    """Return the lengths of the strings that each nonterminal derives."""
    lengths_of: dict[str, frozenset[int]] = {}
    for symbol in children_first:
        sums: set[int] = set()
        for rule in rules_of[symbol]:
            so_far = {sum(s.terminal for s in rule.rhs)}
            for child in rule.children:
                so_far = {a + b for a in so_far for b in lengths_of[child]}
            sums |= so_far
        lengths_of[symbol] = frozenset(sums)
    return lengths_of


def parses(children_first: Sequence[str], rules_of: RulesOf, limit: int) -> dict[Sentence, int]:
    """Return the strings that the last nonterminal derives, with their numbers of derivations, short ones first.

    Nonterminals below it derive no more strings than it does, so one limit serves for all.
    """
    strings_of: dict[str, Counter[Sentence]] = {}
    for symbol in children_first:
        total: Counter[Sentence] = Counter()
        for rule in rules_of[symbol]:
            so_far: Counter[Sentence] = Counter({(): 1})
            for part in rule.rhs:
                right = Counter({(part.name,): 1}) if part.terminal else strings_of[part.name]
                longer: Counter[Sentence] = Counter()
                for a, count in so_far.items():
                    for b, right_count in right.items():
                        longer[a + b] += count * right_count
                    _guard(len(longer), limit)
                so_far = longer
            total.update(so_far)
            _guard(len(total), limit)
        strings_of[symbol] = total
    listed = strings_of[children_first[-1]]
    return {sentence: listed[sentence] for sentence in sorted(listed, key=lambda s: (len(s), s))}


def _guard(count: int, limit: int) -> None:
    if count > limit:
        raise BuildRefused(f"sentences to list: more than {limit} ({count} reached); raise the limit, or sample them")


def sample(start: str, rules_of: RulesOf, count: int, seed: int, longest: int) -> tuple[Sentence, ...]:
    """Return `count` sentences drawn from left to right; refused when one grows beyond `longest` symbols."""
    rng = np.random.default_rng(seed)
    bounds = {symbol: list(accumulate(float(r.probability or 1) for r in rules)) for symbol, rules in rules_of.items()}
    drawn = []
    for _ in range(count):
        words: list[str] = []
        waiting = [Symbol(start)]
        while waiting:
            symbol = waiting.pop()
            if symbol.terminal:
                words.append(symbol.name)
                continue
            bound = bounds[symbol.name]
            index = int(np.searchsorted(bound, rng.random() * bound[-1], side="right"))
            waiting += reversed(rules_of[symbol.name][min(index, len(bound) - 1)].rhs)
            if len(words) + len(waiting) > longest:
                raise BuildRefused(
                    f"a sentence drawn at random grew beyond {longest} words; cut the grammar at a depth first"
                )
        drawn.append(tuple(words))
    return tuple(drawn)
