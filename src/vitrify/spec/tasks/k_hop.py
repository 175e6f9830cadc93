r"""k-hop: go from a symbol to its last occurrence and one place on, $k$ times; one hop is what an induction head does.

For a word $x_1 \dots x_n$, $\mathrm{find}(i) = \max\{j \le i : x_{j-1} = x_i\}$ is the place behind the last earlier
occurrence of the symbol at $i$. The answer at $i$ is the symbol at $\mathrm{find}(\mathrm{find}(\dots i))$, $k$ times,
and `(none)` where one of the hops finds no place. (Sanford, Hsu and Telgarsky 2024, arXiv 2402.09268.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from vitrify.spec.tasks.catalogue import MANY, NONE, Answer, Task, Within, Word, letters


@dataclass(frozen=True)
class KHop(Task):
    """The symbol that is found after `hops` hops, at every position.

    >>> KHop(hops=1, symbols=3, length=8).answers("abcab")
    ['(none)', '(none)', '(none)', 'b', 'c']
    >>> KHop(hops=2, symbols=3, length=8).answers("abcab")
    ['(none)', '(none)', '(none)', '(none)', '(none)']
    """

    name: ClassVar[str] = "k-hop"

    hops: Annotated[int, Within(1, 4096)]
    symbols: Annotated[int, Within(1, MANY)]
    length: Annotated[int, Within(1, MANY)]

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        return letters(self.symbols)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return (NONE, *self.alphabet)

    def answers(self, word: Word) -> Sequence[Answer]:
        place = {symbol: number for number, symbol in enumerate(self.alphabet)}
        x = np.array([-1, *(place[symbol] for symbol in word)])  # places count from 1
        at = np.arange(len(x))
        found = (x[None, :-1] == x[:, None]) & (at[None, 1:] <= at[:, None]) & (x[None, :-1] >= 0)
        find = np.where(found, at[None, 1:], 0).max(axis=1, initial=0)  # of every place; 0 is no place
        hop = at
        for _ in range(self.hops):
            hop = find[hop]
        return [word[j - 1] if j else NONE for j in hop[1:].tolist()]

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """A random word over some of the symbols, sometimes few: hops are long in words of many symbols, and end."""
        some = round(float(np.exp(rng.uniform(0.0, np.log(self.symbols)))))
        chosen = rng.permutation(self.symbols)[:some]
        return tuple(self.alphabet[i] for i in chosen[rng.integers(some, size=length)])


TASK = KHop
