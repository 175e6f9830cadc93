"""Words of bits with as many ones as one likes: what questions about their number share.

A row is $L$ bits, a separator `|`, and blanks up to a fixed length. $L$ is uniform between two bounds, the number of
ones is uniform between two bounds, and then every word is equally likely: the number of ones would else always be near
half, and a network could get away with guessing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below
from vitrify.sandboxes._exact import Exact, logs
from vitrify.sandboxes.catalogue import Predictor, Row

LONG = 1 << 10  # so that 21 random bits are left where the others are a place
NEVER = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True)
class Bits(Exact):
    """Words of `shortest` to `longest` bits with `fewest` to `most` ones, asked about at the `end` or `all` along."""

    shortest: int = 1
    longest: int = 40
    fewest: int = 0
    most: int | None = None
    asked: Literal["end", "all"] = "end"

    def problems(self) -> Iterator[str]:
        if not 1 <= self.shortest <= self.longest <= LONG:
            yield f"1 ≤ shortest ≤ longest ≤ {LONG} must hold, not {self.shortest} and {self.longest}"
        if not 0 <= self.fewest <= min(self.shortest, self.most or self.shortest):
            yield f"fewest must be from 0 to shortest and to most, not {self.fewest}"
        if self.most is not None and self.most < 0:
            yield f"most must be at least 0, not {self.most}"

    @abstractmethod
    def answer(self, ones: Array, bits: Array) -> Array:
        """The right answer after so many ones among so many bits, for NumPy and JAX numbers."""

    @property
    def symbols(self) -> tuple[str, ...]:
        return ("0", "1", "|", "_")

    @property
    def tokens(self) -> int:
        return self.longest + 1

    def draw(self, key: Array) -> Row:
        bits = jax.random.bits(key, (2 + self.longest,))
        length = self.shortest + below(bits[0], self.longest - self.shortest + 1)
        ones = self.fewest + below(bits[1], self._top(length) - self.fewest + 1)
        place = jnp.arange(self.longest, dtype=jnp.uint32)
        low = (1 << self.longest.bit_length()) - 1
        worth = jnp.where(place < length, (bits[2:] & ~np.uint32(low)) | place, NEVER)  # all differ
        bound = jnp.pad(jnp.sort(worth), (0, 1), constant_values=NEVER)[ones]
        tokens = jnp.where(place < length, (worth < bound).astype(jnp.int32), 3)
        tokens = jnp.pad(tokens, (0, 1), constant_values=3).at[length].set(2)
        targets, weight = self._asked(tokens)
        return Row(tokens, targets, weight, {"length": length, "ones": ones})

    def _top(self, length: Array) -> Array:
        """The most ones that a word of a length may have."""
        return length if self.most is None else jnp.minimum(length, self.most)

    def _asked(self, tokens: Array) -> tuple[Array, Array]:
        """Targets and weights, from the bits that were read so far."""
        ones, bits = (jnp.pad(jnp.cumsum(mask), (1, 0)) for mask in (tokens == 1, tokens < 2))
        question = jnp.pad(tokens < 2 if self.asked == "all" else tokens == 2, (1, 0))
        return jnp.where(question, self.answer(ones, bits), 0).astype(jnp.int32), question.astype(jnp.float32)

    def right(self, tokens: Array) -> Array:
        """The count decides."""
        return self._asked(tokens)[0]

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform} | ({"length": self.length} if self.asked == "end" else {})

    def length(self, row: Row) -> Array:
        """How often each answer is right for words of this length, whatever the bits are."""
        bits = jnp.sum(row.tokens < 2)
        ones = jnp.arange(self.longest + 1)
        allowed = (ones >= self.fewest) & (ones <= self._top(bits))
        right = self.answer(ones, bits)[:, None] == jnp.arange(len(self.answers))
        shares = (right & allowed[:, None]).sum(axis=0) / allowed.sum()
        return jnp.where(row.weight[:, None] > 0, logs(shares), self.uniform(row))

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        place = np.arange(self.longest)
        length = rng.integers(self.shortest, self.longest + 1, size=(count, 1))
        top = length if self.most is None else np.minimum(length, self.most)
        ones = rng.integers(self.fewest, top + 1)
        order = np.argsort(np.where(place < length, rng.random((count, self.longest)), 2.0), axis=1)
        tokens = np.full((count, self.tokens), 3)
        tokens[:, :-1] = np.where(place < length, np.argsort(order, axis=1) < ones, 3)
        tokens[np.arange(count), length[:, 0]] = 2
        answers = self.answer(np.cumsum(tokens[:, :-1] == 1, axis=1), place + 1)
        targets = np.zeros((count, self.tokens + 1), dtype=np.int64)
        if self.asked == "all":
            targets[:, 1:-1] = np.where(place < length, answers, 0)
        else:
            targets[np.arange(count), length[:, 0] + 1] = np.take_along_axis(answers, length - 1, axis=1)[:, 0]
        return tokens, targets
