r"""The $\tau$-topic model: a document is about $\tau$ of $T$ topics, and masked words are to be guessed.

Every topic has $v$ words of its own. A document draws $\tau$ different topics, and each word is any word of any of
them. The laws of documents are the $\binom{T}{\tau}$ sets of topics, all alike, so the posterior is a sum over them.
Source: Li, Li, Risteski 2023, arXiv 2303.04245.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below
from vitrify.sandboxes._masking import MOST_LAWS, Masked
from vitrify.sandboxes.catalogue import Entry, Predictor, Row


@dataclass(frozen=True)
class Topics(Masked):
    """Documents about `tau` of `topics` topics with `words` words each."""

    topics: int = 10
    words: int = 10
    tau: int = 4

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.topics < 1 or self.words < 1 or self.topics * self.words < 2:
            yield f"there must be at least two words, not {self.topics} topics of {self.words}"
        if not 1 <= self.tau <= self.topics:
            yield f"tau must lie from 1 to the number of topics, {self.topics}, not {self.tau}"
        elif comb(self.topics, self.tau) > MOST_LAWS:
            yield f"{self.tau} of {self.topics} topics are {comb(self.topics, self.tau)} sets: at most {MOST_LAWS} fit"

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(f"{topic}.{word}" for topic in range(self.topics) for word in range(self.words))

    @cached_property
    def _sets(self) -> Array:
        return np.array(list(combinations(range(self.topics), self.tau)))

    @cached_property
    def laws(self) -> tuple[Array, Array]:
        about = np.zeros((len(self._sets), self.topics))
        np.put_along_axis(about, self._sets, 1 / (self.tau * self.words), axis=1)
        return np.full(len(about), 1 / len(about)), np.repeat(about, self.words, axis=1)

    def write(self, key: Array) -> tuple[Array, dict[str, Array]]:
        word = jax.random.bits(key, (self.length + 1,))
        about = jnp.asarray(self._sets)[below(word[0], len(self._sets))]
        choice = below(word[1:], self.tau * self.words)
        topic = about[choice // self.words]
        return topic * self.words + choice % self.words, {"topics": about, "topic": topic}

    def predictors(self) -> Mapping[str, Predictor]:
        return {**super().predictors(), "topic_frequencies": self.topic_frequencies}

    def topic_frequencies(self, row: Row) -> Array:
        """How often each topic stands elsewhere, with one more of each, all of its words alike."""
        one = jax.nn.one_hot(jnp.where(row.tokens > 0, (row.tokens - 1) // self.words, -1), self.topics)
        counts = jnp.repeat(one.sum(axis=0) - one + 1.0, self.words, axis=1)
        return self._answered(row, counts / counts.sum(axis=1, keepdims=True))

    def written(self, rng: np.random.Generator, count: int) -> Any:
        about = rng.permuted(np.tile(np.arange(self.topics), (count, 1)), axis=1)[:, : self.tau]
        topic = np.take_along_axis(about, rng.integers(self.tau, size=(count, self.length)), axis=1)
        return topic * self.words + rng.integers(self.words, size=(count, self.length))


SANDBOX = Entry(
    Topics,
    small={"topics": 3, "words": 1, "tau": 2, "length": 3, "masked": 0.7, "kept": 0.4, "replaced": 0.3},
)
