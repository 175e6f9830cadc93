"""Associations: a word is shown, and its answer is asked for; every word has its own.

The words in use are the first ones, a `share` of all. A net whose codes of words are random need not be told which
answer belongs to which word, so word and answer have the same number. Source: the associative memories of Nichani, Lee,
Bietti 2024, arXiv 2412.06538.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below, logarithm
from vitrify.sandboxes.catalogue import Entry, Row, Sandbox


@dataclass(frozen=True)
class AssociationSandbox(Sandbox):
    """`words` words, of which a `share` is in use."""

    TRACED: ClassVar[tuple[str, ...]] = ("share",)
    kind: ClassVar[Literal["lm", "class"]] = "class"

    words: int = 64
    share: float = 1.0

    def problems(self) -> Iterator[str]:
        if self.words < 1:
            yield f"words must be at least 1, not {self.words}"
        if not (0 < self.share <= 1 and round(self.share * self.words) >= 1):
            yield f"share must be at most 1, and leave a word, not {self.share:g}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(f"x{word}" for word in range(self.words))

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(f"y{word}" for word in range(self.words))

    @property
    def tokens(self) -> int:
        return 1

    def _used(self) -> Array:
        return jnp.round(jnp.asarray(self.share) * self.words)

    def possible(self) -> Array:
        return jnp.arange(self.words) < self._used()

    def draw(self, key: Array) -> Row:
        word = below(jax.random.bits(key), self._used())
        asked = jnp.array([0.0, 1.0])
        return Row(word[None], jnp.stack([jnp.int32(0), word]), asked, {})

    def optimal(self, row: Row) -> Array:
        return jnp.concatenate([self.uniform(row)[:1], logarithm(jax.nn.one_hot(row.tokens, self.words))])

    def floor(self) -> Array:
        return jnp.zeros(2)

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        tokens = rng.integers(round(self.share * self.words), size=(count, 1)).astype(np.int32)
        return tokens, np.pad(tokens, ((0, 0), (1, 0)))


SANDBOX = Entry(AssociationSandbox, small={"words": 6, "share": 0.7})
