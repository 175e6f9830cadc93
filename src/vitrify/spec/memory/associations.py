"""Associations: a key–value dictionary of single words; `.pairs` files.

    # capitals
    France   Paris
    Japan    Tokyo

Every line pairs a word with its answer. A word has one answer; several words may share one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from vitrify.spec.formats.text import Problem, SpecError, lines_of, refuse_any
from vitrify.spec.kinds import Kind, Meaning, Spec, at_every_prefix
from vitrify.spec.ngrams.model import BEGIN, END

Located = tuple[int | None, Sequence[str]]  # the line of some words, where they come from a file


@dataclass(frozen=True)
class Associations(Spec):
    """Words and their answers, in order.

    >>> spec = Associations.of({"France": "Paris", "Japan": "Tokyo", "Nippon": "Tokyo"})
    >>> spec.answer(["Japan"]), spec.answers, spec.injective
    ('Tokyo', ('Paris', 'Tokyo'), False)
    """

    pairs: tuple[tuple[str, str], ...]
    suffix: ClassVar[str] = ".pairs"

    def __post_init__(self) -> None:
        refuse_any(_problems([(None, pair) for pair in self.pairs]))

    @classmethod
    def of(cls, answers: Mapping[str, str]) -> Associations:
        """Return the associations of a dictionary."""
        return cls(tuple(answers.items()))

    @classmethod
    def read(cls, path: str | Path) -> Associations:
        rows = [(number, line.split()) for number, line in lines_of(path, cls.suffix)]
        refuse_any(Problem(problem.message, str(path), problem.line) for problem in _problems(rows))
        return cls(tuple((word, answer) for _, (word, answer) in rows))

    def to_text(self) -> str:
        return "".join(f"{word} {answer}\n" for word, answer in self.pairs)

    @classmethod
    def samples(cls) -> dict[str, Associations]:
        return {"random": random_associations(40, seed=0), "few answers": random_associations(30, seed=1, outputs=3)}

    # Words

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Words that have an answer."""
        return tuple(word for word, _ in self.pairs)

    @cached_property
    def answers(self) -> tuple[str, ...]:
        """All answers, in the order of first mention."""
        return tuple(dict.fromkeys(answer for _, answer in self.pairs))

    @property
    def injective(self) -> bool:
        """Return True if no two words share an answer."""
        return len(self.answers) == len(self.pairs)

    # Meaning

    def meanings(self) -> dict[str, Meaning]:
        """Return the task: the answer to a word."""
        return {"class": Meaning("symbol", self.vocabulary, self.answers, at_every_prefix(self.answer), self)}

    @cached_property
    def _answer(self) -> dict[str, str]:
        return dict(self.pairs)

    def answer(self, words: Sequence[str]) -> str | None:
        """Return the answer to the first word; None without words."""
        return self._answer[words[0]] if words else None

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        """Yield the empty prefix, then every word."""
        yield ()
        if longest != 0:
            yield from self.examples()

    def examples(self) -> Iterator[tuple[str, ...]]:
        """Return every word by itself."""
        return ((word,) for word in self.vocabulary)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Return a random word."""
        return (self.vocabulary[int(rng.integers(len(self.vocabulary)))],)


def word_problem(word: str) -> str | None:
    """Return why this can't be a word of a line, or None."""
    if word in (BEGIN, END):
        return f"{word!r} stands for the beginning or the end: choose another name"
    if not word or word.split() != [word] or word.startswith("#"):
        return f"a word has no blanks in it and no # in front, not {word!r}"
    return None


def _problems(rows: Sequence[Located]) -> Iterator[Problem]:
    """Yield every problem of lines that should be a word and its answer."""
    seen: set[str] = set()
    for line, row in rows:
        yield from (Problem(message, line=line) for message in map(word_problem, row) if message)
        if len(row) != 2:
            yield Problem(f"a line pairs one word with one answer; there are {len(row)} words", line=line)
        elif row[0] in seen:
            yield Problem(f"the word {row[0]!r} has an answer already: keep one", line=line)
        seen.add(row[0])
    if not rows:
        yield Problem("there must be at least one word with an answer")


def random_associations(inputs: int, seed: int, *, outputs: int | None = None) -> Associations:
    """Return `inputs` random associations: each word its own answer, in random order, or one of `outputs`.

    >>> random_associations(3, seed=0).injective
    True
    """
    rng = np.random.default_rng(seed)
    if inputs < 1 or (outputs is not None and outputs < 1):
        raise SpecError([f"there must be at least one word and one answer, not {inputs} and {outputs}"])
    drawn = rng.permutation(inputs) if outputs is None else rng.integers(outputs, size=inputs)
    return Associations(tuple((f"x{x}", f"y{y}") for x, y in enumerate(drawn.tolist())))


KIND = Kind(Associations, {".pairs": "words and their answers"})
