r"""Copying: a text, separators, and the text once more, symbol by symbol.

A word is a text $x_1 \dots x_L$, `gram` separators `|`, and the text again. From the last separator on, the answer is
the symbol that comes next, and at the end `|`. Copying by look-up finds the last `gram` symbols in the text, so no
n-gram of this length may occur twice in it; the separators stand for the beginning of the text. (Jelassi et al. 2024,
arXiv 2402.01032.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from vitrify.parameters import Within
from vitrify.spec.tasks.catalogue import MAX_SIZE, Answer, Task, Word, letters

SEPARATOR = "|"
TOUR_FRACTION = 4  # texts with more than 1/4 of all n-grams are parts of Eulerian tours


@dataclass(frozen=True)
class Copying(Task):
    """The next symbol of a text of at most `size` symbols in which no n-gram of `gram` symbols occurs twice.

    >>> Copying(symbols=2, size=3, gram=2).answers("aab||aab")
    [None, None, None, None, 'a', 'a', 'b', '|']
    """

    name: ClassVar[str] = "copying"
    SAMPLES: ClassVar = {"copying": {"symbols": 4, "size": 12, "gram": 3}}
    free: ClassVar[bool] = False

    symbols: Annotated[int, Within(1, MAX_SIZE)]
    size: Annotated[int, Within(1, MAX_SIZE)]
    gram: Annotated[int, Within(1, 64)]

    def conflicts(self) -> Iterator[tuple[str, str]]:
        longest = self.symbols**self.gram + self.gram - 1
        if self.size > longest:
            yield "size", f"must be at most {longest}, as longer texts repeat a run, not {self.size}"

    @property
    def length(self) -> int:
        """Length of the longest text, the separators and the copy."""
        return 2 * self.size + self.gram

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """Symbols of texts."""
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

    def word(self, text: Sequence[str]) -> tuple[str, ...]:
        """Return the text, the separators, and its copy."""
        return (*text, *[SEPARATOR] * self.gram, *text)

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        size, odd = divmod(length - self.gram, 2)
        if size > 0 and not odd:
            yield from map(self.word, self._texts(size, lambda: self.letters))

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return a text as long as the length allows, drawn symbol by symbol with backtracking where it would repeat.

        Backtracking would take too long for texts with many of all n-grams; these are parts of a tour of all n-grams.
        """
        size = min(self.size, max(1, (length - self.gram) // 2))
        if TOUR_FRACTION * size > self.symbols**self.gram:
            return self.word(self._tour(rng)[:size])[:length]
        text = next(self._texts(size, lambda: [self.letters[i] for i in rng.permutation(self.symbols)]))
        return self.word(text)[:length]

    def _tour(self, rng: np.random.Generator) -> list[str]:
        """Return a random text with every n-gram once: a random Eulerian tour of the de Bruijn graph.

        The walk continues while it can; then it goes back and inserts detours over unused edges.
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
        """Yield all texts of a size without repeats, in the order of the choices for each position."""
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
