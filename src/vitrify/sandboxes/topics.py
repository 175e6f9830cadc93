r"""The $\tau$-topic model: a document is about $\tau$ of $T$ topics, and masked words are to be guessed.

Every topic has $v$ words of its own. A document draws $\tau$ different topics uniformly, and each of its words
independently and uniformly from their $\tau v$ words. Each of the $\binom{T}{\tau}$ sets of topics is a *law*: one
distribution over words. The Bayes predictor averages the laws with the posterior of the set, given the tokens.
Source: Li, Li, Risteski 2023, arXiv 2303.04245.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.sandboxes.catalogue import Array, Count, Entry, Example, LogProbs, Predictor
from vitrify.sandboxes.kit.draws import below
from vitrify.sandboxes.kit.masking import MAX_LAWS, SMALL, Masked


@dataclass(frozen=True)
class Topics(Masked):
    """Documents about `tau` of `topics` topics with `words` words each."""

    topics: Count = 10
    words: Count = 10
    tau: Count = 4

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        if self.topics * self.words < 2:
            yield "words", f"must be at least 2 where there is 1 topic, not {self.words}"
        if self.tau > self.topics:
            yield "tau", f"must be at most topics = {self.topics}, not {self.tau}"
        elif (count := comb(self.topics, self.tau)) > MAX_LAWS:
            yield "tau", f"= {self.tau} of {self.topics} topics makes {count} sets: at most {MAX_LAWS} are allowed"

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(f"{topic}.{word}" for topic in range(self.topics) for word in range(self.words))

    @cached_property
    def _sets(self) -> Array:
        return np.array(list(combinations(range(self.topics), self.tau)))

    @cached_property
    def laws(self) -> tuple[Array, Array]:
        """Return the prior over the sets of topics [set], and the distribution of words for each [set, word]."""
        word_probs = np.zeros((len(self._sets), self.topics))
        np.put_along_axis(word_probs, self._sets, 1 / (self.tau * self.words), axis=1)
        return np.full(len(word_probs), 1 / len(word_probs)), np.repeat(word_probs, self.words, axis=1)

    def write(self, key: Array) -> tuple[Array, dict[str, Array]]:
        bits = jax.random.bits(key, (self.length + 1,))
        topics = jnp.asarray(self._sets)[below(bits[0], len(self._sets))]
        choice = below(bits[1:], self.tau * self.words)
        topic = topics[choice // self.words]
        return topic * self.words + choice % self.words, {"topics": topics, "topic": topic}

    def predictors(self) -> Mapping[str, Predictor]:
        return {**super().predictors(), "topic_frequencies": self.topic_frequencies}

    def topic_frequencies(self, example: Example) -> LogProbs:
        """Return log-probabilities by add-one frequencies of topics at other positions, split evenly among words."""
        # token 0 is the mask, word w is token w + 1
        one = jax.nn.one_hot(jnp.where(example.tokens > 0, (example.tokens - 1) // self.words, -1), self.topics)
        counts = jnp.repeat(one.sum(axis=0) - one + 1.0, self.words, axis=1)
        return self._answered(example, counts / counts.sum(axis=1, keepdims=True))


SANDBOX = Entry(Topics, small={"topics": 3, "words": 1, "tau": 2, **SMALL})
