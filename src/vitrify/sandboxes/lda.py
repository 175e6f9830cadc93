r"""Latent Dirichlet allocation with shares on a grid: documents mix topics, and masked words are to be guessed.

A topic is a law of words, drawn once from a Dirichlet distribution with all parameters $\beta$; with $\beta = 0$ every
topic has words of its own, as many as the others, all alike. A document has shares
$\theta$ of the topics, each word draws a topic from $\theta$ and then a word from the topic. With $\theta$ from a
Dirichlet distribution no posterior has a closed form. Here $\theta = g/G$ for whole numbers $g$ of sum $G$ (`grid`),
drawn from the Dirichlet-multinomial law with all parameters $\alpha$: the law of $G$ draws from a Dirichlet share,
which comes to that share itself as $G$ grows. So there are finitely many laws of documents, and the posterior is an
exact sum over them. Source: Blei, Ng, Jordan 2003; masked as in Li, Li, Risteski 2023, arXiv 2303.04245.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln, softmax

from vitrify.sandboxes.catalogue import Array, Count, Entry, Natural, NonNegative, Positive, Within
from vitrify.sandboxes.kit.contexts import bounds_of
from vitrify.sandboxes.kit.draws import invert
from vitrify.sandboxes.kit.masking import MAX_LAWS, SMALL, Masked


@dataclass(frozen=True)
class LDA(Masked):
    """Documents that mix `topics` topics over `words` words, in shares that are multiples of 1 / `grid`."""

    topics: Count = 4
    words: Annotated[int, Within(2)] = 40
    grid: Count = 8
    alpha: Positive = 0.5
    beta: NonNegative = 0.1
    task: Natural = 0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        if not self.beta and self.words % self.topics:
            why = "where beta = 0 shares them out"
            yield "words", f"must be a multiple of topics = {self.topics} {why}, not {self.words}"
        if (count := comb(self.grid + self.topics - 1, self.grid)) > MAX_LAWS:
            yield "grid", f"of {self.grid} with {self.topics} topics has {count} shares: at most {MAX_LAWS} fit"

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(str(word) for word in range(self.words))

    @cached_property
    def laws_of_topics(self) -> Array:
        """The laws of words [topic, word], float64."""
        if not self.beta:
            each = self.words // self.topics
            return np.repeat(np.eye(self.topics), each, axis=1) / each
        return np.random.default_rng(self.task).dirichlet(np.full(self.words, self.beta), self.topics)

    @cached_property
    def _shares(self) -> tuple[Array, Array]:
        """Every share of the grid [share, topic] and its probability [share]."""
        bars = list(combinations(range(self.grid + self.topics - 1), self.topics - 1))
        edges = np.array([(-1, *bar, self.grid + self.topics - 1) for bar in bars])
        counts = np.diff(edges, axis=1) - 1
        log = (gammaln(counts + self.alpha) - gammaln(counts + 1)).sum(axis=1)
        return counts / self.grid, softmax(log)

    @cached_property
    def laws(self) -> tuple[Array, Array]:
        shares, prior = self._shares
        return prior, shares @ self.laws_of_topics

    def write(self, key: Array) -> tuple[Array, dict[str, Array]]:
        shares, prior = self._shares
        u = jax.random.uniform(key, (2 * self.length + 1,))
        which = jnp.searchsorted(jnp.asarray(bounds_of(prior)), u[0], side="right")  # of very many: by bisection
        topic = invert(jnp.asarray(bounds_of(shares))[which], u[1 : self.length + 1])
        word = invert(jnp.asarray(bounds_of(self.laws_of_topics))[topic], u[self.length + 1 :])
        return word, {"shares": jnp.asarray(shares.astype(np.float32))[which], "topic": topic}


SIZES = {"topics": 2, "words": 3, "grid": 2, "task": 1, "alpha": 3.0, "beta": 0.2}
SANDBOX = Entry(LDA, small={**SIZES, **SMALL})
