"""Facts: subject–relation–answer triples, queried by sentences that name subject and relation; `.facts` files.

    # two relations
    fillers: the of is
    length: 6
    France  capital   Paris
    France  currency  euro
    Japan   capital   Tokyo

Every line is a subject, a relation and the answer. A sentence has one subject and one relation of a fact, in either
order, and any number of fillers around them; from the word on that completes the query, its answer is expected.
`length` is the length of random sentences, and of the longest sentence that a network reads by default; if it is left
out, 2 without fillers, else 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from vitrify.spec.formats.headed import Header
from vitrify.spec.formats.text import Problem, SpecError, lines_of, refuse_any
from vitrify.spec.kinds import Kind, Meaning, Spec, at_every_prefix, prefixes_by_length
from vitrify.spec.memory.associations import Located, word_problem

HEADER = ("fillers", "length")
SETTINGS = [f"{key}:" for key in HEADER]
MAX_LENGTH = 10**9  # words of a sentence
DEFAULT_LENGTH = 8  # words of a sentence with fillers
Fact = tuple[str, str, str]


@dataclass(frozen=True)
class Facts(Spec):
    """Subjects, relations and answers.

    >>> spec = Facts((("France", "capital", "Paris"), ("France", "currency", "euro")), fillers=("the", "of"))
    >>> spec.answer("the capital of France".split()), spec.answer("the capital".split()), spec.length
    ('Paris', None, 8)
    """

    facts: tuple[Fact, ...]
    fillers: tuple[str, ...] = ()
    length: int = 0
    suffix: ClassVar[str] = ".facts"

    def __post_init__(self) -> None:
        if not self.length:
            object.__setattr__(self, "length", DEFAULT_LENGTH if self.fillers else 2)
        problems = list(_problems([(None, fact) for fact in self.facts], (None, self.fillers)))
        if self.length < 2:
            problems.append(Problem(f"the length must be a whole number from 2, is {self.length}"))
        refuse_any(problems)

    @classmethod
    def read(cls, path: str | Path) -> Facts:
        header = Header(lines_of(path, cls.suffix), (), str(path), optional=HEADER)
        rows = [(number, line.split()) for number, line in header.others]
        fillers, length = header.words("fillers"), header.number("length", MAX_LENGTH, minimum=2)
        problems = _problems(rows, (header.entries.get("fillers", (None,))[0], fillers))
        refuse_any([*header.problems, *(replace(problem, file=str(path)) for problem in problems)])
        return cls(tuple((s, r, a) for _, (s, r, a) in rows), fillers, length if "length" in header.entries else 0)

    def to_text(self) -> str:
        rows = [["fillers:", *self.fillers]] if self.fillers else []
        rows += [["length:", str(self.length)], *map(list, self.facts)]
        return "".join(" ".join(row) + "\n" for row in rows)

    @classmethod
    def samples(cls) -> dict[str, Facts]:
        return {"random": random_facts(4, 3, 2, seed=0, fillers=2), "two facts": random_facts(2, 1, 1, seed=1)}

    # Words

    @cached_property
    def subjects(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(subject for subject, _, _ in self.facts))

    @cached_property
    def relations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(relation for _, relation, _ in self.facts))

    @cached_property
    def answers(self) -> tuple[str, ...]:
        """All answers, in the order of first mention."""
        return tuple(dict.fromkeys(answer for _, _, answer in self.facts))

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All words of sentences: subjects, relations, fillers."""
        return (*self.subjects, *self.relations, *self.fillers)

    # Meaning

    def meanings(self) -> dict[str, Meaning]:
        """Return the task: the answer to the query in a sentence."""
        return {"class": Meaning("symbol", self.vocabulary, self.answers, at_every_prefix(self.answer), self)}

    @cached_property
    def _answer(self) -> dict[frozenset[str], str]:
        return {frozenset((subject, relation)): answer for subject, relation, answer in self.facts}

    def answer(self, words: Sequence[str]) -> str | None:
        """Return the answer to the query in some words; None without a query, or with more than one."""
        named = [word for word in words if word not in self.fillers]
        return self._answer.get(frozenset(named)) if len(named) == 2 else None

    def _following(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the words that may come next in a sentence."""
        named = [word for word in words if word not in self.fillers]
        if len(named) < 2:
            candidates = (*self.subjects, *self.relations)
            yield from (w for w in candidates if not named or frozenset((*named, w)) in self._answer)
        yield from self.fillers

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        return prefixes_by_length(self._following, self.length if longest is None else longest)

    def examples(self) -> Iterator[tuple[str, ...]]:
        """Yield every fact in either order: first, at both ends, and at the end of a sentence of full length."""
        filled = [self.fillers[index % len(self.fillers)] for index in range(self.length - 2)] if self.fillers else []
        for subject, relation, _ in self.facts:
            for first, second in ((subject, relation), (relation, subject)):
                yield (first, second, *filled)
                if filled:
                    yield (first, *filled, second)
                    yield (*filled, first, second)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Return a random fact in random order, at random positions among random fillers."""
        query = list(self.facts[int(rng.integers(len(self.facts)))][:2])
        if rng.integers(2):
            query.reverse()
        if not self.fillers:
            return tuple(query)
        words = [self.fillers[i] for i in rng.integers(len(self.fillers), size=self.length).tolist()]
        for position, word in zip(sorted(rng.choice(self.length, size=2, replace=False).tolist()), query, strict=True):
            words[position] = word
        return tuple(words)


def _problems(rows: Sequence[Located], fillers: Located) -> Iterator[Problem]:
    """Yield every problem of lines that should be facts, and of the fillers."""
    role: dict[str, str] = {}
    for line, row in [*rows, fillers]:
        for word in row:
            settings = f"{word!r} begins a line of settings: choose another name"
            if message := settings if word in SETTINGS else word_problem(word):
                yield Problem(message, line=line)
    for word in fillers[1]:
        if word in role:
            yield Problem(f"the filler {word!r} is listed more than once", line=fillers[0])
        role[word] = "filler"
    known: set[tuple[str, str]] = set()
    for line, row in rows:
        if len(row) != 3:
            yield Problem(f"a line is a subject, a relation and an answer; there are {len(row)} words", line=line)
            continue
        for word, wanted in zip(row, ("subject", "relation"), strict=False):
            other = role.setdefault(word, wanted)
            if other != wanted:
                yield Problem(f"{word!r} is a {wanted} here and a {other} elsewhere: rename one", line=line)
        if (row[0], row[1]) in known:
            yield Problem(f"the {row[1]!r} of {row[0]!r} has an answer already: keep one", line=line)
        known.add((row[0], row[1]))
    if not rows:
        yield Problem("there must be at least one fact")


def random_facts(subjects: int, relations: int, answers: int, seed: int, *, fillers: int = 0, length: int = 0) -> Facts:
    """Return facts for every relation of every subject; each relation has `answers` answers of its own.

    >>> spec = random_facts(3, 2, 4, seed=0)
    >>> len(spec.facts), len(spec.vocabulary)
    (6, 5)
    """
    if min(subjects, relations, answers) < 1:
        raise SpecError([f"there must be a subject, a relation and an answer, not {subjects}, {relations}, {answers}"])
    drawn = np.random.default_rng(seed).integers(answers, size=(subjects, relations)).tolist()
    return Facts(
        tuple((f"s{s}", f"r{r}", f"a{r}.{a}") for s, row in enumerate(drawn) for r, a in enumerate(row)),
        tuple(f"f{number}" for number in range(fillers)),
        length,
    )


def answers_by_relation(spec: Facts) -> dict[str, tuple[str, ...]]:
    """Return the answers of each relation, in the order of first mention."""
    return {r: tuple(dict.fromkeys(a for _, of, a in spec.facts if of == r)) for r in spec.relations}


KIND = Kind(Facts, {".facts": "subjects, relations and answers"})
