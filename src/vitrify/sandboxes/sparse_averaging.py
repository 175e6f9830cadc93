r"""Sparse averaging: every position points at a few positions and asks for the mean of the vectors that stand there.

Tokens are those of `vitrify.spec.tasks.sparse_averaging`: a unit vector with a sign, and the positions that it points
at, all uniform. The answer depends on the whole row. To average unit vectors is to say how often each of them occurs,
so the target is a distribution: `soft` holds the share of each vector, from which the mean is the sum of the vectors,
weighted by their shares; `targets` holds the vector at one of the positions, chosen at random, whose distribution that
is. Source: Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below
from vitrify.sandboxes._exact import MOST, logs
from vitrify.sandboxes.catalogue import Entry, Predictor, Row, Sandbox
from vitrify.spec.tasks.sparse_averaging import SparseAveraging as Task


@dataclass(frozen=True)
class SparseAveraging(Sandbox):
    """Rows of `length` positions that point at `sparsity` positions each; vectors have `dimensions` numbers."""

    kind = "class"

    length: int = 16
    sparsity: int = 2
    dimensions: int = 2

    def problems(self) -> Iterator[str]:
        for name in ("length", "sparsity", "dimensions"):
            if getattr(self, name) < 1:
                yield f"{name} must be at least 1, not {getattr(self, name)}"
        if self.sparsity > self.length:
            yield f"sparsity must be at most length = {self.length}, not {self.sparsity}"
        elif self.sparsity > 0 and 2 * self.dimensions * comb(self.length, self.sparsity) > MOST:
            yield f"there must be at most {MOST} symbols, a vector and a set each: make one of the numbers smaller"

    @property
    def bidirectional(self) -> bool:
        return True

    @cached_property
    def task(self) -> Task:
        """What is asked."""
        return Task(self.length, self.sparsity, self.dimensions)

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.task.alphabet

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(f"{k + 1}{sign}" for k in range(self.dimensions) for sign in "+-")

    @property
    def tokens(self) -> int:
        return self.length

    @cached_property
    def _pointers(self) -> Any:
        """The positions of every set [set, place in it], from 0."""
        return np.array(self.task.pointers, dtype=np.int32) - 1

    def draw(self, key: Array) -> Row:
        one, two = jnp.split(jax.random.bits(key, (2 * self.length,)), 2)
        tokens = below(one, len(self.symbols))
        held = self._held(tokens)  # [position, place in its set]
        target = jnp.take_along_axis(held, below(two, self.sparsity)[:, None], axis=1)[:, 0]
        soft = jnp.pad(self._shares(held), ((1, 0), (0, 0)), constant_values=1 / len(self.answers))
        weight = jnp.pad(jnp.ones(self.length), (1, 0))
        mean = self._shares(held) @ jnp.asarray(self.task.vectors, jnp.float32)
        return Row(tokens, jnp.pad(target, (1, 0)), weight, {"mean": mean}, soft)

    def _held(self, tokens: Array) -> Array:
        """The vectors that each position points at."""
        vector, pointer = jnp.divmod(tokens, len(self._pointers))
        return vector[jnp.asarray(self._pointers)[pointer]]

    def _shares(self, held: Array) -> Array:
        return (held[:, :, None] == jnp.arange(len(self.answers))).mean(axis=1)

    def optimal(self, row: Row) -> Array:
        """How often each vector stands where a position points."""
        return jnp.concatenate([self.uniform(row)[:1], logs(self._shares(self._held(row.tokens)))])

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "unigram": self.unigram}

    def unigram(self, row: Row) -> Array:
        """How often each vector stands anywhere in the row."""
        vector = row.tokens // len(self._pointers)
        shares = (vector[:, None] == jnp.arange(len(self.answers))).mean(axis=0)
        return jnp.broadcast_to(logs(shares), (*row.targets.shape, len(self.answers)))

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        vectors = rng.integers(len(self.answers), size=(count, self.length))
        sets = rng.integers(len(self._pointers), size=(count, self.length))
        one = self._pointers[sets, rng.integers(self.sparsity, size=sets.shape)]
        targets = np.take_along_axis(vectors, one, axis=1)
        return vectors * len(self._pointers) + sets, np.pad(targets, ((0, 0), (1, 0)))


SANDBOX = Entry(SparseAveraging, small={"length": 3, "sparsity": 2, "dimensions": 1})
