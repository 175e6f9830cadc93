"""Composition of two functions: their tables, entry by entry in any order, then a question about one argument.

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

from vitrify.spec.tasks.catalogue import Answer, Task, Within, Word


@dataclass(frozen=True)
class Composition(Task):
    """f(g(x)), asked once, at the end.

    >>> Composition(size=2).answers(["g0=1", "f0=0", "f1=0", "g1=1", "x=1"])
    [None, None, None, None, '0']
    """

    name: ClassVar[str] = "composition"
    free: ClassVar[bool] = False

    size: Annotated[int, Within(1, 512)]  # there are 2 size² entries

    @property
    def length(self) -> int:
        """Every word is as long as this."""
        return 2 * self.size + 1

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.size)))

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        """All entries of g, by argument and value, then those of f, then the questions."""
        entries = [f"{function}{a}={b}" for function in "gf" for a in self.outputs for b in self.outputs]
        return (*entries, *(f"x={a}" for a in self.outputs))

    def answers(self, word: Word) -> Sequence[Answer]:
        told = dict(symbol.split("=") for symbol in word if symbol[0] != "x")
        asked = [symbol.split("=")[1] if symbol[0] == "x" else None for symbol in word]
        return [None if x is None else told["f" + told["g" + x]] for x in asked]

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        """All pairs of functions and questions, with the entries in the order of the alphabet."""
        if length == self.length:
            for values in product(self.outputs, repeat=2 * self.size):
                for x in self.outputs:
                    yield (*self._entries(values), f"x={x}")

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Random functions, their entries in a random order, and a random question; or the beginning of such a word."""
        entries = self._entries([str(value) for value in rng.integers(self.size, size=2 * self.size)])
        return (*(entries[i] for i in rng.permutation(2 * self.size)), f"x={rng.integers(self.size)}")[:length]

    def _entries(self, values: Word) -> list[str]:
        places = [f"{function}{a}" for function in "gf" for a in self.outputs]
        return [f"{place}={value}" for place, value in zip(places, values, strict=True)]


TASK = Composition
