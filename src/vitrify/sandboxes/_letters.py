r"""Words of several letters, and a question at the end that is about how often each of them came.

A row is $x_1 \dots x_L$ `|` and blanks up to a fixed length, with $L$ uniform between two bounds. Each row has a law of
its own for its letters, uniform among all laws: if all had the same, letters would come about equally often in long
words. The law is never rounded: as many whole numbers as there are letters but one are drawn, and a letter is how many
of them are not above another.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, namespace
from vitrify.sandboxes._draws import below
from vitrify.sandboxes._exact import Exact
from vitrify.sandboxes.catalogue import Row

MOST = 64  # letters


@dataclass(frozen=True)
class Letters(Exact):
    """Words of `shortest` to `longest` letters out of `states`."""

    states: int = 3
    shortest: int = 1
    longest: int = 40

    def problems(self) -> Iterator[str]:
        if not 2 <= self.states <= MOST:
            yield f"states must be from 2 to {MOST}, not {self.states}"
        if not 1 <= self.shortest <= self.longest:
            yield f"1 ≤ shortest ≤ longest must hold, not {self.shortest} and {self.longest}"

    @abstractmethod
    def answer(self, counts: Array) -> Array:
        """The right answer where each letter came so often [..., letter], for NumPy and JAX numbers."""

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*self.answers, "|", "_")

    @property
    def tokens(self) -> int:
        return self.longest + 1

    def draw(self, key: Array) -> Row:
        bits = jax.random.bits(key, (self.states + self.longest,))
        length = self.shortest + below(bits[0], self.longest - self.shortest + 1)
        bounds, words = bits[1 : self.states], bits[self.states :]
        letters = (words[:, None] >= bounds).sum(axis=1).astype(jnp.int32)
        place = jnp.arange(self.tokens)
        tokens = jnp.where(place < length, jnp.pad(letters, (0, 1)), self.states + (place > length))
        weight = jnp.pad(tokens == self.states, (1, 0)).astype(jnp.float32)
        return Row(tokens, self.right(tokens), weight, {"length": length})

    def right(self, tokens: Array) -> Array:
        """Letters are counted up to the separator."""
        xp = namespace(tokens)
        counts = (tokens[..., None] == xp.arange(self.states)).sum(axis=-2)
        asked = xp.concatenate([xp.zeros_like(tokens[..., :1]), tokens], axis=-1) == self.states
        return xp.where(asked, self.answer(counts)[..., None], 0).astype(xp.int32)

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        place = np.arange(self.tokens)
        length = rng.integers(self.shortest, self.longest + 1, size=(count, 1))
        laws = np.cumsum(rng.dirichlet(np.ones(self.states), size=count), axis=1)[:, None, :-1]
        letters = (rng.random((count, self.tokens, 1)) >= laws).sum(axis=2)
        tokens = np.where(place < length, letters, self.states + (place > length))
        targets = np.zeros((count, self.tokens + 1), dtype=np.int64)
        for row, word in enumerate(tokens):
            often = np.bincount(word[: length[row, 0]], minlength=self.states)
            targets[row, length[row, 0] + 1] = self.answer(often)
        return tokens, targets
