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
from vitrify.spec.programs.text import identifier, parse_program, program_text
from vitrify.spec.programs.values import Values, symbols_of

BEGIN = "<s>"
MAX_WORDS, MAX_LENGTH = 2_000, 1_024  # in the search for ambiguous aggregates: words per length, and longest word


@dataclass(frozen=True, eq=False)
class Program(Headed):
    """An expression for words over an alphabet, up to a length, and the answer for the empty word, if it has one.

    `names` are those of its parts: spaces, heads and units that hold them get them as labels. `lines` are the lines of
    its parts in a text.
    """

    root: Expr
    alphabet: tuple[str, ...]
    length: int
    causal: bool = False
    name: str = "program"
    values: Values = field(init=False, repr=False)
    lines: InitVar[Mapping[Expr, int] | None] = None
    names: InitVar[Mapping[Expr, str] | None] = None
    empty: Value = None
    suffix: ClassVar[str] = ".rasp"

    def __post_init__(self, lines: Mapping[Expr, int] | None, names: Mapping[Expr, str] | None) -> None:
        odd = [symbol for symbol in self.alphabet if not symbol or symbol.split() != [symbol]]
        refuse_any(
            [f"a symbol has no blanks in it, and {odd[0]!r} has" if odd[0] else "a symbol is not empty"] if odd else []
        )
        taken = set[str]()
        names = {node: identifier(name, taken) for node, name in (names or {}).items()}
        values = Values(self.root, tuple(self.alphabet), self.length, self.causal, lines, names)
        if not values.problems and self.empty is not None:
            domain = values[values.root]
            if not any(type(value) is type(self.empty) and value == self.empty for value in domain):
                some = ", ".join(map(repr, domain[:5])) + (", …" if len(domain) > 5 else "")
                values.problems.append(
                    Problem(
                        f"the answer for the empty word must be a value of the program ({some}), not {self.empty!r}"
                    )
                )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "root", values.root)
        if values.problems:
            refuse_any([*values.problems, *self.ambiguities])

    @classmethod
    def _parsed(cls, text: str, file: str | None, name: str) -> Program:
        read = parse_program(text, file)
        with in_file(file):
            spec = cls(read.root, read.alphabet, read.length, read.causal, name, read.lines, read.names, read.empty)
            refuse_any(spec.ambiguities)
        return spec

    def to_text(self) -> str:
        return program_text(self.root, self.alphabet, self.length, self.causal, self.values.names, self.empty)

    @classmethod
    def samples(cls) -> dict[str, Program]:
        from vitrify.spec.programs.families import dyck1, reverse

        return {"reverse": program(reverse(), "abc", 12), "dyck1": program(dyck1("a", "b"), "ab", 12, causal=True)}

    def meanings(self) -> dict[str, Meaning]:
        """Return the tasks: the value at every position, a symbol or a number; `empty` before the first letter."""
        domain = self.values[self.root]
        names = dict(zip(domain, symbols_of(domain), strict=True))
        empty = None if self.empty is None else names[self.empty]

        def after(word: Word) -> list[str | None]:
            return [empty if self.causal or not word else None, *map(names.get, self(word))]

        symbols = Meaning("symbol", self.alphabet, (*names.values(),), after)
        if not self.values.numeric(self.root):
            return {"transducer": symbols}
        return {"transducer": symbols, "values": Meaning("number", self.alphabet, ("value",), self._numbers)}

    def _numbers(self, word: Word) -> list[tuple[float] | None]:
        return [None, *((float(value),) for value in self(word))]  # type: ignore[arg-type]  # they are numbers

    @cached_property
    def disagreeing(self) -> Mapping[Expr, list[str]]:
        """Every aggregate whose selected positions disagree, with a word, if short or random words show one."""
        if not any(node.op == "aggregate" for node in parts(self.root)):
            return {}
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
        return disagreeing

    @cached_property
    def ambiguities(self) -> tuple[Problem, ...]:
        """The problems of these aggregates; those that read another one of them are not checked."""
        disagreeing = self.disagreeing
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
    root: Expr,
    alphabet: Iterable[str],
    length: int,
    *,
    causal: bool = False,
    name: str = "program",
    names: Mapping[Expr, str] | None = None,
    empty: Value = None,
) -> Program:
    """Return a program, with its functions as tables; `names` of its parts become labels."""
    return Program(root, tuple(alphabet), length, causal, name, names=names, empty=empty)


KIND = Kind(Program, {".rasp": "program of selections and aggregations"})
