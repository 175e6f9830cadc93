"""Composition of two functions: their tables, entry by entry in any order, then a query about one argument.

`g3=5` says that g(3) = 5, `f5=0` that f(5) = 0, and after all entries `x=3` asks for f(g(3)). Values are 0 to size - 1,
and both tables are complete. (Peng, Narayanan and Papadimitriou 2024, arXiv 2402.08164.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated, ClassVar

import numpy as np

from vitrify.parameters import Within
from vitrify.spec.tasks.catalogue import Answer, Task, Word


@dataclass(frozen=True)
class Composition(Task):
    """f(g(x)), queried once, at the end.

    >>> Composition(size=2).answers(["g0=1", "f0=0", "f1=0", "g1=1", "x=1"])
    [None, None, None, None, '0']
    """

    name: ClassVar[str] = "composition"
    SAMPLES: ClassVar = {"composition": {"size": 4}}
    free: ClassVar[bool] = False

    size: Annotated[int, Within(1, 512)]  # the alphabet has 2 size² entries, a word 2 size of them

    @property
    def length(self) -> int:
        """Length of every word."""
        return 2 * self.size + 1

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.size)))

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        """All entries of g, by argument and value, then those of f, then the queries."""
        entries = [f"{function}{a}={b}" for function in "gf" for a in self.outputs for b in self.outputs]
        return (*entries, *(f"x={a}" for a in self.outputs))

    def answers(self, word: Word) -> Sequence[Answer]:
        entries = dict(symbol.split("=") for symbol in word if symbol[0] != "x")
        queries = [symbol.split("=")[1] if symbol[0] == "x" else None for symbol in word]
        return [None if x is None else entries["f" + entries["g" + x]] for x in queries]

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        """Yield all pairs of functions and queries, with the entries in the order of the alphabet."""
        if length == self.length:
            for values in product(self.outputs, repeat=2 * self.size):
                for x in self.outputs:
                    yield (*self._entries(values), f"x={x}")

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return random functions, their entries in random order, and a random query; or a prefix of such a word."""
        entries = self._entries([str(value) for value in rng.integers(self.size, size=2 * self.size)])
        return (*(entries[i] for i in rng.permutation(2 * self.size)), f"x={rng.integers(self.size)}")[:length]

    def _entries(self, values: Word) -> list[str]:
        arguments = [f"{function}{a}" for function in "gf" for a in self.outputs]
        return [f"{argument}={value}" for argument, value in zip(arguments, values, strict=True)]


TASK = Composition
