"""Sparse averaging: every position points at a few positions; the answer is the mean of the vectors there.

A word has exactly `length` symbols. `2-@3,17` holds the vector -e2 and points at the positions 3 and 17 (the first is
1). Vectors are unit vectors with a sign, and a set of `sparsity` positions is one of those that the task names, or any
at all where it names none. (Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, product
from math import comb
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from vitrify.parameters import Within
from vitrify.spec.tasks.catalogue import Answer, Task, Word

MAX_SYMBOLS = 1 << 16  # pairs of a vector and a set


@dataclass(frozen=True)
class SparseAveraging(Task):
    """The mean of the vectors at the positions that are pointed at.

    >>> SparseAveraging(length=3, sparsity=2, dimensions=1).answers(["1+@1,2", "1+@1,3", "1-@2,3"])
    [(1.0,), (0.0,), (0.0,)]
    """

    name: ClassVar[str] = "sparse-averaging"
    SAMPLES: ClassVar = {
        "sparse averaging": {
            "length": 32,
            "sparsity": 2,
            "dimensions": 2,
            "sets": ("1,2", "3,29", "4,16", "5,6", "7,25", "8,13", "10,31", "12,14", "19,20", "21,32"),
        }
    }
    numeric: ClassVar[bool] = True
    free: ClassVar[bool] = False

    length: Annotated[int, Within(1, 4096)]
    sparsity: Annotated[int, Within(1, 64)]
    dimensions: Annotated[int, Within(1, 64)]
    sets: tuple[str, ...] = ()

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.sparsity > self.length:
            yield "sparsity", f"must be at most length = {self.length}, as a set has no position twice"
            return
        count = len(self.sets) or comb(self.length, self.sparsity)
        if 2 * self.dimensions * count > MAX_SYMBOLS:
            key, many = "sets" if self.sets else "length", f"{count:,} sets with {2 * self.dimensions} vectors"
            yield key, f"must be less: {many} make more than {MAX_SYMBOLS:,} symbols"
        example = _written(range(1, self.sparsity + 1))
        for text in self.sets:
            if not _is_set(text, self.length, self.sparsity):
                each = f"{self.sparsity} positions from 1 to {self.length} in order"
                yield "sets", f"must each be {each}, like {example!r}, one is {text!r}"
        if len({*self.sets}) < len(self.sets):
            twice = next(text for text in self.sets if self.sets.count(text) > 1)
            yield "sets", f"must differ, {twice!r} comes twice"

    @cached_property
    def vectors(self) -> NDArray[np.float64]:
        """Vectors that a position may hold, [vector, dimension]."""
        return signed_units(self.dimensions)

    @cached_property
    def pointers(self) -> tuple[tuple[int, ...], ...]:
        """Sets that may be pointed at."""
        if self.sets:
            return tuple(tuple(map(int, text.split(","))) for text in self.sets)
        return tuple(combinations(range(1, self.length + 1), self.sparsity))

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        """All pairs of a vector and a set."""
        held = [f"{k + 1}{sign}" for k in range(self.dimensions) for sign in "+-"]
        return tuple(f"{vector}@{_written(pointer)}" for vector in held for pointer in self.pointers)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return tuple(f"mean {k + 1}" for k in range(self.dimensions))

    def answers(self, word: Word) -> Sequence[Answer]:
        if len(word) < self.length:
            return [None] * len(word)
        held = np.zeros((self.length + 1, self.dimensions))
        for position, symbol in enumerate(word, start=1):
            vector = symbol.split("@")[0]
            held[position, int(vector[:-1]) - 1] = 1.0 if vector[-1] == "+" else -1.0
        sets = [[*map(int, symbol.split("@")[1].split(","))] for symbol in word]
        return [tuple(row.tolist()) for row in held[np.array(sets)].sum(axis=1) / self.sparsity]

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        return product(self.alphabet, repeat=length) if length == self.length else iter(())

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return random vectors and sets, or a prefix of such a word."""
        return tuple(self.alphabet[i] for i in rng.integers(len(self.alphabet), size=self.length))[:length]


def signed_units(dimensions: int) -> NDArray[np.float64]:
    """Return the unit vectors and their negatives, e1, -e1, e2, …: [vector, dimension]."""
    eye = np.eye(dimensions)
    return np.stack([eye, -eye], axis=1).reshape(-1, dimensions)


def random_sets(length: int, sparsity: int, count: int, seed: int) -> tuple[str, ...]:
    """Return `count` different random sets, as a task names them."""
    rng = np.random.default_rng(seed)
    sets_drawn: dict[str, None] = {}
    while len(sets_drawn) < min(count, comb(length, sparsity)):
        sets_drawn[_written(np.sort(rng.choice(length, sparsity, replace=False)) + 1)] = None
    return tuple(sets_drawn)


def _written(pointer: Sequence[int] | NDArray[np.int64]) -> str:
    return ",".join(map(str, pointer))


def _is_set(text: str, length: int, sparsity: int) -> bool:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        return False
    positions = [*map(int, parts)]
    ordered = all(a < b for a, b in pairwise([0, *positions, length + 1]))
    return ordered and len(positions) == sparsity and text == _written(positions)


TASK = SparseAveraging
