r"""Interleaved Markov chains: each row takes a lag $\ell$, and its symbols follow the one $\ell$ places before.

One kernel $P$ serves all rows, drawn once from a Dirichlet distribution with all parameters $\alpha$. A row with lag
$\ell$, uniform among `lags`, is $\ell$ chains in turns: the first $\ell$ symbols come from the stationary law $\mu$,
then $x_t \sim P(\cdot \mid x_{t-\ell})$. The posterior of the lag is
$w_\ell(t) \propto \prod_{s \le t} P_\ell(x_s)$ with $P_\ell(x_s) = P(x_s \mid x_{s-\ell})$, or $\mu(x_s)$ for
$s \le \ell$, and the best prediction is the mean of the lags' predictions under it. Source: D'Angelo, Croce, Flammarion
2025, arXiv 2509.08184.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._contexts import bounds_of, full, log_of
from vitrify.sandboxes._parents import descend
from vitrify.sandboxes.catalogue import Entry, Predictor, Row, Sandbox


@dataclass(frozen=True)
class Interleaved(Sandbox):
    """Rows of `length` symbols of chains with `states` states, `lags` of them in turns."""

    states: int = 3
    lags: tuple[int, ...] = (1, 2, 3)
    length: int = 64
    alpha: float = 1.0
    task: int = 0

    def problems(self) -> Iterator[str]:
        if self.states < 2:
            yield f"states must be at least 2, not {self.states}"
        if not self.lags or min(self.lags) < 1 or len(set(self.lags)) < len(self.lags):
            yield f"lags must be different whole numbers from 1, not {', '.join(map(str, self.lags)) or 'none'}"
        elif self.length <= max(self.lags):
            yield f"length must be more than the largest lag, not {self.length}"
        if not self.alpha > 0:
            yield f"alpha must be positive, not {self.alpha:g}"
        if self.task < 0:
            yield f"task must not be negative, not {self.task}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(str(state) for state in range(self.states))

    @property
    def tokens(self) -> int:
        return self.length - 1

    @cached_property
    def table(self) -> Array:
        """The kernel, and as its last line the stationary law: [states + 1, states], float64."""
        kernel = np.random.default_rng(self.task).dirichlet(np.full(self.states, self.alpha), self.states)
        return np.concatenate([kernel, full(kernel).law[None]])

    @cached_property
    def _log(self) -> Array:
        return log_of(self.table)

    def draw(self, key: Array) -> Row:
        which, steps = jax.random.split(key)
        lag = jnp.asarray(self.lags)[jax.random.randint(which, (), 0, len(self.lags))]
        parents = jnp.maximum(jnp.arange(self.length) - lag, -1)[:, None]
        u = jax.random.uniform(steps, (self.length,))
        symbols = descend(jnp.asarray(bounds_of(self.table)), parents, u)
        return Row(symbols[:-1], symbols, jnp.ones(self.length), {"lag": lag})

    def _by_lag(self, row: Row) -> Array:
        """The log-probabilities [lag, n + 1, state] of each lag alone."""
        most = max(self.lags)
        padded = jnp.concatenate([jnp.full(most, self.states), row.tokens])  # question t is about padded[most + t]
        return jnp.asarray(self._log)[jnp.stack([padded[most - lag :][: self.length] for lag in self.lags])]

    def optimal(self, row: Row) -> Array:
        each = self._by_lag(row)
        said = jnp.take_along_axis(each[:, :-1], row.tokens[None, :, None], axis=2)[..., 0]  # of what came [lag, n]
        belief = jnp.concatenate([jnp.zeros((len(self.lags), 1)), jnp.cumsum(said, axis=1)], axis=1)
        return jax.nn.logsumexp(jax.nn.log_softmax(belief, axis=0)[..., None] + each, axis=0)

    def predictors(self) -> Mapping[str, Predictor]:
        alone = {f"lag_{lag}": partial(self._alone, number) for number, lag in enumerate(self.lags)}
        return {"uniform": self.uniform, "unigram": self.unigram, "lags": self.mean, **alone}

    def unigram(self, row: Row) -> Array:
        """The stationary law, whatever came before."""
        return jnp.broadcast_to(jnp.asarray(self._log)[-1], (*row.targets.shape, self.states))

    def mean(self, row: Row) -> Array:
        """All lags alike, whatever came before."""
        each = self._by_lag(row)
        return jax.nn.logsumexp(each, axis=0) - np.log(len(self.lags))

    def _alone(self, number: int, row: Row) -> Array:
        return self._by_lag(row)[number]

    def rate(self) -> float:
        return full(self.table[:-1]).rate()  # every lag has this rate, and a long row tells which it is

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        lag = rng.choice(self.lags, size=count)
        law = np.linalg.matrix_power((self.table[:-1] + np.eye(self.states)) / 2, 1 << 40)[0]
        symbols = np.empty((count, self.length), dtype=np.int32)
        for t in range(self.length):
            above = symbols[np.arange(count), np.maximum(t - lag, 0)]
            p = np.where((t < lag)[:, None], law, self.table[np.where(t < lag, 0, above)])
            symbols[:, t] = (rng.random((count, 1)) >= p.cumsum(axis=1)[:, :-1]).sum(axis=1)
        return symbols[:, :-1], symbols


SANDBOX = Entry(Interleaved, small={"states": 2, "lags": (1, 2), "length": 6, "alpha": 0.3, "task": 1})
