r"""k-hop: $k$ times, go to the position right after the previous occurrence of the symbol; answer the symbol there.

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

LONGEST = 1 << 15  # symbol * length + position fits in an int32


@dataclass(frozen=True)
class KHopSandbox(Defined, Exact):
    """Words of `length` uniform symbols out of `states`, with a query at each position."""

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
        """Return the index of the answer at BOS (always 0) and at each position; index 0 is `(none)`."""
        return jnp.pad(jnp.where(ends > 0, tokens[ends - 1] + self.shift, 0), (1, 0))

    @property
    def shift(self) -> int:
        """The number of answers that are no symbols; they come first."""
        return len(self.answers) - self.states

    def weight(self, ends: Array) -> Array:
        """Return the weights of the queries: 0 at BOS, 1 at each position."""
        return jnp.pad(jnp.ones(ends.shape[1]), (1, 0))

    def right(self, tokens: Array) -> Array:
        """Return the indices of the right answers, as `reached` does."""
        return self.reached(tokens, self.hop_ends(tokens)[-1])

    def unigram(self, example: Example) -> LogProbs:
        """Return log-probabilities of answers by counts of the symbols so far, plus 1; `(none)` is never seen."""
        seen = jnp.cumsum(example.tokens[:, None] == jnp.arange(-self.shift, self.states), axis=0) + 1.0
        return jnp.concatenate([self.uniform(example)[:1], logarithm(seen / seen.sum(axis=1, keepdims=True))])


def following(tokens: Array) -> Array:
    """Return for each position the one right after the previous occurrence of its symbol, counted from 1; 0 is none.

    In the order by symbol and then by position, the previous occurrence stands right before.
    """
    length = len(tokens)
    place = jnp.arange(length, dtype=jnp.int32)
    symbol, at = jnp.divmod(jnp.sort(tokens * length + place), length)
    again = (symbol == jnp.roll(symbol, 1)) & (place > 0)
    return jnp.zeros(length, jnp.int32).at[at].set(jnp.where(again, jnp.roll(at, 1) + 2, 0), unique_indices=True)


SANDBOX = Entry(KHopSandbox, small={"hops": 2, "states": 2, "length": 7})
