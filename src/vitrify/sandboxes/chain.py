r"""A Markov chain of order $m$ over $k$ states, one kernel for all sequences, stationary from the start.

The kernel $P(x \mid x_1 \dots x_m)$ is `kernel`, or is drawn once, with the seed `task`, from a Dirichlet distribution
with all parameters $\alpha$. With $\mu$ the stationary law of $m$ symbols in a sequence, the first $m$ symbols are
drawn from $\mu$, so after $t < m$ of them the best prediction is the conditional of $\mu$, and afterwards it is $P$.
The loss of predicting by $P$ is the entropy rate $\sum_c \mu(c)\, H(P(\cdot \mid c))$. A predictor that sees the last
$j < m$ symbols only does best with the conditional of order $j$ of $\mu$.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import Array, Count, Entry, Natural, Positive, Within
from vitrify.sandboxes.kit.contexts import MAX_CELLS, Contexts, OrderSandbox, full, marginals


@dataclass(frozen=True)
class Chain(OrderSandbox):
    r"""Sequences of `length` symbols; `kernel` holds the $k^m \cdot k$ probabilities, oldest symbol first."""

    states: Annotated[int, Within(2)] = 3
    order: Count = 1
    alpha: Positive = 1.0
    task: Natural = 0
    kernel: tuple[float, ...] = ()

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.length <= self.order:
            yield "length", f"must be more than order = {self.order}, not {self.length}"
        cells = self.states ** (self.order + 1)
        if cells > MAX_CELLS:
            made = f"{self.order} with {self.states} states makes {cells} probabilities"
            yield "order", f"{made}: at most {MAX_CELLS} fit"
        elif self.kernel:
            yield from self._kernel_conflicts(cells)

    def _kernel_conflicts(self, cells: int) -> Iterator[tuple[str, str]]:
        if len(self.kernel) != cells:
            yield "kernel", f"must have states^(order + 1) = {cells} numbers, not {len(self.kernel)}"
            return
        kernel = np.reshape(self.kernel, (-1, self.states))
        if not (kernel >= 0).all() or not np.allclose(kernel.sum(axis=1), 1, atol=1e-6):
            yield "kernel", f"must be probabilities, each {self.states} of them with the sum 1"
            return
        try:
            _ = self.stationary.law
        except InputError as error:
            yield "kernel", f"has no unique stationary law: {error}"

    @cached_property
    def table(self) -> Array:
        """The kernel [contexts, state], float64."""
        contexts = self.states**self.order
        if not self.kernel:
            return np.random.default_rng(self.task).dirichlet(np.full(self.states, self.alpha), contexts)
        kernel = np.array(self.kernel, dtype=np.float64).reshape(contexts, self.states)
        return kernel / kernel.sum(axis=1, keepdims=True)

    @cached_property
    def stationary(self) -> Contexts:
        return full(self.table)

    @cached_property
    def tables(self) -> list[Array]:
        return marginals(self.table, self.stationary.law)


SANDBOX = Entry(Chain, small={"states": 2, "order": 2, "length": 5})
