r"""A Markov chain of order $m$ over $k$ states, with one kernel for all rows, in its stationary state from the start.

The kernel $P(x \mid x_1 \dots x_m)$ is given, or drawn once from a Dirichlet distribution with all parameters $\alpha$.
With $\mu$ the stationary law of $m$ symbols in a row, the first $m$ symbols are drawn from $\mu$, so after $t < m$ of
them the best prediction is the conditional of $\mu$, and afterwards it is $P$; its loss is the entropy rate
$\sum_c \mu(c)\, H(P(\cdot \mid c))$. Whoever looks at the last $j < m$ symbols only does best with the conditional of
order $j$ of $\mu$.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vitrify.arrays import Array
from vitrify.errors import InputError
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
class Chain(ContextSandbox):
    r"""Rows of `length` symbols of one chain; `kernel` holds the $k^m \cdot k$ probabilities, oldest symbol first."""

    states: int = 3
    order: int = 1
    alpha: float = 1.0
    task: int = 0
    kernel: tuple[float, ...] = ()

    def problems(self) -> Iterator[str]:
        if self.states < 2:
            yield f"states must be at least 2, not {self.states}"
        if self.order < 1:
            yield f"order must be at least 1, not {self.order}"
        if self.length <= self.order:
            yield f"length must be more than the order, not {self.length}"
        if not self.alpha > 0:
            yield f"alpha must be positive, not {self.alpha:g}"
        if self.task < 0:
            yield f"task must not be negative, not {self.task}"
        if self.states < 2 or self.order < 1:
            return
        cells = self.states ** (self.order + 1)
        if cells > MOST_CELLS:
            yield f"{self.states} states at order {self.order} make {cells} probabilities: at most {MOST_CELLS} fit"
        elif self.kernel:
            yield from self._kernel_problems(cells)

    def _kernel_problems(self, cells: int) -> Iterator[str]:
        if len(self.kernel) != cells:
            yield f"kernel must have states^(order + 1) = {cells} numbers, not {len(self.kernel)}"
            return
        given = np.reshape(self.kernel, (-1, self.states))
        if not (given >= 0).all() or not np.allclose(given.sum(axis=1), 1, atol=1e-6):
            yield f"each {self.states} numbers of the kernel must be probabilities with the sum 1"
            return
        try:
            _ = self._law
        except InputError as error:
            yield str(error)

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(str(state) for state in range(self.states))

    @cached_property
    def table(self) -> Array:
        """The kernel [contexts, state], float64."""
        contexts = self.states**self.order
        if not self.kernel:
            return np.random.default_rng(self.task).dirichlet(np.full(self.states, self.alpha), contexts)
        given = np.array(self.kernel, dtype=np.float64).reshape(contexts, self.states)
        return given / given.sum(axis=1, keepdims=True)

    @cached_property
    def _law(self) -> Array:
        return full(self.table).law

    @cached_property
    def _tables(self) -> list[Array]:
        return marginals(self.table, self._law)

    @cached_property
    def contexts(self) -> Contexts:
        return suffixes(self._tables)

    def rate(self) -> float:
        return full(self.table).rate()

    def predictors(self) -> Mapping[str, Predictor]:
        lower = {order_name(j): suffixes(self._tables[: j + 1]).predict for j in range(self.order)}
        return {"uniform": self.uniform, **lower}

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        kernel = self.table.reshape((self.states,) * (self.order + 1))
        law = np.full((self.states,) * self.order, float(self.states) ** -self.order)
        before = np.zeros_like(law)
        while np.abs(law - before).sum() > 1e-14:  # the law of m symbols, moved on; half a step damps periods
            law, before = (law + (law[..., None] * kernel).sum(axis=0)) / 2, law
        symbols = np.empty((count, self.length), dtype=np.int32)
        first = rng.choice(law.size, size=count, p=law.ravel() / law.sum())
        symbols[:, : self.order] = np.stack(np.unravel_index(first, law.shape), axis=1)
        for t in range(self.order, self.length):
            symbols[:, t] = drawn(rng, kernel[tuple(symbols[:, t - self.order : t].T)])
        return symbols[:, :-1], symbols


SANDBOX = Entry(Chain, small={"states": 2, "order": 2, "length": 5})
