r"""Brackets of several kinds that are balanced each by itself: kinds may cross, so counters do where a stack did.

While any bracket is open, an opening one of any of the $k$ kinds comes with probability `opening`, and else a closing
one, of any kind that is open; with none open one opens. A sequence is the beginning of this endless text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from vitrify.sandboxes.catalogue import Array, Count, Entry, Example, LogProbs, NextSymbol, Within
from vitrify.sandboxes.kit.draws import integer_below, logarithm
from vitrify.spec.languages.dyck import Dyck


@dataclass(frozen=True)
class ShuffleDyck(NextSymbol):
    """Sequences of `length` brackets of `kinds` kinds."""

    PREDICTORS = ("one counter",)
    TRACED = ("opening",)

    kinds: Count = 2
    length: Annotated[int, Within(2)] = 64
    opening: Annotated[float, Within(0, 1, "()")] = 0.5

    @property
    def symbols(self) -> tuple[str, ...]:
        return Dyck.of_kinds(self.kinds, self.length, self.length).vocabulary

    def draw(self, key: Array) -> Example:
        kinds = jnp.arange(self.kinds)

        def step(heights: Array, u: Array) -> tuple[Array, tuple[Array, Array]]:
            waiting = heights > 0
            count = waiting.sum()
            opens = (u[0] < self.opening) | (count == 0)
            picked = integer_below(u[1], jnp.where(opens, self.kinds, count))  # of all kinds, or of those that wait
            here = jnp.where(opens, kinds == picked, waiting & (jnp.cumsum(waiting) == picked + 1))
            heights = heights + jnp.where(here, jnp.where(opens, 1, -1), 0)
            return heights, (2 * (here * kinds).sum() + (1 - opens), heights)

        u = jax.random.uniform(key, (self.length, 2))
        _, (brackets, heights) = jax.lax.scan(step, jnp.zeros(self.kinds, jnp.int32), u)
        brackets = brackets.astype(jnp.int32)
        return Example(brackets[:-1], brackets, jnp.ones(self.length), {"heights": heights})

    def _heights(self, example: Example) -> Array:
        """Return the number of open brackets of each kind after 0, …, n symbols: [n + 1, kind]."""
        moves = jax.nn.one_hot(example.tokens // 2, self.kinds) * (1 - 2 * (example.tokens % 2))[:, None]
        return jnp.pad(jnp.cumsum(moves, axis=0), ((1, 0), (0, 0)))

    def optimal(self, example: Example) -> LogProbs:
        waiting = self._heights(example) > 0
        return self._predicted(example, waiting / jnp.maximum(waiting.sum(axis=1, keepdims=True), 1))

    def _predicted(self, example: Example, closing: Array) -> LogProbs:
        """The law, given that a closing bracket is of each kind with some probability [place, kind]."""
        opens = jnp.where(self._heights(example).sum(axis=1, keepdims=True) > 0, self.opening, 1.0)
        pairs = jnp.stack([jnp.broadcast_to(opens / self.kinds, closing.shape), (1 - opens) * closing], axis=-1)
        return logarithm(pairs.reshape(self.length, -1))

    def one_counter(self, example: Example) -> LogProbs:
        """Knows how many brackets are open in all, and not of which kinds."""
        return self._predicted(example, jnp.full((self.length, self.kinds), 1 / self.kinds))


SANDBOX = Entry(ShuffleDyck, small={"length": 6, "opening": 0.4})
