"""How deep a grammar goes: cycles, heights, and a recursive grammar cut at a depth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from vitrify.errors import SpecError
from vitrify.spec.grammar_rules import Rule, Symbol, child_edges, descendants, drawn, grouped, walk

RulesOf = Mapping[str, Sequence[Rule]]

LONG, SHORT = 256, 192  # fractions of more bits than the first are rounded to as many as the second


def order(start: str, rules: Iterable[Rule]) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """The nonterminals below the start symbol, children first, and a cycle among them if there is one."""
    return walk(child_edges(rules), [start])


def refusal(cycle: Sequence[str]) -> str:
    """Why a recursive grammar won't do, and what to do."""
    return f"the grammar must not be recursive, but {drawn(cycle)} leads back to itself; cut it at a depth (--depth D)"


def heights(children_first: Iterable[str], rules_of: RulesOf) -> dict[str, int]:
    """The longest way down from each nonterminal to a word."""
    found: dict[str, int] = {}
    for symbol in children_first:
        found[symbol] = 1 + max((found[child] for rule in rules_of[symbol] for child in rule.children), default=0)
    return found


def least_heights(rules_of: RulesOf) -> dict[str, int]:
    """The height of the lowest derivation of each nonterminal: in the n-th round come those of height n."""
    found: dict[str, int] = {}
    height, fresh = 0, True
    while fresh:
        height += 1
        ready = [
            symbol
            for symbol, rules in rules_of.items()
            if symbol not in found and any(all(child in found for child in rule.children) for rule in rules)
        ]
        fresh = bool(ready)
        found.update(dict.fromkeys(ready, height))
    return found


def bounded_heights(rules_of: RulesOf) -> dict[str, int]:
    """The heights of the nonterminals without recursion below them; the others are left out."""
    found: dict[str, int] = {}
    fresh = True
    while fresh:
        ready = {
            symbol: 1 + max((found[child] for rule in rules for child in rule.children), default=0)
            for symbol, rules in rules_of.items()
            if symbol not in found and all(child in found for rule in rules for child in rule.children)
        }
        fresh = bool(ready)
        found |= ready
    return found


def cut(start: str, rules_of: RulesOf, depth: int) -> tuple[str, tuple[Rule, ...]]:
    """The start symbol and the rules of the derivations of height at most `depth`, parents first.

    Where one more level gives a nonterminal no new derivation, both heights share one symbol, named by the smaller.
    """
    least, bounded = least_heights(rules_of), bounded_heights(rules_of)
    if depth < least[start]:
        raise SpecError([f"no sentence has a derivation of height {depth}; the lowest is of height {least[start]}"])
    taken = set(rules_of)
    name: dict[str, str] = {}  # of each nonterminal with so many levels left
    last: dict[str, list[Rule]] = {}  # the rules of each nonterminal, under its newest name
    found: dict[str, list[Rule]] = {}
    for left in range(1, depth + 1):
        below = dict(name)
        for symbol, rules in rules_of.items():
            if least[symbol] > left:
                continue
            usable = [rule for rule in rules if all(child in below for child in rule.children)]
            sides = [tuple(s if s.terminal else Symbol(below[s.name]) for s in rule.rhs) for rule in usable]
            if symbol in last and sides == [rule.rhs for rule in last[symbol]]:
                continue
            name[symbol] = symbol if bounded.get(symbol) == left else _fresh(f"{symbol}^{left}", taken)
            pairs = zip(sides, usable, strict=True)
            last[symbol] = found[name[symbol]] = [Rule(name[symbol], side, rule.probability) for side, rule in pairs]
    kept = [rule for symbol in descendants(name[start], found) for rule in found[symbol]]
    if kept[0].probability is not None:
        kept = proper(order(name[start], kept)[0], grouped(kept))
    return name[start], tuple(kept)


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "^"
    taken.add(name)
    return name


def proper(children_first: Sequence[str], rules_of: RulesOf) -> list[Rule]:
    r"""Rules whose probabilities sum to one exactly, with the same ratios between whole derivations.

    With $Z(A) = \sum_{A \to X_1 \dots X_k} p \prod_i Z(X_i)$, each rule gets $p \prod_i Z(X_i) / Z(A)$. The digits of
    $Z$ may double at every level; beyond 256 bits it is rounded to 192, which moves ratios by about $10^{-57}$ and
    leaves every sum exactly one.
    """
    masses: dict[str, Fraction] = {}
    found: dict[str, list[Rule]] = {}
    for symbol in children_first:
        weights = []
        for rule in rules_of[symbol]:
            weight = Fraction(1) if rule.probability is None else rule.probability
            for child in rule.children:
                if masses[child] != 1:
                    weight *= masses[child]
            weights.append(weight)
        total = sum(weights, Fraction(0))
        masses[symbol] = _shortened(total)
        pairs = zip(rules_of[symbol], weights, strict=True)
        found[symbol] = [Rule(rule.lhs, rule.rhs, weight / total) for rule, weight in pairs]
    return [rule for symbol in rules_of if symbol in found for rule in found[symbol]]


def _shortened(number: Fraction) -> Fraction:
    size = number.denominator.bit_length()
    if size <= LONG:
        return number
    scale = SHORT + size - number.numerator.bit_length()
    return Fraction(round(number * 2**scale), 2**scale)
