r"""Composition: the tables of two random functions, entry by entry in a random order, then a question for $f(g(x))$.

`g3=5` says that $g(3) = 5$; after all entries of both functions, `x=3` asks for $f(g(3))$, as
`vitrify.spec.tasks.composition` has it. Source: Peng, Narayanan and Papadimitriou 2024, arXiv 2402.08164.
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
from vitrify.sandboxes._exact import Exact, logs, shuffled
from vitrify.sandboxes.catalogue import Entry, Predictor, Row
from vitrify.spec.tasks.composition import Composition as Task

LARGEST = 512


@dataclass(frozen=True)
class Composition(Exact):
    """Functions on `size` numbers; one question at the end."""

    size: int = 16

    def problems(self) -> Iterator[str]:
        if not 1 <= self.size <= LARGEST:
            yield f"size must be from 1 to {LARGEST}, not {self.size}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return Task(self.size).alphabet

    @property
    def answers(self) -> tuple[str, ...]:
        return Task(self.size).outputs

    @property
    def tokens(self) -> int:
        return 2 * self.size + 1

    def draw(self, key: Array) -> Row:
        n = self.size
        bits = jax.random.bits(key, (4 * n + 1,))
        place = shuffled(bits[: 2 * n])  # entries of g, then of f
        tokens = jnp.concatenate([place * n + below(bits[2 * n : -1], n), 2 * n * n + below(bits[-1:], n)])
        told = self.told(tokens)
        weight = jnp.zeros(self.tokens + 1).at[-1].set(1.0)
        return Row(tokens, self.right(tokens), weight, {"g": told[:n], "f": told[n:]})

    def told(self, tokens: Array) -> Array:
        """The tables of g and of f [argument], read off the entries."""
        place, value = jnp.divmod(tokens[:-1], self.size)
        return jnp.zeros(2 * self.size, jnp.int32).at[place].set(value, unique_indices=True)

    def right(self, tokens: Array) -> Array:
        """Look up twice."""
        place, value = jnp.divmod(tokens[:-1], self.size)
        middle = jnp.sum(jnp.where(place == tokens[-1] - 2 * self.size**2, value, 0))
        answer = jnp.sum(jnp.where(place == self.size + middle, value, 0))
        return jnp.zeros(self.tokens + 1, jnp.int32).at[-1].set(answer)

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "image": self.image}

    def image(self, row: Row) -> Array:
        """The values of f, each as often as f takes it, whatever is asked."""
        f = self.told(row.tokens)[self.size :]
        shares = (f[:, None] == jnp.arange(self.size)).mean(axis=0)
        return self.uniform(row).at[-1].set(logs(shares))

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        n, rows = self.size, np.arange(count)
        values = rng.integers(n, size=(count, 2 * n))
        entries = np.arange(2 * n) * n + values
        x = rng.integers(n, size=count)
        tokens = np.concatenate([rng.permuted(entries, axis=1), 2 * n * n + x[:, None]], axis=1)
        targets = np.zeros((count, self.tokens + 1), dtype=np.int64)
        targets[:, -1] = values[rows, n + values[rows, x]]
        return tokens, targets


SANDBOX = Entry(Composition, small={"size": 2})
