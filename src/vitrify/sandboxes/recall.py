r"""Associative recall with many questions: pairs of a key and a value, then among other symbols every key once more.

The first $2P$ symbols are $P$ pairs with different keys. Behind them every second place may hold a question, a key of
the sequence that asks for its value; pair after pair takes the $i$-th of the free ones with probability proportional to
$i^{a-1}$, so questions crowd near the pairs. All other places hold blanks or random symbols, and nothing is asked
there. The value is what `vitrify.spec.tasks.recall` says. Source: Arora et al. 2023, arXiv 2312.04927.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Float
from vitrify.sandboxes.catalogue import MAX_SYMBOLS, Count, Defined, Entry, Exact, Example, LogProbs, Positive, Within
from vitrify.sandboxes.kit.draws import below, distinct, logarithm, waits
from vitrify.spec.tasks.recall import Recall as Task


@dataclass(frozen=True)
class RecallSandbox(Defined, Exact):
    """`length` symbols with `pairs` pairs and as many questions; half the vocabulary are keys, with the blank."""

    PREDICTORS = ("told",)
    RECORDED = "Recall"

    vocabulary: Annotated[int, Within(4, MAX_SYMBOLS)] = 256
    pairs: Count = 4
    length: int = 64
    power: Positive = 0.01
    filler: Literal["random", "blank"] = "random"

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        if self.length < 4 * self.pairs:
            yield "length", f"must be at least 4 pairs = {4 * self.pairs}, not {self.length}"

    @property
    def keys(self) -> int:
        """The number of different keys."""
        return self.vocabulary // 2 - 1

    @cached_property
    def definition(self) -> Task:
        """The pairs and questions without what stands between them."""
        return Task(self.keys, self.vocabulary - self.vocabulary // 2, self.pairs, self.pairs, fused=False)

    @property
    def symbols(self) -> tuple[str, ...]:
        return ("_", *self.definition.alphabet)

    @property
    def tokens(self) -> int:
        return self.length

    @property
    def spots(self) -> int:
        """The number of positions that may hold a query."""
        return self.length // 2 - self.pairs

    def shares(self) -> Float[Array, " spot"]:
        """Return the distribution of the first query over the free positions."""
        p = np.arange(1, self.spots + 1) ** (self.power - 1.0)
        return p / p.sum()

    def draw(self, key: Array) -> Example:
        pair_tokens = 2 * self.pairs
        sizes = np.cumsum([self.pairs, self.pairs, self.spots])
        bits = jax.random.bits(key, (sizes[-1] + (self.length - pair_tokens) * (self.filler == "random"),))
        one, two, three, four = jnp.split(bits, sizes)
        keys, values = 1 + distinct(one, self.keys), below(two, len(self.answers))
        times = waits(three).astype(jnp.float32) * (1 / self.shares() / self.spots).astype(np.float32)
        places = pair_tokens + 2 * jnp.argsort(times)[: self.pairs].astype(jnp.int32)
        pairs = jnp.stack([keys, values + self.vocabulary // 2], axis=1).reshape(-1)
        rest = below(four, self.vocabulary) if len(four) else jnp.zeros(self.length - pair_tokens, jnp.int32)
        tokens = jnp.concatenate([pairs, rest]).at[places].set(keys, unique_indices=True)
        targets = jnp.zeros(self.length + 1, jnp.int32).at[places + 1].set(values, unique_indices=True)
        weight = jnp.zeros(self.length + 1).at[places + 1].set(1.0, unique_indices=True)
        return Example(tokens, targets, weight, {"position": places})

    def right(self, tokens: Array) -> Array:
        """The value of the pair with this key."""
        keys, values = tokens[: 2 * self.pairs : 2], tokens[1 : 2 * self.pairs : 2] - self.vocabulary // 2
        return jnp.pad(values[jnp.argmax(tokens[:, None] == keys, axis=1)], (1, 0))

    def told(self, example: Example) -> LogProbs:
        """The values of this sequence, each as often as it was told, whatever the key."""
        values = example.tokens[1 : 2 * self.pairs : 2] - self.vocabulary // 2
        shares = (values[:, None] == jnp.arange(len(self.answers))).mean(axis=0)
        known = jnp.arange(self.length + 1) >= 2 * self.pairs
        return jnp.where(known[:, None], logarithm(shares), self.uniform(example))


SANDBOX = Entry(RecallSandbox, small={"vocabulary": 8, "pairs": 2, "length": 10, "power": 0.5, "filler": "blank"})
