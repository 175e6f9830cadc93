"""Facts: what a relation of a subject is, asked for in sentences that name both; `.facts` files.

    # two relations
    fillers: the of is
    length: 6
    France  capital   Paris
    France  currency  euro
    Japan   capital   Tokyo

Every line is a subject, a relation and the answer. A sentence has one subject and one relation of a fact, in either
order, and any number of fillers around them; from the word on that completes the question, its answer is asked for.
`length` says how long sentences are drawn, and that a network reads unless it is told otherwise; 2 without fillers,
else 8, unless it is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from vitrify.errors import Problem, SpecError
from vitrify.spec.associations import Located, word_problem
from vitrify.spec.beginnings import beginnings
from vitrify.spec.display import Displayed
from vitrify.spec.files import lines_of, refuse_any, refuse_suffix

HEADER = ("fillers:", "length:")
USUAL_LENGTH = 8
Fact = tuple[str, str, str]


@dataclass(frozen=True)
class Facts(Displayed):
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
            object.__setattr__(self, "length", USUAL_LENGTH if self.fillers else 2)
        refuse_any(_problems([(None, fact) for fact in self.facts], (None, self.fillers), (None, [str(self.length)])))

    @classmethod
    def read(cls, path: str | Path) -> Facts:
        """The facts of a `.facts` file."""
        path = Path(path)
        if not path.name.endswith(cls.suffix):
            raise refuse_suffix(path, cls.suffix)
        said: dict[str, Located] = {}
        rows, problems = [], []
        for number, line in lines_of(path):
            key, *words = line.split()
            if key in said:
                problems.append(Problem(f"'{key}' is said twice: keep one", line=number))
            elif key in HEADER:
                said[key] = (number, words)
            else:
                rows.append((number, [key, *words]))
        fillers, length = said.get("fillers:", (None, [])), said.get("length:")
        problems += _problems(rows, fillers, length or (None, ["2"]))
        refuse_any(Problem(problem.message, str(path), problem.line) for problem in problems)
        return cls(tuple((s, r, a) for _, (s, r, a) in rows), tuple(fillers[1]), int(length[1][0]) if length else 0)

    def write(self, path: str | Path) -> None:
        """Write a `.facts` file that reads back as this value."""
        rows = [["fillers:", *self.fillers]] if self.fillers else []
        rows += [["length:", str(self.length)], *map(list, self.facts)]
        text = "".join(" ".join(row) + "\n" for row in rows)
        Path(path).write_text(text, encoding="utf-8", newline="\n")

    # What it is

    @cached_property
    def subjects(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(subject for subject, _, _ in self.facts))

    @cached_property
    def relations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(relation for _, relation, _ in self.facts))

    @cached_property
    def answers(self) -> tuple[str, ...]:
        """All answers, in the order of their first mention."""
        return tuple(dict.fromkeys(answer for _, _, answer in self.facts))

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All words that sentences are made of: subjects, relations, fillers."""
        return (*self.subjects, *self.relations, *self.fillers)

    # What it means

    @cached_property
    def _answer(self) -> dict[frozenset[str], str]:
        return {frozenset((subject, relation)): answer for subject, relation, answer in self.facts}

    def answer(self, words: Sequence[str]) -> str | None:
        """The answer to the question that some words ask; None where they ask none, or more than one."""
        named = [word for word in words if word not in self.fillers]
        return self._answer.get(frozenset(named)) if len(named) == 2 else None

    def _following(self, words: Sequence[str]) -> Iterator[str]:
        """The words that may come next in a sentence."""
        named = [word for word in words if word not in self.fillers]
        if len(named) < 2:
            asked = (*self.subjects, *self.relations)
            yield from (w for w in asked if not named or frozenset((*named, w)) in self._answer)
        yield from self.fillers

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        """Every beginning of a sentence once, short ones first, each made when it is asked for."""
        return beginnings(self._following, self.length if longest is None else longest)

    def examples(self) -> Iterator[tuple[str, ...]]:
        """Every fact in either order: at once, at the two ends, and at the end of a sentence of full length."""
        filled = [self.fillers[place % len(self.fillers)] for place in range(self.length - 2)] if self.fillers else []
        for subject, relation, _ in self.facts:
            for first, second in ((subject, relation), (relation, subject)):
                yield (first, second, *filled)
                if filled:
                    yield (first, *filled, second)
                    yield (*filled, first, second)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        """A random fact in random order, at random places among random fillers."""
        asked = list(self.facts[int(rng.integers(len(self.facts)))][:2])
        if rng.integers(2):
            asked.reverse()
        if not self.fillers:
            return tuple(asked)
        words = [self.fillers[i] for i in rng.integers(len(self.fillers), size=self.length).tolist()]
        for place, word in zip(sorted(rng.choice(self.length, size=2, replace=False).tolist()), asked, strict=True):
            words[place] = word
        return tuple(words)


def _problems(rows: Sequence[Located], fillers: Located, length: Located) -> Iterator[Problem]:
    """Every broken rule of rows that should be facts, of the fillers and of the length."""
    at, said = length
    if len(said) != 1 or not said[0].isdecimal() or int(said[0]) < 2:
        yield Problem(f"the length must be one whole number from 2, is {' '.join(said)!r}", line=at)
    role: dict[str, str] = {}
    for line, row in [*rows, fillers]:
        yield from (Problem(found, line=line) for found in map(_word_problem, row) if found)
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
            found = role.setdefault(word, wanted)
            if found != wanted:
                yield Problem(f"{word!r} is a {wanted} here and a {found} elsewhere: call one otherwise", line=line)
        if (row[0], row[1]) in known:
            yield Problem(f"the {row[1]!r} of {row[0]!r} has an answer already: keep one", line=line)
        known.add((row[0], row[1]))
    if not rows:
        yield Problem("there must be at least one fact")


def _word_problem(word: str) -> str | None:
    return f"{word!r} begins a line of settings: call it otherwise" if word in HEADER else word_problem(word)


def random_facts(subjects: int, relations: int, answers: int, seed: int, *, fillers: int = 0, length: int = 0) -> Facts:
    """Every relation of every subject, drawn from so many answers that are this relation's own.

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
    """The answers that each relation gives, in the order of their first mention."""
    return {r: tuple(dict.fromkeys(a for _, of, a in spec.facts if of == r)) for r in spec.relations}
