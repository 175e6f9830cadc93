"""What a grammar without recursion derives, by listing it; and sentences drawn at random from any grammar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from vitrify.errors import BuildRefused
from vitrify.spec.grammar_rules import Rule, Symbol

RulesOf = Mapping[str, Sequence[Rule]]
Sentence = tuple[str, ...]


def derivations(children_first: Sequence[str], rules_of: RulesOf) -> dict[str, int]:
    """How many derivation trees each nonterminal has."""
    found: dict[str, int] = {}
    for symbol in children_first:
        found[symbol] = 0
        for rule in rules_of[symbol]:
            ways = 1
            for child in rule.children:
                ways *= found[child]
            found[symbol] += ways
    return found


def lengths(children_first: Sequence[str], rules_of: RulesOf) -> dict[str, frozenset[int]]:
    """The lengths of what each nonterminal derives."""
    found: dict[str, frozenset[int]] = {}
    for symbol in children_first:
        sums: set[int] = set()
        for rule in rules_of[symbol]:
            so_far = {sum(s.terminal for s in rule.rhs)}
            for child in rule.children:
                so_far = {a + b for a in so_far for b in found[child]}
            sums |= so_far
        found[symbol] = frozenset(sums)
    return found


def parses(children_first: Sequence[str], rules_of: RulesOf, limit: int) -> dict[Sentence, int]:
    """What the last nonterminal derives, each with the number of its derivations, short ones first.

    No nonterminal below it derives more strings than it does, so the limit holds for all of them.
    """
    found: dict[str, Counter[Sentence]] = {}
    for symbol in children_first:
        total: Counter[Sentence] = Counter()
        for rule in rules_of[symbol]:
            so_far: Counter[Sentence] = Counter({(): 1})
            for part in rule.rhs:
                right = Counter({(part.name,): 1}) if part.terminal else found[part.name]
                longer: Counter[Sentence] = Counter()
                for a, many in so_far.items():
                    for b, more in right.items():
                        longer[a + b] += many * more
                    _guard(len(longer), limit)
                so_far = longer
            total.update(so_far)
            _guard(len(total), limit)
        found[symbol] = total
    listed = found[children_first[-1]]
    return {sentence: listed[sentence] for sentence in sorted(listed, key=lambda s: (len(s), s))}


def _guard(count: int, limit: int) -> None:
    if count > limit:
        raise BuildRefused(
            f"the sentences were to be listed, but there are more than {limit} ({count} reached); "
            "raise the limit, or sample them"
        )


def sample(start: str, rules_of: RulesOf, count: int, seed: int, longest: int) -> tuple[Sentence, ...]:
    """Sentences drawn from left to right; refused when one grows beyond `longest` symbols."""
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
            place = int(np.searchsorted(bound, rng.random() * bound[-1], side="right"))
            waiting += reversed(rules_of[symbol.name][min(place, len(bound) - 1)].rhs)
            if len(words) + len(waiting) > longest:
                raise BuildRefused(
                    f"a sentence drawn at random grew beyond {longest} words; cut the grammar at a depth first"
                )
        drawn.append(tuple(words))
    return tuple(drawn)
