r"""Words of letters or bits, and questions about how often each of them came.

A sequence is $x_1 \dots x_L$ `|` and blanks up to a fixed length, with $L$ uniform between two bounds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, namespace
from vitrify.parameters import Count, Natural, Within
from vitrify.sandboxes.catalogue import Exact, Example, LogProbs, Predictor
from vitrify.sandboxes.kit.draws import below, logarithm

MAX_BITS = 1 << 10  # so that 21 random bits are left where the others are a place
MAX_LETTERS = 64
NEVER = np.uint32(0xFFFFFFFF)


class Counted(Exact):
    """Words of `shortest` to `longest` letters, a separator, and blanks."""

    if TYPE_CHECKING:
        shortest: int
        longest: int

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.longest < self.shortest:
            yield "longest", f"must be at least shortest = {self.shortest}, not {self.longest}"

    @property
    def tokens(self) -> int:
        return self.longest + 1


@dataclass(frozen=True)
class BitSandbox(Counted):
    """Words of `shortest` to `longest` bits, `min_ones` to `max_ones` of them 1, scored at the `end` or at `all` bits.

    The number of ones is uniform between its bounds, and then every word is equally likely: it would else always be
    near half, and a network could get away with guessing.
    """

    symbols = ("0", "1", "|", "_")

    shortest: Annotated[int, Within(1, MAX_BITS)] = 1
    longest: Annotated[int, Within(1, MAX_BITS)] = 40
    min_ones: Natural = 0
    max_ones: Natural | None = None
    scored: Literal["end", "all"] = "end"

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        top = self.shortest if self.max_ones is None else min(self.shortest, self.max_ones)
        if self.min_ones > top:
            yield "min_ones", f"must be at most shortest and max_ones, {top}, not {self.min_ones}"

    @abstractmethod
    def answer(self, ones: Array, bits: Array) -> Array:
        """The right answer after so many ones among so many bits, for NumPy and JAX numbers."""

    def draw(self, key: Array) -> Example:
        bits = jax.random.bits(key, (2 + self.longest,))
        length = self.shortest + below(bits[0], self.longest - self.shortest + 1)
        ones = self.min_ones + below(bits[1], self._top(length) - self.min_ones + 1)
        place = jnp.arange(self.longest, dtype=jnp.uint32)
        low = (1 << self.longest.bit_length()) - 1
        worth = jnp.where(place < length, (bits[2:] & ~np.uint32(low)) | place, NEVER)  # all differ
        bound = jnp.pad(jnp.sort(worth), (0, 1), constant_values=NEVER)[ones]
        tokens = jnp.where(place < length, (worth < bound).astype(jnp.int32), 3)
        tokens = jnp.pad(tokens, (0, 1), constant_values=3).at[length].set(2)
        targets, weight = self._asked(tokens)
        return Example(tokens, targets, weight, {"length": length, "ones": ones})

    def _top(self, length: Array) -> Array:
        """The most ones that a word of a length may have."""
        return length if self.max_ones is None else jnp.minimum(length, self.max_ones)

    def _asked(self, tokens: Array) -> tuple[Array, Array]:
        """Targets and weights, from the bits that were read so far."""
        ones, bits = (jnp.pad(jnp.cumsum(mask), (1, 0)) for mask in (tokens == 1, tokens < 2))
        question = jnp.pad(tokens < 2 if self.scored == "all" else tokens == 2, (1, 0))
        return jnp.where(question, self.answer(ones, bits), 0).astype(jnp.int32), question.astype(jnp.float32)

    def right(self, tokens: Array) -> Array:
        """The count decides."""
        return self._asked(tokens)[0]

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform} | ({"length": self.by_length} if self.scored == "end" else {})

    def by_length(self, example: Example) -> LogProbs:
        """Return the distribution of the answer for words of this length."""
        bits = jnp.sum(example.tokens < 2)
        ones = jnp.arange(self.longest + 1)
        allowed = (ones >= self.min_ones) & (ones <= self._top(bits))
        right = self.answer(ones, bits)[:, None] == jnp.arange(len(self.answers))
        shares = (right & allowed[:, None]).sum(axis=0) / allowed.sum()
        return jnp.where(example.weight[:, None] > 0, logarithm(shares), self.uniform(example))


@dataclass(frozen=True)
class Letters(Counted):
    """Words of `shortest` to `longest` letters out of `states`, and a question at the end.

    Each sequence has a law of its own for its letters, uniform among all laws: if all had the same, letters would come
    about equally often in long words. The law is never rounded: as many whole numbers as there are letters but one are
    drawn, and a letter is how many of them are not above another.
    """

    states: Annotated[int, Within(2, MAX_LETTERS)] = 3
    shortest: Count = 1
    longest: Count = 40

    @abstractmethod
    def answer(self, counts: Array) -> Array:
        """The right answer where each letter came so often [..., letter], for NumPy and JAX numbers."""

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*self.answers, "|", "_")

    def draw(self, key: Array) -> Example:
        bits = jax.random.bits(key, (self.states + self.longest,))
        length = self.shortest + below(bits[0], self.longest - self.shortest + 1)
        bounds, words = bits[1 : self.states], bits[self.states :]
        letters = (words[:, None] >= bounds).sum(axis=1).astype(jnp.int32)
        place = jnp.arange(self.tokens)
        tokens = jnp.where(place < length, jnp.pad(letters, (0, 1)), self.states + (place > length))
        weight = jnp.pad(tokens == self.states, (1, 0)).astype(jnp.float32)
        return Example(tokens, self.right(tokens), weight, {"length": length})

    def right(self, tokens: Array) -> Array:
        """Letters are counted up to the separator."""
        xp = namespace(tokens)
        counts = (tokens[..., None] == xp.arange(self.states)).sum(axis=-2)
        scored = xp.concatenate([xp.zeros_like(tokens[..., :1]), tokens], axis=-1) == self.states
        return xp.where(scored, self.answer(counts)[..., None], 0).astype(xp.int32)
