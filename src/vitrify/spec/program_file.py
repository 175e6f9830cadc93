"""A program with what it is for: an alphabet, a longest word, and whether it may look to the right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from vitrify.errors import SpecError
from vitrify.spec.files import refuse_suffix
from vitrify.spec.program import AmbiguousAggregate, Expr, Value, Word, evaluate
from vitrify.spec.program_batch import Batch
from vitrify.spec.program_text import parse_program, program_text, read_program
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
    suffix: ClassVar[str] = ".rasp"

    def __post_init__(self) -> None:
        values = Values(self.root, tuple(self.alphabet), self.length, self.causal)
        if values.problems:
            raise SpecError(values.problems)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "root", values.root)

    @classmethod
    def read(cls, path: Path) -> Program:
        """The program in a `.rasp` file."""
        if not path.name.endswith(cls.suffix):
            raise refuse_suffix(path, cls.suffix)
        header, root = read_program(path)
        try:
            return cls(root, header.alphabet, header.length, header.causal, path.name.removesuffix(cls.suffix))
        except SpecError as error:
            raise SpecError([replace(problem, file=str(path)) for problem in error.problems]) from None

    @classmethod
    def from_text(cls, text: str, name: str = "program") -> Program:
        """The program that a `.rasp` text describes."""
        header, root = parse_program(text)
        return cls(root, header.alphabet, header.length, header.causal, name)

    def to_text(self) -> str:
        """The program as a `.rasp` text; functions are written out as tables."""
        return program_text(self.root, self.alphabet, self.length, self.causal)

    def write(self, path: Path) -> None:
        """Write a `.rasp` file."""
        path.write_text(self.to_text(), encoding="utf-8")

    def ambiguous(self, words: int = 2_000, seed: int = 0) -> list[str] | None:
        """A word on which some aggregate selects positions that disagree, if short or random words show one."""
        batch, rng = Batch(self.root, self.values), np.random.default_rng(seed)
        size, asked = len(self.alphabet), []
        for length in range(1, self.length + 1):
            if size**length <= words:
                asked.append(np.indices((size,) * length).reshape(length, -1).T)
        asked += [rng.integers(0, size, size=(32, length)) for length in {self.length, (self.length + 1) // 2}]
        for group in asked:
            try:
                batch(group)
            except AmbiguousAggregate:
                for word in group:
                    try:
                        batch(word[None])
                    except AmbiguousAggregate:
                        return [self.alphabet[letter] for letter in word]
        return None

    def __call__(self, word: Word) -> list[Value]:
        """The value at every position of a word."""
        return evaluate(self.root, word, causal=self.causal)


def program(
    root: Expr, alphabet: Iterable[str], length: int, *, causal: bool = False, name: str = "program"
) -> Program:
    """A program, with its functions written out as tables."""
    return Program(root, tuple(alphabet), length, causal, name)
