"""A RASP program with its alphabet, its longest word, and whether it is causal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from vitrify.spec.formats.headed import Headed
from vitrify.spec.formats.text import Problem, in_file, refuse_any
from vitrify.spec.kinds import Kind, Meaning
from vitrify.spec.programs.batch import Batch
from vitrify.spec.programs.expression import Expr, Value, Word, evaluate, parts
from vitrify.spec.programs.text import parse_program, program_text
from vitrify.spec.programs.values import Values, symbols_of

BEGIN = "<s>"
MAX_WORDS, MAX_LENGTH = 2_000, 1_024  # in the search for ambiguous aggregates: words per length, and longest word


@dataclass(frozen=True, eq=False)
class Program(Headed):
    """An expression for words over an alphabet, up to a length; `lines` are the lines of its parts in a text."""

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
        root, alphabet, length, causal, lines = parse_program(text, file)
        with in_file(file):
            spec = cls(root, alphabet, length, causal, name, lines)
            refuse_any(spec.ambiguities)
        return spec

    def to_text(self) -> str:
        return program_text(self.root, self.alphabet, self.length, self.causal)

    @classmethod
    def samples(cls) -> dict[str, Program]:
        from vitrify.spec.programs.families import dyck1, reverse

        return {"reverse": program(reverse(), "abc", 12), "dyck1": program(dyck1("a", "b"), "ab", 12, causal=True)}

    def meanings(self) -> dict[str, Meaning]:
        """Return the tasks: the value at every position, as a symbol or as a number; none before the first letter."""
        domain = self.values[self.root]
        names = dict(zip(domain, symbols_of(domain), strict=True))
        symbols = Meaning("symbol", self.alphabet, (*names.values(),), lambda w: [None, *map(names.get, self(w))])
        if not self.values.numeric(self.root):
            return {"transducer": symbols}
        return {"transducer": symbols, "values": Meaning("number", self.alphabet, ("value",), self._numbers)}

    def _numbers(self, word: Word) -> list[tuple[float] | None]:
        return [None, *((float(value),) for value in self(word))]  # type: ignore[arg-type]  # they are numbers

    @cached_property
    def ambiguities(self) -> tuple[Problem, ...]:
        """Every aggregate whose selected positions disagree, with a word, if short or random words show one.

        Expressions that read such an aggregate are not checked.
        """
        if not any(node.op == "aggregate" for node in parts(self.root)):
            return ()
        rng, size = np.random.default_rng(0), len(self.alphabet)
        longest = min(self.length, MAX_LENGTH)
        batches = [
            np.indices((size,) * length).reshape(length, -1).T
            for length in range(1, longest + 1)
            if size**length <= MAX_WORDS
        ]
        batches += [rng.integers(0, size, size=(32, length)) for length in {longest, (longest + 1) // 2}]
        disagreeing: dict[Expr, list[str]] = {}

        def note(node: Expr, word: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
            disagreeing.setdefault(node, [self.alphabet[letter] for letter in word])

        batch = Batch(self.root, self.values, note)
        for words in batches:
            batch(words)
        first = [
            node for node in disagreeing if not any(part in disagreeing for part in parts(node) if part is not node)
        ]
        return tuple(
            Problem(
                f"an aggregate is ambiguous: on the word {' '.join(disagreeing[node])} it selects positions with "
                "different values; take first or last, or select one position",
                line=self.values.lines.get(node),
            )
            for node in first
        )

    def __call__(self, word: Word) -> list[Value]:
        """Return the value at every position of a word."""
        return evaluate(self.root, word, causal=self.causal)


def program(
    root: Expr, alphabet: Iterable[str], length: int, *, causal: bool = False, name: str = "program"
) -> Program:
    """Return a program, with its functions as tables."""
    return Program(root, tuple(alphabet), length, causal, name)


KIND = Kind(Program, {".rasp": "program of selections and aggregations"})
