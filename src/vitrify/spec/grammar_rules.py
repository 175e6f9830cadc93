"""Symbols and rules of grammars, and what follows from who rewrites to whom: order, cycles, heights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from vitrify.errors import SpecError


class Symbol(NamedTuple):
    """A nonterminal, or a word (`terminal`); it prints as in a file, words in quotes.

    >>> print(Symbol("NP"), Symbol("the", terminal=True), Symbol("don't", terminal=True))
    NP 'the' "don't"
    """

    name: str
    terminal: bool = False

    def __str__(self) -> str:
        if not self.terminal:
            return self.name
        quote = '"' if "'" in self.name else "'"
        return f"{quote}{self.name}{quote}"


@dataclass(frozen=True)
class Rule:
    """One way to rewrite a nonterminal; a probability given as a float counts as the decimal number it prints as.

    >>> print(Rule("NP", (Symbol("the", terminal=True), Symbol("N")), 0.1))
    NP -> 'the' N [0.1]
    """

    lhs: str
    rhs: tuple[Symbol, ...]
    probability: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rhs", tuple(Symbol(*symbol) for symbol in self.rhs))
        given: object = self.probability
        if given is None or type(given) is Fraction:
            return
        if not isinstance(given, int | float | Fraction) or not math.isfinite(given):
            raise SpecError([f"the probability of {self} must be a finite number, got {given!r}"])
        exact = Fraction(repr(float(given))) if isinstance(given, float) else Fraction(given)
        object.__setattr__(self, "probability", exact)

    @property
    def children(self) -> tuple[str, ...]:
        """The nonterminals on the right side, in order."""
        return tuple(symbol.name for symbol in self.rhs if not symbol.terminal)

    def __str__(self) -> str:
        right = " ".join(map(str, self.rhs))
        chance = f" [{number_text(self.probability)}]" if isinstance(self.probability, Fraction) else ""
        return f"{self.lhs} -> {right}{chance}"


DIGITS = 20  # after the point; what needs more of them is written as a fraction


def number_text(number: Fraction) -> str:
    """A rational number as an exact decimal where there is a short one, else as a fraction.

    >>> number_text(Fraction(3, 8)), number_text(Fraction(1, 3))
    ('0.375', '1/3')
    """
    scaled = number * 10**DIGITS
    if scaled.denominator != 1 or number < 0:
        return f"{number.numerator}/{number.denominator}"
    whole, rest = divmod(scaled.numerator, 10**DIGITS)
    return f"{whole}.{str(rest).rjust(DIGITS, '0').rstrip('0') or '0'}"


# Who rewrites to whom


def grouped(rules: Iterable[Rule]) -> dict[str, tuple[Rule, ...]]:
    """The rules by left side, in order of first appearance."""
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.lhs, []).append(rule)
    return {lhs: tuple(group) for lhs, group in found.items()}


def descendants(start: str, rules_of: Mapping[str, Sequence[Rule]]) -> tuple[str, ...]:
    """The nonterminals that can occur below `start`, itself first, in the order met level by level."""
    found = {start: None}
    queue = [start]
    for symbol in queue:  # grows while it is walked
        for rule in rules_of.get(symbol, ()):
            fresh = [child for child in rule.children if child not in found]
            found.update(dict.fromkeys(fresh))
            queue += dict.fromkeys(fresh)
    return tuple(found)


def walk(edges: Mapping[str, Sequence[str]], roots: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """The nodes below some roots, children before parents, and a cycle among them, its first node repeated at the end.

    >>> walk({"S": ["A", "B"], "A": ["B"], "B": []}, ["S"])
    (('B', 'A', 'S'), None)
    >>> walk({"S": ["A"], "A": ["B"], "B": ["A"]}, ["S"])[1]
    ('A', 'B', 'A')
    """
    done: dict[str, None] = {}
    cycle: tuple[str, ...] | None = None
    for root in roots:
        path, on_path = [root], {root}
        waiting = [iter(edges.get(root, ()))] if root not in done else []
        while waiting:
            child = next(waiting[-1], None)
            if child is None:
                waiting.pop()
                done[path[-1]] = None
                on_path.remove(path.pop())
            elif child in on_path:
                cycle = cycle or (*path[path.index(child) :], child)
            elif child not in done:
                path.append(child)
                on_path.add(child)
                waiting.append(iter(edges.get(child, ())))
    return tuple(done), cycle


def child_edges(rules: Iterable[Rule]) -> dict[str, list[str]]:
    """Each nonterminal with those on its right sides."""
    edges: dict[str, list[str]] = {}
    for rule in rules:
        edges.setdefault(rule.lhs, []).extend(rule.children)
    return edges


def drawn(cycle: Sequence[str]) -> str:
    """A cycle as text."""
    return " → ".join(cycle)
