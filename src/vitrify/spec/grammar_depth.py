"""How deep a grammar goes: cycles, heights, and a recursive grammar cut at a depth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from vitrify.errors import SpecError
from vitrify.spec.grammar_rules import Rule, Symbol, child_edges, drawn, grouped, walk

RulesOf = Mapping[str, Sequence[Rule]]


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
    """The start symbol and the rules of the derivations of height at most `depth`, parents first."""
    least, bounded = least_heights(rules_of), bounded_heights(rules_of)
    if depth < least[start]:
        raise SpecError([f"no sentence has a derivation of height {depth}; the lowest is of height {least[start]}"])
    names: dict[tuple[str, int | None], str] = {}
    taken = set(rules_of)

    def name(symbol: str, left: int) -> str:
        index = None if bounded.get(symbol, left + 1) <= left else left
        if (symbol, index) not in names:
            fresh = symbol if index is None else f"{symbol}^{index}"
            while index is not None and fresh in taken:
                fresh += "^"
            taken.add(fresh)
            names[symbol, index] = fresh
            queue.append((symbol, left))
        return names[symbol, index]

    queue: list[tuple[str, int]] = []
    found: list[Rule] = []
    first = name(start, depth)
    for symbol, left in queue:  # grows while it is walked
        for rule in rules_of[symbol]:
            if all(least[child] < left for child in rule.children):
                rhs = tuple(s if s.terminal else Symbol(name(s.name, left - 1)) for s in rule.rhs)
                found.append(Rule(name(symbol, left), rhs, rule.probability))
    if found[0].probability is not None:
        children_first, _ = order(first, found)
        found = proper(children_first, grouped(found))
    position = {lhs: place for place, lhs in enumerate(dict.fromkeys(rule.lhs for rule in found))}
    return first, tuple(sorted(found, key=lambda rule: position[rule.lhs]))


def proper(children_first: Sequence[str], rules_of: RulesOf) -> list[Rule]:
    r"""Rules whose probabilities sum to one exactly, with the same ratios between whole derivations.

    With $Z(A) = \sum_{A \to X_1 \dots X_k} p \prod_i Z(X_i)$, each rule gets $p \prod_i Z(X_i) / Z(A)$.
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
        masses[symbol] = Fraction(sum(weights))
        pairs = zip(rules_of[symbol], weights, strict=True)
        found[symbol] = [Rule(rule.lhs, rule.rhs, weight / masses[symbol]) for rule, weight in pairs]
    return [rule for symbol in rules_of if symbol in found for rule in found[symbol]]
