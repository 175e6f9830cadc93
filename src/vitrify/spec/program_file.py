"""A program with what it is for: an alphabet, a longest word, and whether it may look to the right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from vitrify.errors import Problem
from vitrify.spec.files import in_file, refuse_any
from vitrify.spec.headed import Headed
from vitrify.spec.program import Expr, Value, Word, evaluate, parts
from vitrify.spec.program_batch import Batch
from vitrify.spec.program_text import parse_program, program_text
from vitrify.spec.program_values import Values

BEGIN = "<s>"
WORDS, LONG = 2_000, 1_024  # to find out what is ambiguous: words of a length, if all are tried; the longest word


@dataclass(frozen=True, eq=False)
class Program(Headed):
    """An expression for words over an alphabet, up to a length; `lines` says where its parts stand in a text."""

    root: Expr
    alphabet: tuple[str, ...]
    length: int
    causal: bool = False
    name: str = "program"
    values: Values = field(init=False, repr=False)
    lines: InitVar[Mapping[Expr, int] | None] = None
    suffix: ClassVar[str] = ".rasp"

    def __post_init__(self, lines: Mapping[Expr, int] | None) -> None:
        values = Values(self.root, tuple(self.alphabet), self.length, self.causal, lines)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "root", values.root)
        if values.problems:
            refuse_any([*values.problems, *self.ambiguities])

    @classmethod
    def _parsed(cls, text: str, file: str | None, name: str) -> Program:
        written = parse_program(text, file)
        with in_file(file):
            made = cls(written.root, written.alphabet, written.length, written.causal, name, written.lines)
            refuse_any(made.ambiguities)
        return made

    def to_text(self) -> str:
        """The program as a `.rasp` text; functions are written out as tables."""
        return program_text(self.root, self.alphabet, self.length, self.causal)

    @cached_property
    def ambiguities(self) -> tuple[Problem, ...]:
        """Every aggregate that selects positions that disagree, with a word, if short or random words show one.

        What reads the result of such an aggregate is not asked about.
        """
        if not any(node.op == "aggregate" for node in parts(self.root)):
            return ()
        rng, size = np.random.default_rng(0), len(self.alphabet)
        longest = min(self.length, LONG)
        asked = [
            np.indices((size,) * length).reshape(length, -1).T
            for length in range(1, longest + 1)
            if size**length <= WORDS
        ]
        asked += [rng.integers(0, size, size=(32, length)) for length in {longest, (longest + 1) // 2}]
        found: dict[Expr, list[str]] = {}

        def note(node: Expr, word: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
            found.setdefault(node, [self.alphabet[letter] for letter in word])

        batch = Batch(self.root, self.values, note)
        for words in asked:
            batch(words)
        first = [node for node in found if not any(part in found for part in parts(node) if part is not node)]
        return tuple(
            Problem(
                f"an aggregate is ambiguous: on the word {' '.join(found[node])} it selects positions with different "
                "values; take first or last, or select one position",
                line=self.values.lines.get(node),
            )
            for node in first
        )

    def __call__(self, word: Word) -> list[Value]:
        """The value at every position of a word."""
        return evaluate(self.root, word, causal=self.causal)


def program(
    root: Expr, alphabet: Iterable[str], length: int, *, causal: bool = False, name: str = "program"
) -> Program:
    """A program, with its functions written out as tables."""
    return Program(root, tuple(alphabet), length, causal, name)
