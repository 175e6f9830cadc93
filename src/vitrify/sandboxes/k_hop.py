r"""k-hop: in a random word, go from a symbol to its last occurrence and one place on, $k$ times; what stands there?

With $\mathrm{find}(i) = \max\{j \le i : x_{j-1} = x_i\}$ the answer at $i$ is the symbol at $\mathrm{find}^k(i)$, and
`(none)` where one of the hops finds nothing, as `vitrify.spec.tasks.k_hop` has it. Symbols are independent and uniform.
Source: Sanford, Hsu and Telgarsky 2024, arXiv 2402.09268.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import jax
import jax.numpy as jnp

from vitrify.sandboxes.catalogue import MAX_SYMBOLS, Array, Count, Defined, Entry, Exact, Example, LogProbs, Within
from vitrify.sandboxes.kit.draws import below, logarithm
from vitrify.spec.tasks.k_hop import KHop as Task

LONGEST = 1 << 15  # a symbol and a place fit in one whole number


@dataclass(frozen=True)
class KHopSandbox(Defined, Exact):
    """Words of `length` uniform symbols, with a question at each."""

    PREDICTORS = ("unigram",)
    RECORDED = "KHop"

    hops: Count = 1
    states: Annotated[int, Within(1, MAX_SYMBOLS)] = 8
    length: Annotated[int, Within(2, LONGEST)] = 64

    @cached_property
    def definition(self) -> Task:
        return Task(self.hops, self.states, self.length)

    def draw(self, key: Array) -> Example:
        tokens = below(jax.random.bits(key, (self.length,)), self.states)
        ends = self.hop_ends(tokens)
        return Example(tokens, self.reached(tokens, ends[-1]), self.weight(ends), {"hops": ends})

    def hop_ends(self, tokens: Array) -> Array:
        """Return the position where each hop from each position ends [hop, position], counted from 1; 0 is nowhere."""
        find = following(tokens)

        def hop(at: Array, _: None) -> tuple[Array, Array]:
            at = jnp.where(at > 0, find[at - 1], 0)
            return at, at

        return jnp.concatenate([find[None], jax.lax.scan(hop, find, None, length=self.hops - 1)[1]])

    def reached(self, tokens: Array, ends: Array) -> Array:
        """Return the answer at each position, with one more in front."""
        return jnp.pad(jnp.where(ends > 0, tokens[ends - 1] + self.shift, 0), (1, 0))

    @property
    def shift(self) -> int:
        """The number of answers that are no symbols."""
        return len(self.answers) - self.states

    def weight(self, ends: Array) -> Array:
        """One for every symbol."""
        return jnp.pad(jnp.ones(ends.shape[1]), (1, 0))

    def right(self, tokens: Array) -> Array:
        """Return the symbol at which the last hop ends."""
        return self.reached(tokens, self.hop_ends(tokens)[-1])

    def unigram(self, example: Example) -> LogProbs:
        """Return the frequencies of the symbols so far, with add-one smoothing."""
        seen = jnp.cumsum(example.tokens[:, None] == jnp.arange(-self.shift, self.states), axis=0) + 1.0
        return jnp.concatenate([self.uniform(example)[:1], logarithm(seen / seen.sum(axis=1, keepdims=True))])


def following(tokens: Array) -> Array:
    """For each place, the place behind the last earlier one with the same symbol; they count from 1, 0 is none.

    Sorted by symbol and then by place, the earlier one stands right before.
    """
    length = len(tokens)
    place = jnp.arange(length, dtype=jnp.int32)
    symbol, at = jnp.divmod(jnp.sort(tokens * length + place), length)
    again = (symbol == jnp.roll(symbol, 1)) & (place > 0)
    return jnp.zeros(length, jnp.int32).at[at].set(jnp.where(again, jnp.roll(at, 1) + 2, 0), unique_indices=True)


SANDBOX = Entry(KHopSandbox, small={"hops": 2, "states": 2, "length": 7})
