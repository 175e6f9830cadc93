r"""Bounded Dyck languages: well-nested brackets of several kinds, up to a depth; `.dyck` files.

    # round and square brackets
    brackets: ( ) [ ]
    depth: 3
    length: 20

`brackets` lists pairs, each opening bracket with its closing one. The language holds every word in which brackets
close in the right order and at most `depth` are open at once; its words may be of any length. By default a network
reads up to `length` brackets; random test words are about as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from vitrify.spec.formats.headed import Header
from vitrify.spec.formats.text import lines_of, refuse_any
from vitrify.spec.kinds import ANSWERS, Kind, Meaning, PrefixStates, Spec, at_every_prefix, prefixes_by_length
from vitrify.spec.ngrams.model import BEGIN, END

HEADER = ("brackets", "depth", "length")
MAX_SIZE = 10**9  # of a depth or length


@dataclass(frozen=True)
class Dyck(Spec):
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
        refuse_any(problems)

    @classmethod
    def of(cls, brackets: str | Iterable[str], depth: int, length: int) -> Dyck:
        """Return the language of brackets listed in pairs, opening before closing (a string is split at blanks)."""
        listed = brackets.split() if isinstance(brackets, str) else list(brackets)
        refuse_any(_problems(listed))
        return cls(tuple(zip(listed[::2], listed[1::2], strict=True)), depth, length)

    @classmethod
    def of_kinds(cls, kinds: int, depth: int, length: int) -> Dyck:
        """Return the language of `kinds` kinds of brackets, called (1 )1 (2 )2 and so on."""
        return cls(tuple((f"({kind}", f"){kind}") for kind in range(1, kinds + 1)), depth, length)

    @classmethod
    def read(cls, path: str | Path) -> Dyck:
        header = Header(lines_of(path, cls.suffix), HEADER, str(path))
        header.refuse_others("a line must say 'brackets: …', 'depth: …' or 'length: …'")
        depth, length = (header.number(key, MAX_SIZE) for key in ("depth", "length"))
        brackets = header.words("brackets")
        header.report("brackets", _problems(brackets))
        refuse_any(header.problems)
        return cls.of(brackets, depth, length)

    def to_text(self) -> str:
        return f"brackets: {' '.join(self.vocabulary)}\ndepth: {self.depth}\nlength: {self.length}\n"

    @classmethod
    def samples(cls) -> dict[str, Dyck]:
        return {"three kinds": cls.of("( ) [ ] { }", depth=3, length=12), "one kind": cls.of("a b", depth=1, length=12)}

    # Meaning

    def meanings(self) -> dict[str, Meaning]:
        """Return two tasks: the set of brackets that may come next, and whether a word is in the language."""
        states, after = PrefixStates((), self._stack_after), at_every_prefix(self.next_words)
        brackets = Meaning("set", self.vocabulary, (*self.vocabulary, END), after, self, states=states)
        member = Meaning("symbol", self.vocabulary, ANSWERS, lambda w: (ANSWERS[self.holds(w)],) * (len(w) + 1))
        return {"next": brackets, "class": member}

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All brackets, each opening one before its closing one."""
        return tuple(bracket for pair in self.brackets for bracket in pair)

    @cached_property
    def _closing(self) -> dict[str, str]:
        return dict(self.brackets)

    def stack(self, words: Sequence[str]) -> tuple[str, ...] | None:
        """Return the brackets that must still close, the next one last; None after an illegal prefix."""
        waiting: tuple[str, ...] | None = ()
        for word in words:
            waiting = None if waiting is None else self._stack_after(waiting, word)
        return waiting

    def _stack_after(self, waiting: tuple[str, ...], bracket: str) -> tuple[str, ...] | None:
        """Return the stack after one more bracket; None if that is illegal."""
        if bracket in self._closing:
            return (*waiting, self._closing[bracket]) if len(waiting) < self.depth else None
        return waiting[:-1] if waiting and waiting[-1] == bracket else None

    def holds(self, words: Sequence[str]) -> bool:
        """Return True if a word is in the language."""
        return self.stack(words) == ()

    def next_words(self, history: Sequence[str]) -> frozenset[str]:
        """Return the brackets that may come next, with `</s>` where a word may end; empty after an illegal prefix.

        A prefix is illegal if no word of the language begins with it: a bracket closes out of order, or more than
        `depth` are open. Networks do not detect this, and certificates do not cover it: they then output a set that
        means nothing.
        """
        waiting = self.stack(history)
        if waiting is None:
            return frozenset()
        opening = self._closing if len(waiting) < self.depth else ()
        return frozenset([*opening, waiting[-1] if waiting else END])

    # Test cases

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        index = {word: number for number, word in enumerate(self.vocabulary)}
        return prefixes_by_length(lambda words: sorted(self.next_words(words) - {END}, key=index.__getitem__), longest)

    def examples(self) -> Iterator[tuple[str, ...]]:
        """Yield words in which each kind of bracket stays open at each depth, around a long sequence of others.

        The sequence consists of adjacent pairs, or of nested brackets up to the full depth.
        """
        kinds = len(self.brackets)
        for number in range(kinds):
            for depth in range(1, self.depth + 1):
                chain = [self.brackets[(number + d) % kinds] for d in range(depth - 1, -1, -1)]
                remaining = self.length - 2 * depth
                for height in dict.fromkeys((min(1, self.depth - depth), self.depth - depth)):
                    tower = [self.brackets[(number + 1 + d) % kinds] for d in range(height)]
                    turns = max(remaining, 0) // (2 * height) if height else 0
                    yield _around(chain, _around(tower, ()) * turns)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Return a random word, with its own random probability of opening.

        With probability 1/2 all brackets close within `length`, so that a network can read the word to its end; else
        they close beyond it.
        """
        words: list[str] = []
        waiting: list[str] = []
        p_open = float(rng.uniform(0.3, 0.9))
        beyond = self.depth * int(rng.integers(2))
        while len(words) < self.length and len(words) + len(waiting) < self.length + beyond:
            may_open = len(waiting) < self.depth and len(words) + len(waiting) + 2 <= self.length + beyond
            if may_open and (not waiting or rng.random() < p_open):
                opening, closing = self.brackets[int(rng.integers(len(self.brackets)))]
                words.append(opening)
                waiting.append(closing)
            elif waiting:
                words.append(waiting.pop())
            else:
                break
        return (*words, *reversed(waiting))


def _around(pairs: Sequence[tuple[str, str]], words: Sequence[str]) -> tuple[str, ...]:
    return (*(opening for opening, _ in pairs), *words, *(closing for _, closing in reversed(pairs)))


def _problems(brackets: Sequence[str]) -> Iterator[str]:
    if not brackets or len(brackets) % 2:
        yield f"brackets come in pairs, an opening one and its closing one; there are {len(brackets)}"
    for bracket in dict.fromkeys(brackets):
        if brackets.count(bracket) > 1:
            yield f"the bracket {bracket!r} is listed {brackets.count(bracket)} times: each has one meaning"
        if bracket in (BEGIN, END):
            yield f"{bracket!r} stands for the beginning or the end: choose another name"
        if not bracket or bracket.split() != [bracket]:
            yield f"a bracket is a word without blanks, not {bracket!r}"


KIND = Kind(Dyck, {".dyck": "well-nested brackets of bounded depth"})
