"""Symbols and rules of grammars, and the graph of which nonterminal rewrites to which."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from vitrify.errors import SpecError
from vitrify.spec.graphs import reached


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
    """One way to rewrite a nonterminal; a float probability means the decimal number it prints as.

    >>> print(Rule("NP", (Symbol("the", terminal=True), Symbol("N")), 0.1))
    NP -> 'the' N [0.1]
    """

    lhs: str
    rhs: tuple[Symbol, ...]
    probability: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rhs", tuple(Symbol(*symbol) for symbol in self.rhs))
        value: object = self.probability
        if value is None or type(value) is Fraction:
            return
        if not isinstance(value, int | float | Fraction) or not math.isfinite(value):
            raise SpecError([f"the probability of {self} must be a finite number, got {value!r}"])
        exact = Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
        object.__setattr__(self, "probability", exact)

    @property
    def children(self) -> tuple[str, ...]:
        """Nonterminals on the right side, in order."""
        return tuple(symbol.name for symbol in self.rhs if not symbol.terminal)

    def __str__(self) -> str:
        right = " ".join(map(str, self.rhs))
        chance = f" [{number_text(self.probability)}]" if isinstance(self.probability, Fraction) else ""
        return f"{self.lhs} -> {right}{chance}"


MAX_DECIMALS = 20  # longer decimals are written as fractions


def number_text(number: Fraction) -> str:
    """Return a rational number as an exact decimal where there is a short one, else as a fraction.

    >>> number_text(Fraction(3, 8)), number_text(Fraction(1, 3))
    ('0.375', '1/3')
    """
    scaled = number * 10**MAX_DECIMALS
    if scaled.denominator != 1 or number < 0:
        return f"{number.numerator}/{number.denominator}"
    integer, decimals = divmod(scaled.numerator, 10**MAX_DECIMALS)
    return f"{integer}.{str(decimals).rjust(MAX_DECIMALS, '0').rstrip('0') or '0'}"


# Graph of nonterminals


def grouped(rules: Iterable[Rule]) -> dict[str, tuple[Rule, ...]]:
    """Return the rules by left side, in order of first appearance."""
    groups: dict[str, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(rule.lhs, []).append(rule)
    return {lhs: tuple(group) for lhs, group in groups.items()}


def descendants(start: str, rules_of: Mapping[str, Sequence[Rule]]) -> tuple[str, ...]:
    """Return the nonterminals that can occur below `start`, itself first, in breadth-first order."""
    return tuple(reached([start], lambda symbol: [c for rule in rules_of.get(symbol, ()) for c in rule.children]))


def drawn(cycle: Sequence[str]) -> str:
    """Return a cycle as text."""
    return " → ".join(cycle)
