"""Comparison of two words of one length: are they equal, or are they disjoint as sets of positions?

A word is x, then y, then `?`, at which the answer stands. Sets are words of bits: position i is in the set if its bit
is 1. (Bhattamishra, Hahn, Blunsom and Kanade 2024, arXiv 2406.09347.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated, ClassVar, Literal

import numpy as np

from vitrify.parameters import Within
from vitrify.spec.tasks.catalogue import Answer, Task, Word

MAX_DIFFERENCES = 4  # conflicts in a drawn word


@dataclass(frozen=True)
class Comparison(Task):
    """`yes` if x and y are equal, or disjoint.

    >>> Comparison(relation="equality", size=2).answers("0101?")
    [None, None, None, None, 'yes']
    >>> Comparison(relation="disjointness", size=2).answers("0101?")
    [None, None, None, None, 'no']
    """

    name: ClassVar[str] = "comparison"
    SAMPLES: ClassVar = {
        "equality": {"relation": "equality", "size": 8, "symbols": 3},
        "disjointness": {"relation": "disjointness", "size": 12},
    }
    free: ClassVar[bool] = False

    relation: Literal["equality", "disjointness"]
    size: Annotated[int, Within(1, 16_384)]
    symbols: Annotated[int, Within(2, 4096)] = 2

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.relation == "disjointness" and self.symbols != 2:
            yield "symbols", f"must be 2 for sets, whose words are bits, not {self.symbols}"

    @property
    def length(self) -> int:
        """Length of every word."""
        return 2 * self.size + 1

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """Symbols of x and y."""
        return tuple(map(str, range(self.symbols)))

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        return (*self.letters, "?")

    outputs = ("no", "yes")

    def clash(self, x: str, y: str) -> bool:
        """Return whether the symbols of x and y at one position decide that the answer is no."""
        return x != y if self.relation == "equality" else x == y == "1"

    def answers(self, word: Word) -> Sequence[Answer]:
        halves = zip(word[: self.size], word[self.size : 2 * self.size], strict=False)
        answer = self.outputs[not any(self.clash(x, y) for x, y in halves)]
        return [answer if symbol == "?" else None for symbol in word]

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        if length == self.length:
            yield from ((*letters, "?") for letters in product(self.letters, repeat=2 * self.size))

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return a word with no clash, or with a few; or a prefix of such a word."""
        x = rng.integers(self.symbols, size=self.size)
        y = x.copy() if self.relation == "equality" else rng.integers(2, size=self.size) * (1 - x)
        clashes = rng.permutation(self.size)[: int(rng.integers(2) * rng.integers(1, MAX_DIFFERENCES + 1))]
        if self.relation == "equality":
            y[clashes] = (x[clashes] + rng.integers(1, self.symbols, size=len(clashes))) % self.symbols
        else:
            x[clashes] = y[clashes] = 1
        return (*(self.letters[i] for i in (*x, *y)), "?")[:length]


TASK = Comparison
