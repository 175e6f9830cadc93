r"""Counting languages: $a^n b^n$, $a^n b^n c^n$ and so on, with $n$ uniform from 1 to `most`.

A row is one word, its end `</s>`, and more ends up to the length of the longest word, of which nobody asks. After $a^j$
the block ends with probability $1 / (\text{most} - j + 1)$; when it has, $n$ is known and so is all that follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import logarithm, whole
from vitrify.sandboxes.catalogue import Entry, Predictor, Row, Sandbox
from vitrify.spec.grammars import letter
from vitrify.spec.ngram_trie import END


@dataclass(frozen=True)
class Counting(Sandbox):
    """Words of `letters` blocks of equal length, at most `most`."""

    letters: int = 2
    most: int = 16

    def problems(self) -> Iterator[str]:
        if self.letters < 1:
            yield f"letters must be at least 1, not {self.letters}"
        if self.most < 1:
            yield f"most must be at least 1, not {self.most}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*(letter(k) for k in range(self.letters)), END)

    @property
    def tokens(self) -> int:
        return self.letters * self.most

    def draw(self, key: Array) -> Row:
        n = 1 + whole(jax.random.uniform(key), self.most)
        places = jnp.arange(self.tokens + 1)
        word = sum((places >= k * n).astype(jnp.int32) for k in range(1, self.letters + 1))  # divisions take longer
        return Row(word[:-1], word, (places <= self.letters * n).astype(jnp.float32), {"n": n})

    @cached_property
    def words(self) -> Any:
        """All words, each with its ends: [most, n + 1]."""
        longest = self.tokens + 1
        blocks = [np.repeat(np.arange(self.letters), n) for n in range(1, self.most + 1)]
        return np.stack([np.pad(b, (0, longest - len(b)), constant_values=self.letters) for b in blocks])

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        words = self.words[rng.integers(self.most, size=count)].astype(np.int32)
        return words[:, :-1], words

    def optimal(self, row: Row) -> Array:
        places = jnp.arange(self.tokens + 1)
        first = jnp.pad(jnp.cumsum(row.tokens == 0), (1, 0))  # how many of the first letter so far
        ends = 1 / (self.most - first + 1)[:, None]  # that its block ends here
        one = jax.nn.one_hot(jnp.array([0, 1]), self.letters + 1)
        growing = jnp.where(first[:, None] == 0, one[0], (1 - ends) * one[0] + ends * one[1])
        known = jax.nn.one_hot(jnp.minimum(places // jnp.maximum(first, 1), self.letters), self.letters + 1)
        return logarithm(jnp.where((places == first)[:, None], growing, known))

    def predictors(self) -> Mapping[str, Predictor]:
        seen = {"unigram": 0, "bigram": 1}
        return {"uniform": self.uniform, **{name: partial(self.recent, seen=most) for name, most in seen.items()}}

    def recent(self, row: Row, seen: int) -> Array:
        """The best that can be said at a place from one symbol before it, or none: who sees this cannot count."""
        table = np.zeros((self.tokens + 1, self.letters + 1, self.letters + 1))  # [place, symbol before, symbol]
        lengths = self.letters * np.arange(1, self.most + 1)
        for t in range(self.tokens + 1):
            words = self.words[lengths >= t]
            np.add.at(table[t], (words[:, t - 1] * (seen and t > 0), words[:, t]), 1)
        law = table / np.maximum(table.sum(axis=-1, keepdims=True), 1)
        before = jnp.pad(row.tokens, (1, 0)) * seen
        return logarithm(jnp.asarray(law, jnp.float32))[jnp.arange(self.tokens + 1), before]


SANDBOX = Entry(Counting, small={"letters": 3, "most": 4})
