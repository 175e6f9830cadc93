r"""Counting programs, in the manner of C-RASP: `.crasp` files, what they mean, and the program that says the same.

    // balanced brackets
    alphabet: ( )
    length: 100
    height := #"(" - #")"
    #(height < 0) = 0 & height = 0

Every expression has a value at each position of a word. Truth values are letters (true where they stand, in double
quotes or bare), `true`, `false`, `MOD(r, m)` (the number of the position, from 0, leaves r when divided by m), what
`!`, `&`, `|`, `->` and `<->` make of them, and comparisons of counts by `= != < <= > >=`. Counts are whole numbers,
`#φ` (at how many positions up to and including this one φ is true), and what `+`, `-`, `*` with a constant, `min`,
`max` and `condition ? yes : no` make of them. `!` binds looser than comparisons and tighter than `&`; `#` takes what
stands right behind it. A line `name := expression` gives a name; the last line is the result, a truth value. Lines
that begin with `//` are comments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vitrify.spec.crasp_text import Steps, parse, references, text_of
from vitrify.spec.files import in_file, lines_in
from vitrify.spec.headed import Headed
from vitrify.spec.program import Expr, apply, choose, count, expression, indices, tokens
from vitrify.spec.program_file import Program

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Crasp(Headed):
    """A counting program, for words over an alphabet, up to a length: steps, of which each reads earlier ones."""

    steps: Steps
    alphabet: tuple[str, ...]
    length: int
    name: str = field(default="counting program", compare=False)
    lines: tuple[int, ...] = field(default=(), compare=False, repr=False)  # of the text, by step, where there is one
    suffix: ClassVar[str] = ".crasp"

    @classmethod
    def _parsed(cls, text: str, file: str | None, name: str) -> Crasp:
        steps, lines, alphabet, length = parse(lines_in(text, "//"), file)
        made = cls(steps, alphabet, length, name, lines)
        with in_file(file):
            made.program  # noqa: B018  # what can't be a program is told now, with its lines
        return made

    def to_text(self) -> str:
        """The program as a `.crasp` text."""
        return f"alphabet: {' '.join(self.alphabet)}\nlength: {self.length}\n{text_of(self.steps, self.alphabet)}"

    @cached_property
    def depth(self) -> int:
        """How deep counts are nested."""
        found: list[int] = []
        for step in self.steps:
            found.append(max((found[i] for i in references(step)), default=0) + (step[0] == "#"))
        return found[-1]

    @property
    def counts(self) -> int:
        """How many different counts there are, but for `#true`, which is told by the place."""
        return sum(step[0] == "#" and self.steps[int(step[1])] != ("true",) for step in self.steps)

    def holds(self, words: Ids) -> Flags:
        """Where the result is true [word, position], by its meaning: counts are running sums."""
        found: list[NDArray[Any]] = []
        for step in self.steps:
            found.append(self._value(str(step[0]), step[1:], [found[i] for i in references(step)], words))
        return found[-1].astype(bool)

    def _value(self, operator: str, data: tuple[str | int, ...], inner: list[NDArray[Any]], words: Ids) -> NDArray[Any]:
        if operator == "letter":
            return np.asarray(words == self.alphabet.index(str(data[0])))
        if operator in ("true", "false"):
            return np.full(words.shape, operator == "true")
        if operator == "number":
            return np.full(words.shape, int(data[0]), dtype=np.int64)
        if operator == "MOD":
            return np.broadcast_to(np.arange(words.shape[1]) % int(data[1]) == int(data[0]), words.shape)
        if operator == "#":
            return np.cumsum(inner[0], axis=1, dtype=np.int64)
        result: NDArray[Any] = MEANINGS[operator](*inner)
        return result

    @cached_property
    def program(self) -> Program:
        """The program of selections that says the same: each count is the width of one selection.

        The count of all positions is the place, from 1.
        """
        found: list[Expr] = []
        for step in self.steps:
            found.append(_expression(str(step[0]), step[1:], [found[i] for i in references(step)]))
        lines = dict(reversed([*zip(found, self.lines, strict=False)]))  # of equal expressions the first counts
        return Program(found[-1], self.alphabet, self.length, causal=True, name=self.name, lines=lines)


MEANINGS: dict[str, Any] = {
    "not": np.logical_not,
    "and": np.logical_and,
    "or": np.logical_or,
    "implies": lambda a, b: ~a | b,
    "iff": np.equal,
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "+": np.add,
    "-": np.subtract,
    "neg": np.negative,
    "*": np.multiply,
    "min": lambda *parts: reduce(np.minimum, parts),
    "max": lambda *parts: reduce(np.maximum, parts),
    "if": np.where,
}


def _expression(operator: str, data: tuple[str | int, ...], inner: list[Expr]) -> Expr:
    if operator == "letter":
        return apply("==", tokens, data[0])
    if operator in ("true", "false"):
        return expression(operator == "true")
    if operator == "number":
        return expression(data[0])
    if operator == "MOD":
        return apply("==", indices % int(data[1]), data[0])
    if operator == "#":
        return indices + 1 if inner[0] is expression(True) else count(inner[0])
    if operator == "implies":
        return ~inner[0] | inner[1]
    if operator == "if":
        return choose(*inner)
    if operator in ("min", "max"):
        return reduce(lambda a, b: apply(operator, a, b), inner)
    return apply({"=": "==", "iff": "=="}.get(operator, operator), *inner)
