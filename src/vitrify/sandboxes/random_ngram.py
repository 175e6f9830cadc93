r"""Random n-gram models of two families: every context on its own, or all contexts through one vector.

`general` draws the logits after each context independently, $N(0, 1) / \tau$ with the temperature $\tau$. In
`representation` they are $E\,h / (\tau\sqrt{R})$ with $h = \sum_{j<n} V_j[y_{t-j}] / \sqrt{n-1}$ and all entries of
$E \in \mathbb{R}^{k \times R}$ and of the $V_j$ from $N(0, 1)$, so that contexts share parameters and the logits have
rank $R$. Before the first symbol stand $n-1$ boundaries, which are contexts like others. Source: Svete et al. 2024,
arXiv 2410.03001 (the two families; sizes and scales are our own).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.special import softmax

from vitrify.arrays import Array
from vitrify.sandboxes._contexts import (
    MOST_CELLS,
    Contexts,
    ContextSandbox,
    drawn,
    full,
    marginals,
    order_name,
    suffixes,
)
from vitrify.sandboxes.catalogue import Entry, Predictor


@dataclass(frozen=True)
class RandomNGram(ContextSandbox):
    """Rows of `length` symbols of one model of order `n`, drawn by the seed `task`."""

    n: int = 4
    states: int = 16
    family: Literal["general", "representation"] = "general"
    rank: int = 4
    temperature: float = 0.5
    task: int = 0

    def problems(self) -> Iterator[str]:
        if self.n < 1:
            yield f"n must be at least 1, not {self.n}"
        if self.states < 2:
            yield f"states must be at least 2, not {self.states}"
        if self.length < 2:
            yield f"length must be at least 2, not {self.length}"
        if self.rank < 1:
            yield f"rank must be at least 1, not {self.rank}"
        if not self.temperature > 0:
            yield f"temperature must be positive, not {self.temperature:g}"
        if self.task < 0:
            yield f"task must not be negative, not {self.task}"
        if self.n >= 1 and self.states >= 2 and self.states**self.n > MOST_CELLS:
            yield f"{self.states} states and n={self.n} make {self.states**self.n} probabilities: {MOST_CELLS} fit"

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(str(state) for state in range(self.states))

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
        found = np.zeros((1, self.rank))
        for lag in range(seen, 0, -1):
            found = (found[:, None] + read[lag - 1, None, :-1]).reshape(-1, self.rank)
        return found + read[seen : self.n - 1, -1].sum(axis=0)

    @cached_property
    def contexts(self) -> Contexts:
        return suffixes(self.tables)

    def rate(self) -> float:
        return full(self.tables[-1]).rate()

    def predictors(self) -> Mapping[str, Predictor]:
        """Those that look at less symbols do best with the conditionals of the stationary law."""
        tables = marginals(self.tables[-1], full(self.tables[-1]).law)
        return {
            "uniform": self.uniform,
            **{order_name(j): suffixes(tables[: j + 1]).predict for j in range(self.n - 1)},
        }

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        symbols = np.empty((count, self.length), dtype=np.int32)
        for t in range(self.length):
            past = symbols[:, max(0, t - self.n + 1) : t]
            table = self.tables[past.shape[1]].reshape((self.states,) * (past.shape[1] + 1))
            symbols[:, t] = drawn(rng, np.broadcast_to(table[tuple(past.T)], (count, self.states)))
        return symbols[:, :-1], symbols


SANDBOX = Entry(RandomNGram, small={"n": 3, "states": 2, "length": 5, "family": "representation", "rank": 1})
