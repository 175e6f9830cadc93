r"""Associative recall with many questions: pairs of a key and a value, then among other symbols every key once more.

The first $2P$ symbols are $P$ pairs with different keys. Behind them every second place may hold a question, a key of
the row that asks for its value; pair after pair takes the $i$-th of the free ones with probability proportional to
$i^{a-1}$, so questions crowd near the pairs. All other places hold blanks or random symbols, and nothing is asked
there. The value is what `vitrify.spec.tasks.recall` says. Source: Arora et al. 2023, arXiv 2312.04927.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below
from vitrify.sandboxes._exact import MOST, Exact, distinct, logs, waits
from vitrify.sandboxes.catalogue import Entry, Predictor, Row


@dataclass(frozen=True)
class Recall(Exact):
    """`length` symbols with `pairs` pairs and as many questions; half the vocabulary are keys, with the blank."""

    vocabulary: int = 256
    pairs: int = 4
    length: int = 64
    power: float = 0.01
    filler: Literal["random", "blank"] = "random"

    def problems(self) -> Iterator[str]:
        if not 4 <= self.vocabulary <= MOST:
            yield f"vocabulary must be from 4 to {MOST}, not {self.vocabulary}"
        if self.pairs < 1:
            yield f"pairs must be at least 1, not {self.pairs}"
        if self.pairs > self.keys:
            yield f"pairs must be at most the number of keys, {self.keys}, not {self.pairs}"
        if self.length < 4 * self.pairs:
            yield f"length must be at least 4 pairs = {4 * self.pairs}, not {self.length}"
        if not self.power > 0:
            yield f"power must be positive, not {self.power:g}"

    @property
    def keys(self) -> int:
        """How many different keys there are."""
        return self.vocabulary // 2 - 1

    @property
    def symbols(self) -> tuple[str, ...]:
        return ("_", *(f"k{key + 1}" for key in range(self.keys)), *self.answers)

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(f"v{value + 1}" for value in range(self.vocabulary - self.vocabulary // 2))

    @property
    def tokens(self) -> int:
        return self.length

    @property
    def spots(self) -> int:
        """How many places may hold a question."""
        return self.length // 2 - self.pairs

    def shares(self) -> Any:
        """How likely the first question is at each of them."""
        p = np.arange(1, self.spots + 1) ** (self.power - 1.0)
        return p / p.sum()

    def draw(self, key: Array) -> Row:
        told = 2 * self.pairs
        sizes = np.cumsum([self.pairs, self.pairs, self.spots])
        bits = jax.random.bits(key, (sizes[-1] + (self.length - told) * (self.filler == "random"),))
        one, two, three, four = jnp.split(bits, sizes)
        keys, values = 1 + distinct(one, self.keys), below(two, len(self.answers))
        times = waits(three).astype(jnp.float32) * (1 / self.shares() / self.spots).astype(np.float32)
        places = told + 2 * jnp.argsort(times)[: self.pairs].astype(jnp.int32)
        pairs = jnp.stack([keys, values + self.vocabulary // 2], axis=1).reshape(-1)
        rest = below(four, self.vocabulary) if len(four) else jnp.zeros(self.length - told, jnp.int32)
        tokens = jnp.concatenate([pairs, rest]).at[places].set(keys, unique_indices=True)
        targets = jnp.zeros(self.length + 1, jnp.int32).at[places + 1].set(values, unique_indices=True)
        weight = jnp.zeros(self.length + 1).at[places + 1].set(1.0, unique_indices=True)
        return Row(tokens, targets, weight, {"place": places})

    def right(self, tokens: Array) -> Array:
        """The value of the pair with this key."""
        keys, values = tokens[: 2 * self.pairs : 2], tokens[1 : 2 * self.pairs : 2] - self.vocabulary // 2
        return jnp.pad(values[jnp.argmax(tokens[:, None] == keys, axis=1)], (1, 0))

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "told": self.told}

    def told(self, row: Row) -> Array:
        """The values of this row, each as often as it was told, whatever the key."""
        values = row.tokens[1 : 2 * self.pairs : 2] - self.vocabulary // 2
        shares = (values[:, None] == jnp.arange(len(self.answers))).mean(axis=0)
        known = jnp.arange(self.length + 1) >= 2 * self.pairs
        return jnp.where(known[:, None], logs(shares), self.uniform(row))

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        every, told = np.arange(count), 2 * self.pairs
        tokens = rng.integers(self.vocabulary if self.filler == "random" else 1, size=(count, self.length))
        targets = np.zeros((count, self.length + 1), dtype=np.int64)
        keys = 1 + np.argsort(rng.random((count, self.keys)), axis=1)[:, : self.pairs]
        left = np.tile(self.shares(), (count, 1))
        for pair in range(self.pairs):
            bounds = np.cumsum(left, axis=1)
            spot = (rng.random((count, 1)) * bounds[:, -1:] >= bounds).sum(axis=1)
            left[every, spot] = 0.0
            value = rng.integers(len(self.answers), size=count)
            tokens[:, 2 * pair], tokens[:, 2 * pair + 1] = keys[:, pair], value + self.vocabulary // 2
            tokens[every, told + 2 * spot], targets[every, told + 2 * spot + 1] = keys[:, pair], value
        return tokens, targets


SANDBOX = Entry(Recall, small={"vocabulary": 8, "pairs": 2, "length": 10, "power": 0.5, "filler": "blank"})
