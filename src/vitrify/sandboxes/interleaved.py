r"""Interleaved Markov chains: each sequence takes a lag $\ell$, and its symbols follow the one $\ell$ places before.

One kernel $P$ serves all sequences, drawn once from a Dirichlet distribution with all parameters $\alpha$. A sequence
with lag $\ell$, uniform among `lags`, is $\ell$ chains in turns: the first $\ell$ symbols come from the stationary law
$\mu$, then $x_t \sim P(\cdot \mid x_{t-\ell})$. The posterior of the lag is $w_\ell(t) \propto \prod_{s \le t}
P_\ell(x_s)$ with $P_\ell(x_s) = P(x_s \mid x_{s-\ell})$, or $\mu(x_s)$ for $s \le \ell$, and the best prediction is the
mean of the lags' predictions under it. Source: D'Angelo, Croce, Flammarion 2025, arXiv 2509.08184.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.parameters import Count, Natural, Positive, Within
from vitrify.sandboxes.catalogue import Array, Entry, Example, LogProbs, NextSymbol, Predictor
from vitrify.sandboxes.kit.contexts import bounds_of, full, log_of
from vitrify.sandboxes.kit.draws import descend


@dataclass(frozen=True)
class Interleaved(NextSymbol):
    """Sequences of `length` symbols of chains with `states` states, `lags` of them in turns."""

    states: Annotated[int, Within(2)] = 3
    lags: tuple[Count, ...] = (1, 2, 3)
    length: Annotated[int, Within(2)] = 64
    alpha: Positive = 1.0
    task: Natural = 0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if not self.lags or len(set(self.lags)) < len(self.lags):
            yield "lags", f"must be different whole numbers, not {', '.join(map(str, self.lags)) or 'none'}"
        elif self.length <= max(self.lags):
            yield "length", f"must be more than the largest lag, {max(self.lags)}, not {self.length}"

    @cached_property
    def table(self) -> Array:
        """The kernel, and as its last line the stationary law: [states + 1, states], float64."""
        kernel = np.random.default_rng(self.task).dirichlet(np.full(self.states, self.alpha), self.states)
        return np.concatenate([kernel, full(kernel).law[None]])

    @cached_property
    def _log(self) -> Array:
        return log_of(self.table)

    def draw(self, key: Array) -> Example:
        which, steps = jax.random.split(key)
        lag = jnp.asarray(self.lags)[jax.random.randint(which, (), 0, len(self.lags))]
        parents = jnp.maximum(jnp.arange(self.length) - lag, -1)[:, None]
        u = jax.random.uniform(steps, (self.length,))
        symbols = descend(jnp.asarray(bounds_of(self.table)), parents, u)
        return Example(symbols[:-1], symbols, jnp.ones(self.length), {"lag": lag})

    def _by_lag(self, example: Example) -> Array:
        """The log-probabilities [lag, n + 1, state] of each lag alone."""
        most = max(self.lags)
        padded = jnp.concatenate([jnp.full(most, self.states), example.tokens])  # question t is about padded[most + t]
        return jnp.asarray(self._log)[jnp.stack([padded[most - lag :][: self.length] for lag in self.lags])]

    def optimal(self, example: Example) -> LogProbs:
        each = self._by_lag(example)
        likelihood = jnp.take_along_axis(each[:, :-1], example.tokens[None, :, None], axis=2)[
            ..., 0
        ]  # of what came [lag, n]
        belief = jnp.concatenate([jnp.zeros((len(self.lags), 1)), jnp.cumsum(likelihood, axis=1)], axis=1)
        return jax.nn.logsumexp(jax.nn.log_softmax(belief, axis=0)[..., None] + each, axis=0)

    def predictors(self) -> Mapping[str, Predictor]:
        alone = {f"lag_{lag}": partial(self._alone, number) for number, lag in enumerate(self.lags)}
        return {"uniform": self.uniform, "unigram": self.unigram, "lags": self.mean, **alone}

    def unigram(self, example: Example) -> LogProbs:
        """The stationary law, whatever came before."""
        return jnp.broadcast_to(jnp.asarray(self._log)[-1], (*example.targets.shape, self.states))

    def mean(self, example: Example) -> LogProbs:
        """All lags alike, whatever came before."""
        each = self._by_lag(example)
        return jax.nn.logsumexp(each, axis=0) - np.log(len(self.lags))

    def _alone(self, number: int, example: Example) -> LogProbs:
        return self._by_lag(example)[number]

    def rate(self) -> float:
        return full(self.table[:-1]).rate()  # every lag has this rate, and a long sequence tells which it is


SANDBOX = Entry(Interleaved, small={"states": 2, "lags": (1, 2), "length": 6, "alpha": 0.3, "task": 1})
