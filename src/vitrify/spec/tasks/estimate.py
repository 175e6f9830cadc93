r"""In-context estimation of an order-$k$ Markov chain: the empirical distribution of the next symbol in this word.

After $x_1 \dots x_i$, let $M = \{n \le i : x_{n-j} = x_{i+1-j},\ 1 \le j \le k\}$ be the positions whose preceding $k$
symbols are the last $k$ ones. The answer gives a symbol $x$ the probability $\#\{n \in M : x_n = x\} / \#M$. Where the
last $k$ symbols have not been followed by anything yet, or are fewer than $k$, all symbols have the same probability.
(Rajaraman et al. 2024, arXiv 2407.17686.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from vitrify.parameters import Within
from vitrify.spec.tasks.catalogue import Answer, Task, Word, few_symbols, letters

REPEATING = 0.9  # share of the symbols of a word that repeat its beginning


@dataclass(frozen=True)
class Estimate(Task):
    """Frequencies of the symbols that have followed the last `order` symbols, at every position.

    >>> Estimate(order=1, symbols=2, length=8).answers("aab")
    [(0.5, 0.5), (1.0, 0.0), (0.5, 0.5)]
    >>> Estimate(order=2, symbols=2, length=8).answers("ababa")[-1]
    (0.0, 1.0)
    """

    name: ClassVar[str] = "estimate"
    SAMPLES: ClassVar = {"estimate": {"order": 2, "symbols": 3, "length": 24}}
    numeric: ClassVar[bool] = True

    order: Annotated[int, Within(1, 10)]
    symbols: Annotated[int, Within(1)]
    length: Annotated[int, Within(1)]

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        return letters(self.symbols)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.alphabet

    def answers(self, word: Word) -> Sequence[Answer]:
        k, symbols = self.order, tuple(word)
        estimates: list[Answer] = []
        for i in range(1, len(symbols) + 1):
            context = symbols[max(i - k, 0) : i]
            followers = [symbols[n] for n in range(k, i) if symbols[n - k : n] == context]
            shares = [followers.count(symbol) / len(followers) for symbol in self.alphabet] if followers else None
            estimates.append(tuple(shares or [1 / self.symbols] * self.symbols))
        return estimates

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return a random word over some of the symbols, or one that mostly repeats its beginning: contexts recur."""
        word = few_symbols(rng, self.alphabet, length)
        if rng.random() < 1 / 2:
            return word
        period, repeats = int(rng.integers(1, self.order + 3)), rng.random(length) < REPEATING
        return tuple(word[i % period] if repeats[i] else word[i] for i in range(length))


TASK = Estimate
