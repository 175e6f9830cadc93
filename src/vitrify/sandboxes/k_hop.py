r"""k-hop: in a random word, go from a symbol to its last occurrence and one place on, $k$ times; what stands there?

With $\mathrm{find}(i) = \max\{j \le i : x_{j-1} = x_i\}$ the answer at $i$ is the symbol at $\mathrm{find}^k(i)$, and
`(none)` where one of the hops finds nothing, as `vitrify.spec.tasks.k_hop` has it. Symbols are independent and uniform.
Source: Sanford, Hsu and Telgarsky 2024, arXiv 2402.09268.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below
from vitrify.sandboxes._exact import MOST, Exact, logs
from vitrify.sandboxes.catalogue import Entry, Predictor, Row
from vitrify.spec.tasks.catalogue import NONE, letters

LONGEST = 1 << 15  # a symbol and a place fit in one whole number


@dataclass(frozen=True)
class KHop(Exact):
    """Words of `length` uniform symbols, with a question at each."""

    hops: int = 1
    states: int = 8
    length: int = 64

    def problems(self) -> Iterator[str]:
        if self.hops < 1:
            yield f"hops must be at least 1, not {self.hops}"
        if not 1 <= self.states <= MOST:
            yield f"states must be from 1 to {MOST}, not {self.states}"
        if not 2 <= self.length <= LONGEST:
            yield f"length must be from 2 to {LONGEST}, not {self.length}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return letters(self.states)

    @property
    def answers(self) -> tuple[str, ...]:
        return (NONE, *self.symbols)

    @property
    def tokens(self) -> int:
        return self.length

    def draw(self, key: Array) -> Row:
        tokens = below(jax.random.bits(key, (self.length,)), self.states)
        found = self.found(tokens)
        return Row(tokens, self.reached(tokens, found[-1]), self.weight(found), {"hops": found})

    def found(self, tokens: Array) -> Array:
        """Where each hop from each place ends [hop, place]; places count from 1, and 0 is nowhere."""
        find = following(tokens)

        def hop(at: Array, _: None) -> tuple[Array, Array]:
            at = jnp.where(at > 0, find[at - 1], 0)
            return at, at

        return jnp.concatenate([find[None], jax.lax.scan(hop, find, None, length=self.hops - 1)[1]])

    def reached(self, tokens: Array, found: Array) -> Array:
        """The answer that stands at each place, and one to no question before the first."""
        return jnp.pad(jnp.where(found > 0, tokens[found - 1] + self.shift, 0), (1, 0))

    @property
    def shift(self) -> int:
        """How many answers are no symbols."""
        return len(self.answers) - self.states

    def weight(self, found: Array) -> Array:
        """One for every symbol."""
        return jnp.pad(jnp.ones(found.shape[1]), (1, 0))

    def right(self, tokens: Array) -> Array:
        """What stands where the last hop ends."""
        return self.reached(tokens, self.found(tokens)[-1])

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "unigram": self.unigram}

    def unigram(self, row: Row) -> Array:
        """How often each symbol came up so far, with one more of each answer."""
        seen = jnp.cumsum(row.tokens[:, None] == jnp.arange(-self.shift, self.states), axis=0) + 1.0
        return jnp.concatenate([self.uniform(row)[:1], logs(seen / seen.sum(axis=1, keepdims=True))])

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        every = np.arange(count)
        tokens = rng.integers(self.states, size=(count, self.length))
        find = np.zeros((count, self.length + 1), dtype=np.int64)
        behind = np.zeros((count, self.states), dtype=np.int64)  # the place behind the last occurrence, or 0
        targets = np.zeros((count, self.length + 1), dtype=np.int64)
        for t in range(1, self.length + 1):
            if t > 1:
                behind[every, tokens[:, t - 2]] = t
            at = find[:, t] = behind[every, tokens[:, t - 1]]
            for _ in range(self.hops - 1):
                at = find[every, at]
            targets[:, t] = np.where(at > 0, tokens[every, at - 1] + self.shift, 0)
        return tokens, targets


def following(tokens: Array) -> Array:
    """For each place, the place behind the last earlier one with the same symbol; they count from 1, 0 is none.

    Sorted by symbol and then by place, the earlier one stands right before.
    """
    length = len(tokens)
    place = jnp.arange(length, dtype=jnp.int32)
    symbol, at = jnp.divmod(jnp.sort(tokens * length + place), length)
    again = (symbol == jnp.roll(symbol, 1)) & (place > 0)
    return jnp.zeros(length, jnp.int32).at[at].set(jnp.where(again, jnp.roll(at, 1) + 2, 0), unique_indices=True)


SANDBOX = Entry(KHop, small={"hops": 2, "states": 2, "length": 7})
