"""Depth of a grammar: cycles, heights, and recursive grammars cut at a depth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from vitrify.errors import SpecError
from vitrify.spec.grammars.rules import Rule, Symbol, descendants, drawn, grouped
from vitrify.spec.graphs import children_first

RulesOf = Mapping[str, Sequence[Rule]]

MAX_BITS, ROUNDED_BITS = 256, 192  # fractions of more bits than the first are rounded to the second


def order(start: str, rules_of: RulesOf) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Return the nonterminals below the start symbol, children first, and a cycle among them or None."""
    return children_first(
        {lhs: [c for rule in rules for c in rule.children] for lhs, rules in rules_of.items()}, [start]
    )


def refusal(cycle: Sequence[str]) -> str:
    """Return the message that refuses a recursive grammar and says what to do."""
    return f"the grammar must not be recursive, but {drawn(cycle)} leads back to itself; cut it at a depth (--depth D)"


def derivation_heights(rules_of: RulesOf, choose: Callable[[Iterable[bool]], bool]) -> dict[str, int]:
    """Return the height of the lowest derivation of each nonterminal (`any`) or of the highest (`all`).

    Round $n$ adds the nonterminals of which any (or all) rules have only children of earlier rounds. Nonterminals that
    are never added derive no sentence (`any`) or are recursive (`all`).
    """
    parents: dict[str, list[str]] = {}
    for symbol, rules in rules_of.items():
        for child in dict.fromkeys(child for rule in rules for child in rule.children):
            parents.setdefault(child, []).append(symbol)

    def added(symbol: str) -> bool:
        return symbol not in heights and choose(
            all(child in heights for child in rule.children) for rule in rules_of[symbol]
        )

    heights: dict[str, int] = {}
    height, waiting = 0, list(rules_of)
    while ready := list(filter(added, waiting)):
        height += 1
        heights |= dict.fromkeys(ready, height)
        waiting = list(dict.fromkeys(parent for child in ready for parent in parents.get(child, ())))
    return heights


def cut(start: str, rules_of: RulesOf, depth: int) -> tuple[str, tuple[Rule, ...]]:
    """Return the start symbol and the rules of the derivations of height at most `depth`, parents first.

    Where one more level gives a nonterminal no new derivation, both heights share one symbol, named by the smaller.
    Probabilities are conditional on a height of at most `depth`: those of the remaining rules are renormalized.
    """
    least, bounded = derivation_heights(rules_of, any), derivation_heights(rules_of, all)
    if depth < least[start]:
        raise SpecError([f"no sentence has a derivation of height {depth}; the lowest is of height {least[start]}"])
    taken = set(rules_of)
    name: dict[str, str] = {}  # of each nonterminal with `left` levels to go
    last: dict[str, list[Rule]] = {}  # the rules of each nonterminal, under its newest name
    cut_rules: dict[str, list[Rule]] = {}
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
            last[symbol] = cut_rules[name[symbol]] = [
                Rule(name[symbol], side, rule.probability) for side, rule in pairs
            ]
    reachable = [rule for symbol in descendants(name[start], cut_rules) for rule in cut_rules[symbol]]
    if reachable[0].probability is not None:
        groups = grouped(reachable)
        reachable = proper(order(name[start], groups)[0], groups)
    return name[start], tuple(reachable)


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "^"
    taken.add(name)
    return name


def proper(children_first: Sequence[str], rules_of: RulesOf) -> list[Rule]:
    r"""Return rules whose probabilities sum to one exactly, with the same ratios between whole derivations.

    With $Z(A) = \sum_{A \to X_1 \dots X_k} p \prod_i Z(X_i)$, each rule gets $p \prod_i Z(X_i) / Z(A)$. The digits of
    $Z$ may double at every level; beyond 256 bits it is rounded to 192, which moves ratios by about $10^{-57}$ and
    leaves every sum exactly one.
    """
    masses: dict[str, Fraction] = {}
    scaled: dict[str, list[Rule]] = {}
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
        scaled[symbol] = [Rule(rule.lhs, rule.rhs, weight / total) for rule, weight in pairs]
    return [rule for symbol in rules_of if symbol in scaled for rule in scaled[symbol]]


def _shortened(number: Fraction) -> Fraction:
    size = number.denominator.bit_length()
    if size <= MAX_BITS:
        return number
    scale = ROUNDED_BITS + size - number.numerator.bit_length()
    return Fraction(round(number * 2**scale), 2**scale)
