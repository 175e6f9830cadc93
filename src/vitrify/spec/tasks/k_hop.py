r"""k-hop: go from a symbol to the position after its last earlier occurrence, $k$ times; one hop is an induction head.

For a word $x_1 \dots x_n$, $\mathrm{find}(i) = \max\{j \le i : x_{j-1} = x_i\}$ is the position after the last earlier
occurrence of the symbol at $i$. The answer at $i$ is the symbol at $\mathrm{find}(\mathrm{find}(\dots i))$, $k$ times,
and `(none)` where one of the hops finds no position. (Sanford, Hsu and Telgarsky 2024, arXiv 2402.09268.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from vitrify.parameters import Within
from vitrify.spec.tasks.catalogue import MAX_SIZE, NONE, Answer, Task, Word, few_symbols, letters


@dataclass(frozen=True)
class KHop(Task):
    """The symbol reached after `hops` hops, at every position.

    >>> KHop(hops=1, symbols=3, length=8).answers("abcab")
    ['(none)', '(none)', '(none)', 'b', 'c']
    >>> KHop(hops=2, symbols=3, length=8).answers("aabaab")
    ['(none)', 'a', '(none)', '(none)', 'a', 'b']
    """

    name: ClassVar[str] = "k-hop"
    SAMPLES: ClassVar = {
        "three hops": {"hops": 3, "symbols": 4, "length": 32},
        "induction": {"hops": 1, "symbols": 64, "length": 200},
    }

    hops: Annotated[int, Within(1, MAX_SIZE)]
    symbols: Annotated[int, Within(1, MAX_SIZE)]
    length: Annotated[int, Within(1, MAX_SIZE)]

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        return letters(self.symbols)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return (NONE, *self.alphabet)

    def answers(self, word: Word) -> Sequence[Answer]:
        index = {symbol: number for number, symbol in enumerate(self.alphabet)}
        x = np.array([-1, *(index[symbol] for symbol in word)])  # positions count from 1
        at = np.arange(len(x))
        matches = (x[None, :-1] == x[:, None]) & (at[None, 1:] <= at[:, None]) & (x[None, :-1] >= 0)
        find = np.where(matches, at[None, 1:], 0).max(axis=1, initial=0)  # for every position; 0 means none
        hop = at
        for _ in range(self.hops):
            hop = find[hop]
        return [word[j - 1] if j else NONE for j in hop[1:].tolist()]

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return a random word over some of the symbols, sometimes few: with many symbols, hops soon find nothing."""
        return few_symbols(rng, self.alphabet, length)


TASK = KHop
