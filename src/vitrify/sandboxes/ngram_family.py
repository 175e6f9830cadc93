r"""Random n-gram models without tables: members of one program may differ in order, alphabet, rank and model.

The logits after a context are made when they are asked for. In the `shared` family they are $E\,h/(\tau\sqrt R)$ with
$h = \sum_{j<n} V_j[y_{t-j}]/\sqrt{n-1}$ and normal $E$ and $V_j$, as in `random_ngram`; in the `general` one they are
normal numbers over $\tau$, from a key that is made of the context. Before the first symbol stand boundaries. Source:
Svete et al. 2024, arXiv 2410.03001 (the two families; sizes and scales are our own).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import cumulative, invert
from vitrify.sandboxes.catalogue import LEAST_LOG, Entry, Row, Sandbox


@dataclass(frozen=True)
class NGramFamily(Sandbox):
    """Rows of `length` symbols of a model of order `n` up to `longest`, over the first `used` of `states` symbols.

    Vectors have `rank` numbers, up to `widest`; `task` is the seed of the model.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("n", "used", "rank", "temperature", "task")

    longest: int = 4
    states: int = 16
    widest: int = 8
    family: Literal["general", "shared"] = "shared"
    length: int = 64
    n: float = 4.0
    used: float = 16.0
    rank: float = 4.0
    temperature: float = 0.5
    task: float = 0.0

    def problems(self) -> Iterator[str]:
        for name, least, most in (("n", 1, "longest"), ("used", 2, "states"), ("rank", 1, "widest")):
            if not least <= getattr(self, name) <= getattr(self, most):
                yield f"{name} must lie between {least} and {most} {getattr(self, most)}, not {getattr(self, name):g}"
        if self.length < 2:
            yield f"length must be at least 2, not {self.length}"
        if not self.temperature > 0:
            yield f"temperature must be positive, not {self.temperature:g}"
        if self.task < 0:
            yield f"task must not be negative, not {self.task:g}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(str(state) for state in range(self.states))

    @property
    def tokens(self) -> int:
        return self.length - 1

    @property
    def rounded(self) -> bool:
        return True

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
            return jax.vmap(lambda one: jax.random.normal(one, (self.states,)))(keys)

        if self.family == "general":
            found = apart
        else:
            used = jnp.arange(self.widest) < self.rank
            out, read = jnp.split(jax.random.normal(key, (self.states * (lags + 1) + lags, self.widest)), [self.states])
            read = read.reshape(lags, self.states + 1, self.widest)

            def found(past: Array) -> Array:
                vectors = jnp.where(seen[:, None], read[jnp.arange(lags), past], 0.0).sum(axis=1)
                return jnp.where(used, vectors, 0.0) @ out.T / jnp.sqrt(self.rank * jnp.maximum(self.n - 1, 1))

        return lambda past: jnp.where(self.possible(), found(past) / self.temperature, LEAST_LOG)

    def draw(self, key: Array) -> Row:
        law = self._law()  # once: a loop would make its tables in every step

        def step(past: Array, u: Array) -> tuple[Array, Array]:
            symbol = invert(cumulative(jax.nn.softmax(law(past[None])[0])), u)
            return jnp.concatenate([symbol[None], past])[:-1], symbol

        first = jnp.full(max(self.longest - 1, 0), self.states, jnp.int32)
        _, symbols = jax.lax.scan(step, first, jax.random.uniform(key, (self.length,)))
        return Row(symbols[:-1], symbols, jnp.ones(self.length), {})

    def contexts(self, tokens: Array) -> Array:
        """The last symbols before each token and after the last [n + 1, lag], the latest first; `states` is none."""
        lags = max(self.longest - 1, 0)
        padded = jnp.concatenate([jnp.full(lags, self.states, jnp.int32), tokens])
        at = jnp.arange(len(tokens) + 1)[:, None] + lags - 1 - jnp.arange(lags)
        return padded[at]

    def optimal(self, row: Row) -> Array:
        return jnp.maximum(jax.nn.log_softmax(self._law()(self.contexts(row.tokens))), LEAST_LOG)

    def uniform(self, row: Row) -> Array:
        even = jnp.where(self.possible(), -jnp.log(jnp.asarray(self.used, jnp.float32)), LEAST_LOG)
        return jnp.broadcast_to(even, (*row.targets.shape, self.states))

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        symbols = np.empty((count, self.length), dtype=np.int32)
        said = jax.jit(self._law())
        past = np.full((count, self.longest - 1), self.states, dtype=np.int32)
        for t in range(self.length):
            logits = np.asarray(said(past), dtype=np.float64)
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            bounds = np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)[:, :-1]
            symbols[:, t] = (rng.random((count, 1)) >= bounds).sum(axis=1)
            past = np.concatenate([symbols[:, t : t + 1], past], axis=1)[:, :-1]
        return symbols[:, :-1], symbols


SANDBOX = Entry(
    NGramFamily,
    small={
        "longest": 3,
        "states": 3,
        "widest": 2,
        "length": 5,
        "n": 3.0,
        "used": 2.0,
        "rank": 1.0,
        "family": "general",
    },
)
