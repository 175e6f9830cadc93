"""A program with what it is for: an alphabet, a longest word, and whether it may look to the right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vitrify.errors import SpecError
from vitrify.spec.program import Expr, Value, Word, evaluate
from vitrify.spec.program_values import Values

BEGIN = "<s>"


@dataclass(frozen=True, eq=False)
class Program:
    """An expression for words over an alphabet, up to a length."""

    root: Expr
    alphabet: tuple[str, ...]
    length: int
    causal: bool = False
    name: str = "program"
    values: Values = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = Values(self.root, tuple(self.alphabet), self.length, self.causal)
        if values.problems:
            raise SpecError(values.problems)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "root", values.root)

    def __call__(self, word: Word) -> list[Value]:
        """The value at every position of a word."""
        return evaluate(self.root, word, causal=self.causal)


def program(
    root: Expr, alphabet: Iterable[str], length: int, *, causal: bool = False, name: str = "program"
) -> Program:
    """A program, with its functions written out as tables."""
    return Program(root, tuple(alphabet), length, causal, name)
