"""Key–value associations: the token is a key, the target its value; every key has a value of its own.

Only the first words, the fraction `word_fraction` of them, are drawn. Key and value have the same index, which is no
restriction for networks with random embeddings. Source: the associative memories of Nichani, Lee, Bietti 2024, arXiv
2412.06538.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from vitrify.sandboxes.catalogue import Array, Count, Entry, Exact, Example, Share
from vitrify.sandboxes.kit.draws import below


@dataclass(frozen=True)
class AssociationSandbox(Exact):
    """`words` keys with a value each, of which the fraction `word_fraction` is drawn."""

    tokens = 1
    TRACED = ("word_fraction",)

    words: Count = 64
    word_fraction: Share = 1.0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if round(self.word_fraction * self.words) < 1:
            yield "word_fraction", f"must leave one of {self.words} words, not {self.word_fraction:g}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(f"x{word}" for word in range(self.words))

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(f"y{word}" for word in range(self.words))

    def _used(self) -> Array:
        return jnp.round(jnp.asarray(self.word_fraction) * self.words)

    def possible(self) -> Array:
        return jnp.arange(self.words) < self._used()

    def draw(self, key: Array) -> Example:
        word = below(jax.random.bits(key), self._used())[None]
        return Example(word, self.right(word), jnp.array([0.0, 1.0]), {})

    def right(self, tokens: Array) -> Array:
        """The value of the key."""
        return jnp.pad(tokens, (1, 0))


SANDBOX = Entry(AssociationSandbox, small={"words": 6, "word_fraction": 0.7})
