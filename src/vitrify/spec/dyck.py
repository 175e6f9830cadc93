r"""Bounded Dyck languages: well-nested brackets of several kinds, at most so deep; `.dyck` files.

    # round and square brackets
    brackets: ( ) [ ]
    depth: 3
    length: 20

`brackets` lists pairs, each opening bracket with its closing one. The language holds every word in which brackets
close in the right order and at most `depth` are open at once; its words may be of any length. `length` says how long
the beginnings are that are asked about and drawn, and that a network reads unless it is told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from vitrify.errors import Problem, SpecError
from vitrify.spec.beginnings import beginnings
from vitrify.spec.display import Displayed
from vitrify.spec.files import lines_of, refuse_any, refuse_suffix
from vitrify.spec.headed import Header
from vitrify.spec.ngram import BEGIN, END

HEADER = ("brackets", "depth", "length")
MOST = 10**9  # of a depth or length
ANSWERS = ("no", "yes")  # to the question whether a word is in the language


@dataclass(frozen=True)
class Dyck(Displayed):
    """Well-nested words over pairs of brackets, at most `depth` of them open at once.

    >>> spec = Dyck.of("( ) [ ]", depth=2, length=20)
    >>> sorted(spec.next_words("([")), spec.holds("([])"), spec.holds("([)]")
    ([']'], True, False)
    """

    brackets: tuple[tuple[str, str], ...]
    depth: int
    length: int
    suffix: ClassVar[str] = ".dyck"

    def __post_init__(self) -> None:
        problems = list(_problems([b for pair in self.brackets for b in pair]))
        problems += [
            f"the {key} must be a whole number from 1, is {value!r}"
            for key, value in (("depth", self.depth), ("length", self.length))
            if value < 1
        ]
        if problems:
            raise SpecError(problems)

    @classmethod
    def of(cls, brackets: str | Iterable[str], depth: int, length: int) -> Dyck:
        """From brackets in a row, each opening one before its closing one (a string is split at blanks)."""
        listed = brackets.split() if isinstance(brackets, str) else list(brackets)
        problems = list(_problems(listed))
        if problems:
            raise SpecError(problems)
        return cls(tuple(zip(listed[::2], listed[1::2], strict=True)), depth, length)

    @classmethod
    def of_kinds(cls, kinds: int, depth: int, length: int) -> Dyck:
        """The language of so many kinds of brackets, called (1 )1 (2 )2 and so on."""
        return cls(tuple((f"({kind}", f"){kind}") for kind in range(1, kinds + 1)), depth, length)

    @classmethod
    def read(cls, path: str | Path) -> Dyck:
        """The language of a `.dyck` file."""
        path = Path(path)
        if not path.name.endswith(cls.suffix):
            raise refuse_suffix(path, cls.suffix)
        problems: list[Problem] = []
        header = Header(lines_of(path), HEADER, str(path), problems)
        for number, _ in header.others:
            problems.append(Problem("a line must say 'brackets: …', 'depth: …' or 'length: …'", str(path), number))
        depth, length = (header.number(key, MOST) for key in ("depth", "length"))
        number, listed = header.said.get("brackets", (0, ""))
        if "brackets" in header.said:
            problems += [Problem(message, str(path), number) for message in _problems(listed.split())]
        refuse_any(problems)
        return cls.of(listed, depth, length)

    def write(self, path: str | Path) -> None:
        """Write a `.dyck` file that reads back as this value."""
        text = f"brackets: {' '.join(self.vocabulary)}\ndepth: {self.depth}\nlength: {self.length}\n"
        Path(path).write_text(text, encoding="utf-8", newline="\n")

    # What it means

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All brackets, each opening one before its closing one."""
        return tuple(bracket for pair in self.brackets for bracket in pair)

    @cached_property
    def _closing(self) -> dict[str, str]:
        return dict(self.brackets)

    def stack(self, words: Sequence[str]) -> tuple[str, ...] | None:
        """The brackets that still have to close after some words, the next one last; None where nothing can follow."""
        waiting: list[str] = []
        for word in words:
            if word in self._closing:
                waiting.append(self._closing[word])
                if len(waiting) > self.depth:
                    return None
            elif not waiting or waiting.pop() != word:
                return None
        return tuple(waiting)

    def holds(self, words: Sequence[str]) -> bool:
        """Whether a word is in the language."""
        return self.stack(words) == ()

    def next_words(self, history: Sequence[str]) -> frozenset[str]:
        """The brackets that may come next, with `</s>` where a word may end; none if no word begins like this."""
        waiting = self.stack(history)
        return frozenset() if waiting is None else self._following(waiting)

    def next_words_along(self, sentence: Sequence[str]) -> tuple[frozenset[str], ...]:
        """The brackets that may come after each beginning, from the empty one to the whole."""
        return tuple(self.next_words(sentence[:place]) for place in range(len(sentence) + 1))

    def _following(self, waiting: Sequence[str]) -> frozenset[str]:
        opening = self._closing if len(waiting) < self.depth else ()
        return frozenset([*opening, waiting[-1] if waiting else END])

    # Words of it

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        """Every beginning of a word once, short ones first, each made when it is asked for."""
        place = {word: number for number, word in enumerate(self.vocabulary)}
        return beginnings(lambda words: sorted(self.next_words(words) - {END}, key=place.__getitem__), longest)

    def examples(self) -> Iterator[tuple[str, ...]]:
        """Words in which each kind of bracket waits at each depth, through a long row of the others.

        A row is of pairs next to each other, or of towers up to the full depth.
        """
        kinds = len(self.brackets)
        for number in range(kinds):
            for depth in range(1, self.depth + 1):
                chain = [self.brackets[(number + d) % kinds] for d in range(depth - 1, -1, -1)]
                room = self.length - 2 * depth
                for height in dict.fromkeys((min(1, self.depth - depth), self.depth - depth)):
                    tower = [self.brackets[(number + 1 + d) % kinds] for d in range(height)]
                    turns = max(room, 0) // (2 * height) if height else 0
                    yield (*_opened(chain), *((*_opened(tower), *_closed(tower)) * turns), *_closed(chain))

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        """A random word: opens as often as a number drawn for it says.

        Every other one closes within the length, so that it can be read as a whole; the others close beyond it.
        """
        words: list[str] = []
        waiting: list[str] = []
        often = float(rng.uniform(0.3, 0.9))
        beyond = self.depth * int(rng.integers(2))
        while len(words) < self.length and len(words) + len(waiting) < self.length + beyond:
            room = len(waiting) < self.depth and len(words) + len(waiting) + 2 <= self.length + beyond
            if room and (not waiting or rng.random() < often):
                opening, closing = self.brackets[int(rng.integers(len(self.brackets)))]
                words.append(opening)
                waiting.append(closing)
            elif waiting:
                words.append(waiting.pop())
            else:
                break
        return (*words, *reversed(waiting))


def _opened(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [opening for opening, _ in pairs]


def _closed(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [closing for _, closing in reversed(pairs)]


def _problems(brackets: Sequence[str]) -> Iterator[str]:
    """Every broken rule of a row of brackets."""
    if not brackets or len(brackets) % 2:
        yield f"brackets come in pairs, an opening one and its closing one; there are {len(brackets)}"
    for bracket in dict.fromkeys(brackets):
        if brackets.count(bracket) > 1:
            yield f"the bracket {bracket!r} is listed {brackets.count(bracket)} times: each has one meaning"
        if bracket in (BEGIN, END):
            yield f"{bracket!r} stands for the beginning or the end: call the bracket otherwise"
        if not bracket or bracket.split() != [bracket]:
            yield f"a bracket is a word without blanks, not {bracket!r}"
