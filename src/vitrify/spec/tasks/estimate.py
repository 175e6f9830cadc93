r"""Estimate: the law of the next symbol, from what has followed the last $k$ symbols so far in this very word.

After $x_1 \dots x_i$, let $M = \{n \le i : x_{n-j} = x_{i+1-j},\ 1 \le j \le k\}$ be the places whose $k$ symbols
before are the last $k$ ones. The answer gives a symbol $x$ the share $\#\{n \in M : x_n = x\} / \#M$. Where the last
$k$ symbols have not been followed by anything yet, or are fewer than $k$, all symbols have the same share. (Rajaraman
et al. 2024, arXiv 2407.17686.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from vitrify.spec.tasks.catalogue import Answer, Task, Within, Word, letters


@dataclass(frozen=True)
class Estimate(Task):
    """The shares of the symbols that have followed the last `order` symbols, at every position.

    >>> Estimate(order=1, symbols=2, length=8).answers("aab")
    [(0.5, 0.5), (1.0, 0.0), (0.5, 0.5)]
    >>> Estimate(order=2, symbols=2, length=8).answers("ababa")[-1]
    (0.0, 1.0)
    """

    name: ClassVar[str] = "estimate"
    numeric: ClassVar[bool] = True

    order: Annotated[int, Within(1, 8)]
    symbols: Annotated[int, Within(1)]
    length: Annotated[int, Within(1)]

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        return letters(self.symbols)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.alphabet

    def answers(self, word: Word) -> Sequence[Answer]:
        k, given = self.order, tuple(word)
        found: list[Answer] = []
        for i in range(1, len(given) + 1):
            context = given[max(i - k, 0) : i]
            followers = [given[n] for n in range(k, i) if given[n - k : n] == context]
            shares = [followers.count(symbol) / len(followers) for symbol in self.alphabet] if followers else None
            found.append(tuple(shares or [1 / self.symbols] * self.symbols))
        return found

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """A random word over some of the symbols, sometimes few: with many, no context comes back."""
        some = round(float(np.exp(rng.uniform(0.0, np.log(self.symbols)))))
        chosen = rng.permutation(self.symbols)[:some]
        return tuple(self.alphabet[i] for i in chosen[rng.integers(some, size=length)])


TASK = Estimate
