r"""Brackets of several kinds that are balanced each by itself: kinds may cross, so counters do where a stack did.

While any bracket is open, an opening one of any of the $k$ kinds comes with probability `opening`, and else a closing
one, of any kind that is open; with none open one opens. A row is the beginning of this endless text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import logarithm, whole
from vitrify.sandboxes.catalogue import Entry, Predictor, Row, Sandbox
from vitrify.spec.dyck import Dyck


@dataclass(frozen=True)
class ShuffleDyck(Sandbox):
    """Rows of `length` brackets of `kinds` kinds."""

    TRACED: ClassVar[tuple[str, ...]] = ("opening",)

    kinds: int = 2
    length: int = 64
    opening: float = 0.5

    def problems(self) -> Iterator[str]:
        if self.kinds < 1:
            yield f"kinds must be at least 1, not {self.kinds}"
        if self.length < 2:
            yield f"length must be at least 2, not {self.length}"
        if not 0 < self.opening < 1:
            yield f"opening must lie between 0 and 1, not {self.opening:g}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return Dyck.of_kinds(self.kinds, self.length, self.length).vocabulary

    @property
    def tokens(self) -> int:
        return self.length - 1

    def draw(self, key: Array) -> Row:
        kinds = jnp.arange(self.kinds)

        def step(heights: Array, u: Array) -> tuple[Array, tuple[Array, Array]]:
            waiting = heights > 0
            count = waiting.sum()
            opens = (u[0] < self.opening) | (count == 0)
            picked = whole(u[1], jnp.where(opens, self.kinds, count))  # of all kinds, or of those that wait
            here = jnp.where(opens, kinds == picked, waiting & (jnp.cumsum(waiting) == picked + 1))
            heights = heights + jnp.where(here, jnp.where(opens, 1, -1), 0)
            return heights, (2 * (here * kinds).sum() + (1 - opens), heights)

        u = jax.random.uniform(key, (self.length, 2))
        _, (brackets, heights) = jax.lax.scan(step, jnp.zeros(self.kinds, jnp.int32), u)
        brackets = brackets.astype(jnp.int32)
        return Row(brackets[:-1], brackets, jnp.ones(self.length), {"heights": heights})

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        heights, found = np.zeros((count, self.kinds), dtype=np.int32), np.empty((count, self.length), dtype=np.int32)
        for t in range(self.length):
            weights = (1 - self.opening) * (heights > 0) / np.maximum((heights > 0).sum(axis=1, keepdims=True), 1)
            law = np.stack([np.full_like(weights, self.opening / self.kinds), weights], axis=-1).reshape(count, -1)
            sums = np.cumsum(law, axis=1)
            found[:, t] = (rng.random((count, 1)) * sums[:, -1:] >= sums[:, :-1]).sum(axis=1)
            heights[np.arange(count), found[:, t] // 2] += 1 - 2 * (found[:, t] % 2)
        return found[:, :-1], found

    def _heights(self, row: Row) -> Array:
        """How many brackets of each kind are open after each number of them: [n + 1, kind]."""
        moves = jax.nn.one_hot(row.tokens // 2, self.kinds) * (1 - 2 * (row.tokens % 2))[:, None]
        return jnp.pad(jnp.cumsum(moves, axis=0), ((1, 0), (0, 0)))

    def optimal(self, row: Row) -> Array:
        waiting = self._heights(row) > 0
        return self._predicted(row, waiting / jnp.maximum(waiting.sum(axis=1, keepdims=True), 1))

    def _predicted(self, row: Row, closing: Array) -> Array:
        """The law, given that a closing bracket is of each kind with some probability [place, kind]."""
        opens = jnp.where(self._heights(row).sum(axis=1, keepdims=True) > 0, self.opening, 1.0)
        pairs = jnp.stack([jnp.broadcast_to(opens / self.kinds, closing.shape), (1 - opens) * closing], axis=-1)
        return logarithm(pairs.reshape(self.length, -1))

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "one counter": self.one_counter}

    def one_counter(self, row: Row) -> Array:
        """Knows how many brackets are open in all, and not of which kinds."""
        return self._predicted(row, jnp.full((self.length, self.kinds), 1 / self.kinds))


SANDBOX = Entry(ShuffleDyck, small={"length": 6, "opening": 0.4})
