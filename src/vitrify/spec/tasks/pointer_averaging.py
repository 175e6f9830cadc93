"""Sparse averaging with pointers as symbols: the mean of the vectors at any few positions that a word points at.

A word is `positions` vectors, then `queries` groups of `sparsity` different pointers: after `1+ 1- 1+ @1 @3` the answer
is the mean of the vectors at positions 1 and 3 (the first is 1). Every set of positions is a query, which
`sparse-averaging` cannot offer, where each set is a symbol. (Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from vitrify.parameters import Within
from vitrify.spec.tasks.catalogue import Answer, Task, Word
from vitrify.spec.tasks.sparse_averaging import signed_units


@dataclass(frozen=True)
class PointerAveraging(Task):
    """The mean of the vectors at the positions of the last `sparsity` pointers, at the end of every group of them.

    >>> PointerAveraging(positions=3, sparsity=2, dimensions=1, queries=2).answers("1+ 1- 1+ @1 @3 @3 @2".split())
    [None, None, None, None, (1.0,), None, (0.0,)]
    """

    name: ClassVar[str] = "pointer-averaging"
    SAMPLES: ClassVar = {"pointer averaging": {"positions": 40, "sparsity": 3, "dimensions": 2, "queries": 4}}
    numeric: ClassVar[bool] = True
    free: ClassVar[bool] = False

    positions: Annotated[int, Within(1, 65_536)]
    sparsity: Annotated[int, Within(1, 64)]
    dimensions: Annotated[int, Within(1, 64)]
    queries: Annotated[int, Within(1, 4096)] = 1

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.sparsity > self.positions:
            yield "sparsity", f"must be at most positions = {self.positions}, as a set has no position twice"

    @property
    def length(self) -> int:
        """Length of every word."""
        return self.positions + self.queries * self.sparsity

    @cached_property
    def vectors(self) -> NDArray[np.float64]:
        """Vectors that a position may hold, [vector, dimension]."""
        return signed_units(self.dimensions)

    @cached_property
    def held(self) -> tuple[str, ...]:
        """Symbols of the vectors."""
        return tuple(f"{k + 1}{sign}" for k in range(self.dimensions) for sign in "+-")

    @cached_property
    def pointers(self) -> tuple[str, ...]:
        """Symbols of the pointers."""
        return tuple(f"@{position + 1}" for position in range(self.positions))

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (*self.held, *self.pointers)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return tuple(f"mean {k + 1}" for k in range(self.dimensions))

    def answers(self, word: Word) -> Sequence[Answer]:
        numbers = dict(zip(self.held, self.vectors, strict=True))
        rows = np.array([numbers[symbol] for symbol in word[: self.positions]])
        answers: list[Answer] = [None] * len(word)
        for end in range(self.positions + self.sparsity, len(word) + 1, self.sparsity):
            members = [int(symbol[1:]) - 1 for symbol in word[end - self.sparsity : end]]
            answers[end - 1] = tuple((rows[members].sum(axis=0) / self.sparsity).tolist())
        return answers

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        if length != self.length:
            return
        for vectors in product(self.held, repeat=self.positions):
            yield from ((*vectors, *groups) for groups in self._groups(self.queries))

    def _groups(self, count: int) -> Iterator[tuple[str, ...]]:
        """Return all sequences of some groups of pointers, lazily."""
        if not count:
            yield ()
            return
        for first in permutations(self.pointers, self.sparsity):
            yield from ((*first, *rest) for rest in self._groups(count - 1))

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return random vectors and pointers, or a prefix of such a word."""
        vectors = [self.held[i] for i in rng.integers(len(self.held), size=self.positions)]
        groups = [rng.choice(self.positions, self.sparsity, replace=False) for _ in range(self.queries)]
        return (*vectors, *(self.pointers[i] for group in groups for i in group))[:length]


TASK = PointerAveraging
