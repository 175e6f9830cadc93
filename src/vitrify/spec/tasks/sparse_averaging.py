"""Sparse averaging: every position points at a few positions of the word and asks for the mean of the vectors there.

A word has exactly `length` symbols. `2-@3,17` holds the vector -e2 and points at the positions 3 and 17 (the first is
1). Vectors are unit vectors with a sign, and a set of `sparsity` positions is one of those that the task names, or any
at all where it names none. (Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, product
from math import comb
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vitrify.spec.tasks.catalogue import Answer, Task, Within, Word

SYMBOLS = 1 << 16  # a vector and a set each, at most


@dataclass(frozen=True)
class SparseAveraging(Task):
    """The mean of the vectors at the positions that are pointed at.

    >>> SparseAveraging(length=3, sparsity=2, dimensions=1).answers(["1+@1,2", "1+@1,3", "1-@2,3"])
    [(1.0,), (0.0,), (0.0,)]
    """

    name: ClassVar[str] = "sparse-averaging"
    numeric: ClassVar[bool] = True
    free: ClassVar[bool] = False

    length: Annotated[int, Within(1, 4096)]
    sparsity: Annotated[int, Within(1, 64)]
    dimensions: Annotated[int, Within(1, 64)]
    sets: tuple[str, ...] = ()

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        length, sparsity, named = given["length"], given["sparsity"], given["sets"]
        if sparsity > length:
            yield "sparsity", f"sparsity must be at most length = {length}, as a set has no position twice"
            return
        count = len(named) or comb(length, sparsity)
        if 2 * given["dimensions"] * count > SYMBOLS:
            yield (
                "sets" if named else "length",
                f"{count:,} sets with {2 * given['dimensions']} vectors make more than {SYMBOLS:,} symbols: name fewer",
            )
        for text in named:
            if not _is_set(text, length, sparsity):
                yield (
                    "sets",
                    f"each of sets must be {sparsity} positions from 1 to {length} in order, like "
                    f"{_written(range(1, sparsity + 1))!r}, one is {text!r}",
                )
        if len({*named}) < len(named):
            yield "sets", f"sets must differ, {next(text for text in named if named.count(text) > 1)!r} comes twice"

    @cached_property
    def vectors(self) -> NDArray[np.float64]:
        """What a position may hold, [vector, dimension]."""
        eye = np.eye(self.dimensions)
        return np.stack([eye, -eye], axis=1).reshape(-1, self.dimensions)

    @cached_property
    def pointers(self) -> tuple[tuple[int, ...], ...]:
        """The sets that may be pointed at."""
        if self.sets:
            return tuple(tuple(map(int, text.split(","))) for text in self.sets)
        return tuple(combinations(range(1, self.length + 1), self.sparsity))

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        """By vector, and by set."""
        held = [f"{k + 1}{sign}" for k in range(self.dimensions) for sign in "+-"]
        return tuple(f"{vector}@{_written(pointer)}" for vector in held for pointer in self.pointers)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return tuple(f"mean {k + 1}" for k in range(self.dimensions))

    def answers(self, word: Word) -> Sequence[Answer]:
        if len(word) < self.length:
            return [None] * len(word)
        held = np.zeros((self.length + 1, self.dimensions))
        for place, symbol in enumerate(word, start=1):
            vector = symbol.split("@")[0]
            held[place, int(vector[:-1]) - 1] = 1.0 if vector[-1] == "+" else -1.0
        sets = [[*map(int, symbol.split("@")[1].split(","))] for symbol in word]
        return [tuple(row.tolist()) for row in held[np.array(sets)].sum(axis=1) / self.sparsity]

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        return product(self.alphabet, repeat=length) if length == self.length else iter(())

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Random vectors and sets; or the beginning of such a word."""
        return tuple(self.alphabet[i] for i in rng.integers(len(self.alphabet), size=self.length))[:length]


def random_sets(length: int, sparsity: int, count: int, seed: int) -> tuple[str, ...]:
    """So many different random sets, as a task names them."""
    rng = np.random.default_rng(seed)
    found: dict[str, None] = {}
    while len(found) < min(count, comb(length, sparsity)):
        found[_written(np.sort(rng.choice(length, sparsity, replace=False)) + 1)] = None
    return tuple(found)


def _written(pointer: Sequence[int] | NDArray[np.int64]) -> str:
    return ",".join(map(str, pointer))


def _is_set(text: str, length: int, sparsity: int) -> bool:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        return False
    places = [*map(int, parts)]
    ordered = all(a < b for a, b in pairwise([0, *places, length + 1]))
    return ordered and len(places) == sparsity and text == _written(places)


TASK = SparseAveraging
