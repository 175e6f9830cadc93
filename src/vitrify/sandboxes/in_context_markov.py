r"""In-context Markov chains: every row has a chain of its own, which the reader must learn from the row.

The rows of the kernel $P$ are drawn from a Dirichlet distribution with all parameters $\alpha$, the first symbol is
uniform, and $x_{t+1} \sim P_{x_t}$. With $c_{ab}$ the number of times that $b$ followed $a$ so far, the posterior of
row $a$ is Dirichlet with parameters $\alpha + c_{ab}$, so the best prediction after $a$ is
$(c_{ab} + \alpha) / (\sum_b c_{ab} + k\alpha)$. Source: Edelman et al. 2024, arXiv 2402.11004.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import dirichlet, walk
from vitrify.sandboxes.catalogue import Entry, Predictor, Row, Sandbox


@dataclass(frozen=True)
class InContextMarkov(Sandbox):
    """Rows of `length` symbols, each of a fresh chain of `states` states."""

    states: int = 3
    length: int = 100
    alpha: float = 1.0

    def problems(self) -> Iterator[str]:
        if self.states < 2:
            yield f"states must be at least 2, not {self.states}"
        if self.length < 2:
            yield f"length must be at least 2, not {self.length}"
        if not self.alpha > 0:
            yield f"alpha must be positive, not {self.alpha:g}"

    @property
    def rounded(self) -> bool:
        return self.alpha != 1

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(str(state) for state in range(self.states))

    @property
    def tokens(self) -> int:
        return self.length - 1

    def draw(self, key: Array) -> Row:
        chain, start, steps = jax.random.split(key, 3)
        first = jax.random.randint(start, (), 0, self.states)
        bounds, kernel = dirichlet(chain, self.alpha, (self.states, self.states))
        later = walk(bounds, first, jax.random.uniform(steps, (self.length - 1,)))
        symbols = jnp.concatenate([first[None], later]).astype(jnp.int32)
        return Row(symbols[:-1], symbols, jnp.ones(self.length), {"kernel": kernel})

    def optimal(self, row: Row) -> Array:
        return self._counted(row, jnp.full(self.states, -jnp.log(self.states)))

    def _counted(self, row: Row, start: Array) -> Array:
        """Add-alpha estimates from the transitions so far."""
        one = jax.nn.one_hot(row.tokens, self.states)  # [n, state]
        pairs = one[:-1, :, None] * one[1:, None, :]  # the transition into tokens 2, …, n
        counts = jnp.concatenate([jnp.zeros((1, self.states, self.states)), jnp.cumsum(pairs, axis=0)])
        seen = jnp.einsum("ta,tab->tb", one, counts) + self.alpha
        return jnp.concatenate([start[None], jnp.log(seen / seen.sum(axis=-1, keepdims=True))])

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "unigram": self.unigram}

    def unigram(self, row: Row) -> Array:
        """How often each symbol came up so far, with one more of each."""
        counts = jnp.cumsum(jax.nn.one_hot(row.tokens, self.states), axis=0) + 1.0
        start = jnp.full((1, self.states), 1 / self.states)
        return jnp.log(jnp.concatenate([start, counts / counts.sum(axis=-1, keepdims=True)]))

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        kernels = rng.dirichlet(np.full(self.states, self.alpha), (count, self.states))
        bounds = np.cumsum(kernels, axis=-1)[..., :-1]
        symbols = np.empty((count, self.length), dtype=np.int32)
        symbols[:, 0] = rng.integers(self.states, size=count)
        for t in range(1, self.length):
            now = bounds[np.arange(count), symbols[:, t - 1]]
            symbols[:, t] = (rng.random((count, 1)) >= now).sum(axis=-1)
        return symbols[:, :-1], symbols


SANDBOX = Entry(InContextMarkov, small={"states": 2, "length": 4})
