"""A recursive-descent parser for one-line expressions with brackets and infix operators of different precedence."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Generic, NamedTuple, NoReturn, TypeVar

from vitrify.errors import Problem, SpecError

Node = TypeVar("Node")


class Infix(NamedTuple):
    """An infix operator: its name in parsed expressions, precedence (a higher one binds tighter) and associativity."""

    name: str
    precedence: int
    right: bool = False


class LineParser(ABC, Generic[Node]):
    """Parse one expression; a subclass defines the tokens, the operators, `operand` and `combine`.

    Problems are appended to `problems`, with the file and the line.
    """

    TOKEN: ClassVar[re.Pattern[str]]  # skips blanks and captures a token, never empty, as group 1
    INFIX: ClassVar[Mapping[str, Infix]]  # by the sign in the text

    def __init__(self, text: str, problems: list[Problem], file: str | None, line: int) -> None:
        self.problems, self.file, self.line = problems, file, line
        self.tokens: list[str] = []
        self.position, end = 0, 0
        while end < len(text.rstrip()):
            match = self.TOKEN.match(text, end)
            self.tokens.append(match[1] if match else text[end:].strip())
            end = match.end() if match else len(text)

    @abstractmethod
    def operand(self, min_precedence: int) -> Node:
        """Parse a name, a bracket or a prefix operation; `min_precedence` is that of the surrounding expression."""

    @abstractmethod
    def combine(self, sign: str, left: Node, right: Node) -> Node:
        """Return the node of an infix operator, given by its sign, and its operands."""

    def check_operator(self, sign: str) -> None:
        """Check an infix operator before its right operand is parsed, so that problems come from left to right."""

    def parse(self) -> Node | None:
        """Parse all tokens and return their expression, or None if there were problems."""
        before = len(self.problems)
        try:
            node = self.expression(0)
            if self.position < len(self.tokens):
                self.fail(f"{self.tokens[self.position]!r} is not expected here")
        except SpecError:
            return None
        return node if len(self.problems) == before else None

    def expression(self, min_precedence: int) -> Node:
        """Parse the longest expression whose infix operators have at least this precedence."""
        left = self.operand(min_precedence)
        while (operator := self.INFIX.get(self.peek())) and operator.precedence >= min_precedence:
            sign = self.next()
            self.check_operator(sign)
            left = self.combine(sign, left, self.expression(operator.precedence + (not operator.right)))
        return left

    def bracket(self) -> Node:
        """Parse what follows an opening bracket: an expression and the closing bracket."""
        node = self.expression(0)
        self.next(")")
        return node

    def modulus(self) -> tuple[int, int]:
        """Parse `(r, m)` after the word MOD, which both our languages (LTL, C-RASP) have, and return r and m."""
        parts = [self.next() for _ in range(5)]
        numbers = [int(part) if part.isdecimal() and part.isascii() and len(part) < 9 else -1 for part in parts[1::2]]
        if parts[::2] != ["(", ",", ")"] or not 0 <= numbers[0] < numbers[1]:
            self.fail("MOD(r, m) takes whole numbers 0 ≤ r < m")
        return numbers[0], numbers[1]

    def positions(self) -> tuple[int, ...]:
        """Parse `(p, q, …)` after the word AT, and return the positions in order."""
        numbers, sign = list[int](), self.next("(")
        while sign != ")":
            number, sign = self.next(), self.peek() and self.next()
            if not (number.isdecimal() and number.isascii() and len(number) < 9 and sign in (",", ")")):
                self.fail("AT(p, q, …) takes positions, counted from 0")
            numbers.append(int(number))
        return tuple(sorted(set(numbers)))

    def peek(self) -> str:
        """Return the next token without consuming it; the empty string at the end."""
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def next(self, expected: str | None = None) -> str:
        """Consume and return the next token; if `expected` is given, fail on any other."""
        if self.position == len(self.tokens):
            self.fail("the expression ends too early" + (f": {expected!r} is missing" if expected else ""))
        self.position += 1
        if expected is not None and self.tokens[self.position - 1] != expected:
            self.fail(f"{expected!r} is expected, got {self.tokens[self.position - 1]!r}")
        return self.tokens[self.position - 1]

    def report(self, message: str) -> None:
        """Append a problem; parsing continues."""
        self.problems.append(Problem(message, self.file, self.line))

    def fail(self, message: str) -> NoReturn:
        """Append a problem and stop parsing."""
        self.report(message)
        raise SpecError([message])
