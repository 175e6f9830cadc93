r"""Random n-gram models of two families: every context on its own, or all contexts through one vector.

`general` draws the logits after each context independently, $N(0, 1) / \tau$ with the temperature $\tau$. In
`representation` they are $E\,h / (\tau\sqrt{R})$ with $h = \sum_{j<n} V_j[y_{t-j}] / \sqrt{n-1}$ and all entries of
$E \in \mathbb{R}^{k \times R}$ and of the $V_j$ from $N(0, 1)$, so that contexts share parameters and the logits have
rank $R$. Before the first symbol stand $n-1$ boundaries, which are contexts like others. Source: Svete et al. 2024,
arXiv 2410.03001 (the two families; sizes and scales are our own).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from scipy.special import softmax

from vitrify.sandboxes.catalogue import Array, Count, Entry, Natural, Positive, Within
from vitrify.sandboxes.kit.contexts import MAX_CELLS, OrderSandbox


@dataclass(frozen=True)
class RandomNGram(OrderSandbox):
    """Sequences of `length` symbols of one model of order `n`, drawn by the seed `task`."""

    n: Count = 4
    states: Annotated[int, Within(2)] = 16
    family: Literal["general", "representation"] = "general"
    rank: Count = 4
    temperature: Positive = 0.5
    task: Natural = 0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.states**self.n > MAX_CELLS:
            cells = f"{self.states**self.n} probabilities: {MAX_CELLS} fit"
            yield "n", f"= {self.n} with {self.states} states makes {cells}"

    @cached_property
    def tables(self) -> list[Array]:
        """The probabilities after 0, 1, …, n - 1 symbols, [contexts, state] each."""
        rng, sizes = np.random.default_rng(self.task), [self.states**j for j in range(self.n)]
        if self.family == "general":
            logits = [rng.standard_normal((size, self.states)) for size in sizes]
        else:
            out = rng.standard_normal((self.states, self.rank)) / np.sqrt(self.rank)
            read = rng.standard_normal((max(self.n - 1, 1), self.states + 1, self.rank)) / np.sqrt(max(self.n - 1, 1))
            logits = [self._represented(j, read) @ out.T for j in range(self.n)]
        return [softmax(table / self.temperature, axis=1) for table in logits]

    def _represented(self, seen: int, read: Array) -> Array:
        """The vectors h of all contexts of `seen` symbols [contexts, rank]: the last symbol has lag 1."""
        vectors = np.zeros((1, self.rank))
        for lag in range(seen, 0, -1):
            vectors = (vectors[:, None] + read[lag - 1, None, :-1]).reshape(-1, self.rank)
        return vectors + read[seen : self.n - 1, -1].sum(axis=0)


SANDBOX = Entry(RandomNGram, small={"n": 3, "states": 2, "length": 5, "family": "representation", "rank": 1})
