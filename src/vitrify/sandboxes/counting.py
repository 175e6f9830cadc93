r"""Counting languages: $a^n b^n$, $a^n b^n c^n$ and so on, with $n$ uniform from 1 to $N$ = `max_count`.

A sequence is one word and its end `</s>`, which is repeated until all sequences are equally long; targets after the
first `</s>` have weight 0. After $a^j$ the block ends with probability $1 / (N - j + 1)$; when it has, $n$ is known and
so is all that follows. The predictors `unigram` and `bigram` have a table for each position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.sandboxes.catalogue import Array, Count, Entry, Example, Int, LogProbs, Predictor, Sandbox
from vitrify.sandboxes.kit.draws import integer_below, logarithm
from vitrify.spec.grammars.families import letter
from vitrify.spec.ngrams.trie import END


@dataclass(frozen=True)
class Counting(Sandbox):
    """Words of `letters` blocks of equal length, at most `max_count`."""

    letters: Count = 2
    max_count: Count = 16

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*(letter(k) for k in range(self.letters)), END)

    @property
    def tokens(self) -> int:
        return self.letters * self.max_count

    def draw(self, key: Array) -> Example:
        n = 1 + integer_below(jax.random.uniform(key), self.max_count)
        places = jnp.arange(self.tokens + 1)
        word = sum((places >= k * n).astype(jnp.int32) for k in range(1, self.letters + 1))  # divisions take longer
        return Example(word[:-1], word, (places <= self.letters * n).astype(jnp.float32), {"n": n})

    @cached_property
    def words(self) -> Int[Array, "word place"]:
        """All words, one in each row, filled up with `</s>`: [max_count, tokens + 1]."""
        longest = self.tokens + 1
        blocks = [np.repeat(np.arange(self.letters), n) for n in range(1, self.max_count + 1)]
        return np.stack([np.pad(b, (0, longest - len(b)), constant_values=self.letters) for b in blocks])

    def optimal(self, example: Example) -> LogProbs:
        places = jnp.arange(self.tokens + 1)
        first = jnp.pad(jnp.cumsum(example.tokens == 0), (1, 0))  # how many of the first letter so far
        ends = 1 / (self.max_count - first + 1)[:, None]  # that its block ends here
        one = jax.nn.one_hot(jnp.array([0, 1]), self.letters + 1)
        growing = jnp.where(first[:, None] == 0, one[0], (1 - ends) * one[0] + ends * one[1])
        known = jax.nn.one_hot(jnp.minimum(places // jnp.maximum(first, 1), self.letters), self.letters + 1)
        return logarithm(jnp.where((places == first)[:, None], growing, known))

    def predictors(self) -> Mapping[str, Predictor]:
        seen = {"unigram": 0, "bigram": 1}
        return {"uniform": self.uniform, **{name: partial(self.recent, seen=count) for name, count in seen.items()}}

    def recent(self, example: Example, seen: int) -> LogProbs:
        """Return the best prediction from the position alone, or from the position and the symbol before it."""
        table = np.zeros((self.tokens + 1, self.letters + 1, self.letters + 1))  # [place, symbol before, symbol]
        lengths = self.letters * np.arange(1, self.max_count + 1)
        for t in range(self.tokens + 1):
            words = self.words[lengths >= t]
            np.add.at(table[t], (words[:, t - 1] * (seen and t > 0), words[:, t]), 1)
        law = table / np.maximum(table.sum(axis=-1, keepdims=True), 1)
        before = jnp.pad(example.tokens, (1, 0)) * seen
        return logarithm(jnp.asarray(law, jnp.float32))[jnp.arange(self.tokens + 1), before]


SANDBOX = Entry(Counting, small={"letters": 3, "max_count": 4})
