r"""Sparse averaging: every position points at a few positions and asks for the mean of the vectors that stand there.

Tokens are those of `vitrify.spec.tasks.sparse_averaging`: a unit vector with a sign, and the positions that it points
at, all uniform. The answer depends on the whole sequence. To average unit vectors is to say how often each of them
occurs, so the target is a distribution: `soft` holds the share of each vector, from which the mean is the sum of the
vectors, weighted by their shares; `targets` holds the vector at one of the positions, chosen at random, whose
distribution that is. Source: Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.sandboxes.catalogue import Array, Count, Defined, Entry, Example, Int, LogProbs
from vitrify.sandboxes.kit.draws import below, logarithm
from vitrify.spec.tasks.sparse_averaging import SparseAveraging as Task


@dataclass(frozen=True)
class SparseAveragingSandbox(Defined):
    """Sequences of `length` positions that point at `sparsity` positions each; vectors have `dimensions` numbers."""

    PREDICTORS = ("unigram",)
    bidirectional = True
    RECORDED = "SparseAveraging"

    kind = "class"

    length: Count = 16
    sparsity: Count = 2
    dimensions: Count = 2

    @cached_property
    def definition(self) -> Task:
        return Task(self.length, self.sparsity, self.dimensions)

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(f"{k + 1}{sign}" for k in range(self.dimensions) for sign in "+-")

    @cached_property
    def _pointers(self) -> Int[Array, "set place"]:
        """The positions of every set [set, place in it], from 0."""
        return np.array(self.definition.pointers, dtype=np.int32) - 1

    def draw(self, key: Array) -> Example:
        one, two = jnp.split(jax.random.bits(key, (2 * self.length,)), 2)
        tokens = below(one, len(self.symbols))
        held = self._held(tokens)  # [position, place in its set]
        target = jnp.take_along_axis(held, below(two, self.sparsity)[:, None], axis=1)[:, 0]
        soft = jnp.pad(self._shares(held), ((1, 0), (0, 0)), constant_values=1 / len(self.answers))
        weight = jnp.pad(jnp.ones(self.length), (1, 0))
        mean = self._shares(held) @ jnp.asarray(self.definition.vectors, jnp.float32)
        return Example(tokens, jnp.pad(target, (1, 0)), weight, {"mean": mean}, soft)

    def _held(self, tokens: Array) -> Array:
        """The vectors that each position points at."""
        vector, pointer = jnp.divmod(tokens, len(self._pointers))
        return vector[jnp.asarray(self._pointers)[pointer]]

    def _shares(self, held: Array) -> Array:
        return (held[:, :, None] == jnp.arange(len(self.answers))).mean(axis=1)

    def optimal(self, example: Example) -> LogProbs:
        """Return the frequencies of the vectors at the positions in each pointer set."""
        return jnp.concatenate([self.uniform(example)[:1], logarithm(self._shares(self._held(example.tokens)))])

    def unigram(self, example: Example) -> LogProbs:
        """Return the frequencies of the vectors in the sequence."""
        vector = example.tokens // len(self._pointers)
        shares = (vector[:, None] == jnp.arange(len(self.answers))).mean(axis=0)
        return jnp.broadcast_to(logarithm(shares), (*example.targets.shape, len(self.answers)))


SANDBOX = Entry(SparseAveragingSandbox, small={"length": 3, "sparsity": 2, "dimensions": 1})
