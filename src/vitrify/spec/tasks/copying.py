r"""Copying: a text, separators, and the text once more, symbol by symbol.

A word is a text $x_1 \dots x_L$, `gram` separators `|`, and the text again. From the last separator on, the answer is
the symbol that comes next, and at the end `|`. Copying by look-up finds the last `gram` symbols in the text, so no run
of so many symbols may occur twice in it; as many separators stand for the beginning of the text. (Jelassi et al. 2024,
arXiv 2402.01032.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from vitrify.spec.tasks.catalogue import MANY, Answer, Task, Within, Word, letters

SEPARATOR = "|"
TOURED = 4  # texts with more than a fourth of all runs are parts of tours


@dataclass(frozen=True)
class Copying(Task):
    """The next symbol of a text of at most `size` symbols in which no run of `gram` of them comes twice.

    >>> Copying(symbols=2, size=3, gram=2).answers("aab||aab")
    [None, None, None, None, 'a', 'a', 'b', '|']
    """

    name: ClassVar[str] = "copying"
    free: ClassVar[bool] = False

    symbols: Annotated[int, Within(1, MANY)]
    size: Annotated[int, Within(1, MANY)]
    gram: Annotated[int, Within(1, 64)]

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        longest = given["symbols"] ** given["gram"] + given["gram"] - 1
        if given["size"] > longest:
            yield "size", f"size must be at most {longest}, as longer texts repeat a run, is {given['size']}"

    @property
    def length(self) -> int:
        """The longest text, the separators and the copy."""
        return 2 * self.size + self.gram

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """The symbols of texts."""
        return letters(self.symbols)

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        return (SEPARATOR, *self.letters)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return self.alphabet

    def answers(self, word: Word) -> Sequence[Answer]:
        text = list(word[: list(word).index(SEPARATOR)]) if SEPARATOR in word else list(word)
        silent = len(text) + self.gram - 1
        return ([None] * silent + text + [SEPARATOR])[: len(word)]

    def repeats(self, text: Sequence[str]) -> bool:
        """Whether a run of `gram` symbols comes twice in a text."""
        runs = [tuple(text[at : at + self.gram]) for at in range(len(text) - self.gram + 1)]
        return len(set(runs)) < len(runs)

    def word(self, text: Sequence[str]) -> tuple[str, ...]:
        """The text, the separators, and its copy."""
        return (*text, *[SEPARATOR] * self.gram, *text)

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        size, odd = divmod(length - self.gram, 2)
        if size > 0 and not odd:
            yield from map(self.word, self._texts(size, lambda: self.letters))

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """A text that is as long as the length allows, drawn symbol by symbol and taken back where it would repeat.

        One that needs many of all runs would be taken back for ever; it is a part of a tour of all runs.
        """
        size = min(self.size, max(1, (length - self.gram) // 2))
        if TOURED * size > self.symbols**self.gram:
            return self.word(self._tour(rng)[:size])[:length]
        text = next(self._texts(size, lambda: [self.letters[i] for i in rng.permutation(self.symbols)]))
        return self.word(text)[:length]

    def _tour(self, rng: np.random.Generator) -> list[str]:
        """A random text with every run once: runs lead from all but their last symbol to all but their first.

        It walks while it can, and where it can't it goes back and inserts what is left on the way.
        """
        ways: dict[tuple[str, ...], list[str]] = {}
        start = tuple(self.letters[i] for i in rng.integers(self.symbols, size=self.gram - 1))
        walk, tour = [(start, "")], []
        while walk:
            here = walk[-1][0]
            if here not in ways:
                ways[here] = [self.letters[i] for i in rng.permutation(self.symbols)]
            if ways[here]:
                letter = ways[here].pop()
                walk.append(((*here, letter)[1:], letter))
            else:
                tour.append(walk.pop()[1])
        return [*start, *tour[-2::-1]]

    def _texts(self, size: int, choices: Callable[[], Iterable[str]]) -> Iterator[tuple[str, ...]]:
        """All texts of a size without repeats, in the order in which the choices for each place come."""
        text: list[str] = []
        seen: set[tuple[str, ...]] = set()
        waiting = [iter(choices())]
        while waiting:
            letter = next(waiting[-1], None)
            if letter is None:  # nothing is left to try here: take the last symbol back
                seen.discard(tuple(text[-self.gram :]))
                waiting.pop()
                text = text[:-1]
                continue
            run = (*text[max(0, len(text) + 1 - self.gram) :], letter)
            if run in seen:
                continue
            if len(text) + 1 == size:
                yield (*text, letter)
                continue
            text.append(letter)
            waiting.append(iter(choices()))
            if len(run) == self.gram:
                seen.add(run)


TASK = Copying
