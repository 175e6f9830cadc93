"""Parts of programs that answer at the symbol `?`."""

from __future__ import annotations

from typing import Any

from vitrify.spec.kinds import Spec
from vitrify.spec.programs.expression import (
    Expr,
    Operand,
    aggregate,
    apply,
    count,
    everywhere,
    first,
    indices,
    marked,
    select,
    tokens,
    width,
)
from vitrify.spec.programs.program import program

ASK = "?"
BITS = ("0", "1")
MODULUS = 5
LENGTH = width(everywhere)


def where(symbol: str) -> Expr:
    """Return the position of the first occurrence of a symbol, or -1."""
    return first(marked(tokens == symbol), indices, default=-1)


def at(position: Operand, values: Operand, default: Any = None) -> Expr:
    """Return the value at a position that is computed here."""
    return aggregate(select(indices, position), values, default)


def never(flag: Operand) -> Expr:
    """Return True if a flag is true nowhere."""
    return count(flag) == 0


def one_of(symbols: str | tuple[str, ...]) -> Expr:
    """Return True where the token is one of some symbols."""
    return apply(lambda token: token in symbols, tokens)


def asked(root: Expr, alphabet: Any, length: int) -> Spec:
    """Return the program of an expression over an alphabet and ?, for words to a length."""
    return program(root, (*alphabet, ASK), length)
