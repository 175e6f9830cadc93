"""The value of a Boolean formula, with padding tokens.

    task = "formula-value"
    formula = "(a & !b) | (!a & b)"

`!` (not) binds tighter than `&` (and), and that tighter than `|` (or). A word has a bit for each variable, in the order
in which they occur first, and then 4^D padding tokens `.`, where D is the depth of the formula in `&` and `|`. The
answer stands at the last token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np

from vitrify.errors import Problem
from vitrify.parameters import Help
from vitrify.spec.formats.infix import Infix, LineParser
from vitrify.spec.tasks.catalogue import Answer, Task, Word

BITS = ("0", "1")
PAD = "."
MAX_DEPTH = 6  # 4,096 padding tokens
MAX_SIGNS = 200  # brackets and connectives: enough for 64 variables, and few enough to be nested in any way
Node: TypeAlias = tuple[Any, ...]  # ("variable", name), ("not", node), ("and", node, node) or ("or", node, node)


@dataclass(frozen=True)
class FormulaValue(Task):
    """The value of a formula.

    >>> xor = FormulaValue("(a & !b) | (!a & b)")
    >>> xor.variables, xor.depth, xor.length
    (('a', 'b'), 2, 18)
    >>> [xor.answers(word)[-1] for word in xor.words(18)]
    ['0', '1', '1', '0']
    """

    name: ClassVar[str] = "formula-value"
    SAMPLES: ClassVar = {"formula": {"formula": "!(a & !b)"}}
    free: ClassVar[bool] = False
    alphabet: ClassVar = (*BITS, PAD)
    outputs: ClassVar = BITS

    formula: Annotated[str, Help("names, !, &, | and brackets")]

    def conflicts(self) -> Iterator[tuple[str, str]]:
        signs = sum(map(self.formula.count, "(!&|"))
        if signs > MAX_SIGNS:
            yield "formula", f"must have at most {MAX_SIGNS} brackets and connectives, not {signs}"
            return
        problems: list[Problem] = []
        node = _Parser(self.formula, problems, None, 1).parse()
        if node is None:
            yield "formula", f"must be a formula of names, !, &, | and brackets: {problems[0].message}"
        elif depth(node) > MAX_DEPTH:
            yield "formula", f"must have a depth in & and | of at most {MAX_DEPTH}, not {depth(node)}: balance it"

    @cached_property
    def node(self) -> Node:
        """The formula as a tree."""
        node = _Parser(self.formula, [], None, 1).parse()
        assert node is not None  # `conflicts` has parsed it
        return node

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables, in the order in which they occur first."""
        return tuple(dict.fromkeys(_names(self.node)))

    @cached_property
    def depth(self) -> int:
        """Nesting depth of `&` and `|`; negations do not count."""
        return depth(self.node)

    @property
    def length(self) -> int:
        """Length of every word."""
        return len(self.variables) + self.padding

    @property
    def padding(self) -> int:
        """Number of padding tokens, 4^D."""
        return 1 << 2 * self.depth

    def answers(self, word: Word) -> Sequence[Answer]:
        if len(word) < self.length:
            return (None,) * len(word)
        values = {name: bit == "1" for name, bit in zip(self.variables, word, strict=False)}
        return (*(None,) * (self.length - 1), BITS[holds(self.node, values)])

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        every = product(BITS, repeat=len(self.variables))
        return ((*bits, *PAD * self.padding) for bits in every if length == self.length)

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return random bits and the padding."""
        bits = (BITS[bit] for bit in rng.integers(2, size=len(self.variables)).tolist())
        return (*bits, *PAD * self.padding)[:length]


class _Parser(LineParser[Node]):
    """Parser of a formula."""

    TOKEN = re.compile(r"\s*(\w+|[()!&|])")
    INFIX: ClassVar = {"|": Infix("or", 1), "&": Infix("and", 2)}

    def operand(self, min_precedence: int) -> Node:
        token = self.next()
        if token == "(":
            return self.bracket()
        if token == "!":
            return ("not", self.operand(min_precedence))
        if not re.fullmatch(r"\w+", token):
            self.fail(f"a name, ! or an opening bracket is expected, got {token!r}")
        return ("variable", token)

    def combine(self, sign: str, left: Node, right: Node) -> Node:
        return (self.INFIX[sign].name, left, right)


def random_formula(seed: int, variables: int, depth: int) -> FormulaValue:
    """Return a random formula of exactly this depth, over at most so many variables x1, x2 …"""
    rng = np.random.default_rng(seed)

    def text(deep: int) -> str:
        if deep == 0:
            return "!" * int(rng.integers(2)) + f"x{rng.integers(variables) + 1}"
        parts = [text(deep - 1), text(int(rng.integers(deep)))]
        return "!" * int(rng.integers(2)) + f"({' &|'[1 + int(rng.integers(2))].join(parts)})"

    return FormulaValue(text(depth))


def holds(node: Node, values: Mapping[str, bool]) -> bool:
    """Return the value of a formula under an assignment."""
    operator, *parts = node
    if operator == "variable":
        return values[parts[0]]
    if operator == "not":
        return not holds(parts[0], values)
    return (all if operator == "and" else any)(holds(part, values) for part in parts)


def depth(node: Node) -> int:
    """Return the nesting depth of `&` and `|`."""
    operator, *parts = node
    return 0 if operator == "variable" else max(map(depth, parts)) + (operator != "not")


def _names(node: Node) -> Iterator[str]:
    operator, *parts = node
    yield from parts if operator == "variable" else (name for part in parts for name in _names(part))


TASK = FormulaValue
