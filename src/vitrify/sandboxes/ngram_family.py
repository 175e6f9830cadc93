r"""Random n-gram models without tables: members of one program may differ in order, alphabet, rank and model.

The logits after a context are made when they are asked for. In the `shared` family they are $E\,h/(\tau\sqrt R)$ with
$h = \sum_{j<n} V_j[y_{t-j}]/\sqrt{n-1}$ and normal $E$ and $V_j$, as in `random_ngram`; in the `general` one they are
normal numbers over $\tau$, from a key that is made of the context. Before the first symbol stand boundaries. Source:
Svete et al. 2024, arXiv 2410.03001 (the two families; sizes and scales are our own).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes.catalogue import LEAST_LOG, Entry, Example, LogProbs, NextSymbol, NonNegative, Positive, Within
from vitrify.sandboxes.kit.draws import cumulative, invert


@dataclass(frozen=True)
class NGramFamily(NextSymbol):
    """Sequences of `length` symbols of a model of order `n` up to `longest`, over the first `used` of `states` symbols.

    Vectors have `rank` numbers, up to `widest`; `task` is the seed of the model.
    """

    rounded = True
    TRACED = ("n", "used", "rank", "temperature", "task")

    longest: int = 4
    states: int = 16
    widest: int = 8
    family: Literal["general", "shared"] = "shared"
    length: Annotated[int, Within(2)] = 64
    n: Annotated[float, Within(1)] = 4.0
    used: Annotated[float, Within(2)] = 16.0
    rank: Annotated[float, Within(1)] = 4.0
    temperature: Positive = 0.5
    task: NonNegative = 0.0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        for name, most in (("n", "longest"), ("used", "states"), ("rank", "widest")):
            if getattr(self, name) > getattr(self, most):
                yield name, f"must be at most {most} = {getattr(self, most)}, not {getattr(self, name):g}"

    def possible(self) -> Array:
        return jnp.arange(self.states) < self.used

    def _law(self) -> Callable[[Array], Array]:
        """A function from contexts [place, lag] of the last symbols, the latest first, to logits [place, state]."""
        key = jax.random.key(jnp.asarray(self.task).astype(jnp.uint32), impl="threefry2x32")
        lags = max(self.longest - 1, 0)
        seen = jnp.arange(lags) < self.n - 1

        def apart(past: Array) -> Array:
            code = jnp.where(seen, past + 1, 0).astype(jnp.uint32)
            place = np.array([pow(self.states + 2, lag, 1 << 32) for lag in range(lags)], dtype=np.uint32)
            keys = jax.vmap(lambda number: jax.random.fold_in(key, number))((code * place).sum(axis=1))
            return jax.vmap(lambda one: jax.random.normal(one, (self.states,), jnp.float32))(keys)

        if self.family == "general":
            logits_of = apart
        else:
            used = jnp.arange(self.widest) < self.rank
            out, read = jnp.split(
                jax.random.normal(key, (self.states * (lags + 1) + lags, self.widest), jnp.float32), [self.states]
            )
            read = read.reshape(lags, self.states + 1, self.widest)

            def logits_of(past: Array) -> Array:
                vectors = jnp.where(seen[:, None], read[jnp.arange(lags), past], 0.0).sum(axis=1)
                return jnp.where(used, vectors, 0.0) @ out.T / jnp.sqrt(self.rank * jnp.maximum(self.n - 1, 1))

        return lambda past: jnp.where(self.possible(), logits_of(past) / self.temperature, LEAST_LOG)

    def draw(self, key: Array) -> Example:
        law = self._law()  # once: a loop would make its tables in every step

        def step(past: Array, u: Array) -> tuple[Array, Array]:
            symbol = invert(cumulative(jax.nn.softmax(law(past[None])[0])), u)
            return jnp.concatenate([symbol[None], past])[:-1], symbol

        first = jnp.full(max(self.longest - 1, 0), self.states, jnp.int32)
        _, symbols = jax.lax.scan(step, first, jax.random.uniform(key, (self.length,)))
        return Example(symbols[:-1], symbols, jnp.ones(self.length), {})

    def contexts(self, tokens: Array) -> Array:
        """The last symbols before each token and after the last [n + 1, lag], the latest first; `states` is none."""
        lags = max(self.longest - 1, 0)
        padded = jnp.concatenate([jnp.full(lags, self.states, jnp.int32), tokens])
        at = jnp.arange(len(tokens) + 1)[:, None] + lags - 1 - jnp.arange(lags)
        return padded[at]

    def optimal(self, example: Example) -> LogProbs:
        return jnp.maximum(jax.nn.log_softmax(self._law()(self.contexts(example.tokens))), LEAST_LOG)

    def uniform(self, example: Example) -> LogProbs:
        even = jnp.where(self.possible(), -jnp.log(jnp.asarray(self.used, jnp.float32)), LEAST_LOG)
        return jnp.broadcast_to(even, (*example.targets.shape, self.states))


SIZES = {"longest": 3, "states": 3, "widest": 2, "length": 5, "n": 3.0, "used": 2.0, "rank": 1.0}
SANDBOX = Entry(NGramFamily, small={"family": "general", **SIZES})
