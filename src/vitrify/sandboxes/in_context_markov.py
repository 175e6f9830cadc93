r"""In-context Markov chains: every row has a chain of its own, which the reader must learn from the row.

The lines of the kernel $P$, one for each of the $k^m$ words of $m$ = `order` symbols, are drawn from a Dirichlet
distribution with all parameters $\alpha$. The first $m$ symbols are uniform, and $x_{t+1} \sim P_w$ for the last $m$
symbols $w$. With $c_{wb}$ the number of times that $b$ followed $w$ so far, the posterior of line $w$ is Dirichlet with
parameters $\alpha + c_{wb}$, so the best prediction after $w$ is $(c_{wb} + \alpha) / (\sum_b c_{wb} + k\alpha)$. With
the order 0 the symbols are independent of each other. Source: Edelman et al. 2024, arXiv 2402.11004.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._contexts import order_name
from vitrify.sandboxes._draws import dirichlet, follow, invert, walk
from vitrify.sandboxes.catalogue import Entry, Predictor, Row, Sandbox

MOST_LINES = 1 << 12


@dataclass(frozen=True)
class InContextMarkov(Sandbox):
    """Rows of `length` symbols, each of a fresh chain of `states` states whose next symbol depends on `order` ones."""

    states: int = 3
    length: int = 100
    alpha: float = 1.0
    order: int = 1

    def problems(self) -> Iterator[str]:
        if self.states < 2:
            yield f"states must be at least 2, not {self.states}"
        if self.order < 0:
            yield f"order must not be negative, not {self.order}"
        elif self.states >= 2 and self.lines > MOST_LINES:
            yield f"{self.states} states at order {self.order} make {self.lines} lines: at most {MOST_LINES} fit"
        if self.length < 1 + max(self.order, 1):
            yield f"length must be at least {1 + max(self.order, 1)}, not {self.length}"
        if not self.alpha > 0:
            yield f"alpha must be positive, not {self.alpha:g}"

    @property
    def rounded(self) -> bool:
        return self.alpha != 1

    @property
    def lines(self) -> int:
        """How many lines the kernel has."""
        lines: int = self.states**self.order
        return lines

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(str(state) for state in range(self.states))

    @property
    def tokens(self) -> int:
        return self.length - 1

    def draw(self, key: Array) -> Row:
        chain, start, steps = jax.random.split(key, 3)
        bounds, kernel = dirichlet(chain, self.alpha, (self.lines, self.states))
        first = jax.random.randint(start, () if self.order == 1 else (self.order,), 0, self.states)
        u = jax.random.uniform(steps, (self.length - self.order,))
        later = walk(bounds, first, u) if self.order == 1 else self._walk(bounds, first, u)
        symbols = jnp.concatenate([first.reshape(-1), later]).astype(jnp.int32)
        return Row(symbols[:-1], symbols, jnp.ones(self.length), {"kernel": kernel})

    def _walk(self, bounds: Array, first: Array, u: Array) -> Array:
        """The symbols after the first: the state is the number of the last `order` symbols."""
        code = jnp.int32(0)
        for place in range(self.order):
            code = code * self.states + first[place]

        def step(word: Array, u: Array) -> Array:
            return (word * self.states + invert(bounds[word], u)) % self.lines

        if not self.order:
            return invert(bounds[0], u)
        return follow(step, self.lines, code, u) % self.states

    def optimal(self, row: Row) -> Array:
        return self._counted(row, self.order, self.alpha)

    def _counted(self, row: Row, order: int, more: float) -> Array:
        """Estimates from how often each symbol came up so far after the last `order` ones, with `more` of each."""
        k, n = self.states, row.tokens.shape[0]
        if n < order:
            return self.uniform(row)
        word = jnp.zeros(
            n - order + 1, dtype=jnp.int32
        )  # before each token from the first that has one, and at the end
        for place in range(order):
            word = word * k + row.tokens[place : place + len(word)]
        before = jax.nn.one_hot(word, k**order)
        after = jax.nn.one_hot(row.tokens[order:], k)
        counts = jnp.cumsum(before[:-1, :, None] * after[:, None, :], axis=0)
        counts = jnp.concatenate([jnp.zeros((1, k**order, k)), counts])
        seen = jnp.einsum("tw,twb->tb", before, counts) + more
        start = jnp.full((order, k), -jnp.log(k))
        return jnp.concatenate([start, jnp.log(seen / seen.sum(axis=-1, keepdims=True))])

    def predictors(self) -> Mapping[str, Predictor]:
        lower = {order_name(order): partial(self._counted, order=order, more=1.0) for order in range(self.order)}
        return {"uniform": self.uniform, **lower}

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        k, order = self.states, self.order
        kernels = rng.dirichlet(np.full(k, self.alpha), (count, *(k,) * order))
        bounds = np.cumsum(kernels, axis=-1)[..., :-1]
        symbols = np.empty((count, self.length), dtype=np.int32)
        symbols[:, :order] = rng.integers(k, size=(count, order))
        for t in range(order, self.length):
            now = bounds[(np.arange(count), *symbols[:, t - order : t].T)]
            symbols[:, t] = (rng.random((count, 1)) >= now).sum(axis=-1)
        return symbols[:, :-1], symbols


SANDBOX = Entry(InContextMarkov, small={"states": 2, "length": 4})
