r"""Bigrams with back-copying: after a trigger the token before it comes again, after others one by the bigram law.

One bigram law $\pi_b$ serves all sequences, drawn once from a Dirichlet distribution with all parameters $\alpha$. The
most frequent tokens of its stationary law are triggers: $x_{t+1} = x_{t-1}$ where $x_t$ is one, and $x_{t+1} \sim
\pi_b(\cdot \mid x_t)$ otherwise. A sequence begins with a token that is no trigger, from the stationary law: two
triggers in a row would copy each other for ever, and after such a beginning there are none. Source: Guo et al. 2024,
arXiv 2410.13835, where the bigrams are those of characters in a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import jax.numpy as jnp
import numpy as np

from vitrify.sandboxes.catalogue import Array, Entry, Example, LogProbs, Natural, Positive, Within
from vitrify.sandboxes.kit.contexts import MAX_CELLS, Contexts, ContextSandbox, full, log_of, marginals, suffixes


@dataclass(frozen=True)
class BackCopy(ContextSandbox):
    """Sequences of `length` tokens out of `vocabulary`, of which `triggers` call for the token before them."""

    SIZE = "vocabulary"
    PREDICTORS = ("unigram", "bigram", "usual")

    vocabulary: Annotated[int, Within(2, int(MAX_CELLS ** (1 / 3)))] = 64
    triggers: Natural = 3
    alpha: Positive = 1.0
    task: Natural = 0  # seed of the bigram law

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.triggers >= self.vocabulary:
            yield "triggers", f"must be below vocabulary = {self.vocabulary}, not {self.triggers}"

    @cached_property
    def table(self) -> Array:
        """The bigram law [token, next], float64."""
        return np.random.default_rng(self.task).dirichlet(np.full(self.vocabulary, self.alpha), self.vocabulary)

    @cached_property
    def trigger(self) -> Array:
        """True for trigger tokens [token]."""
        law = full(self.table).law
        return np.argsort(np.argsort(-law, kind="stable"), kind="stable") < self.triggers

    @cached_property
    def first(self) -> Array:
        """The law of the first token of a sequence [token]."""
        law = np.where(self.trigger, 0.0, full(self.table).law)
        return law / law.sum()

    @cached_property
    def _kernel(self) -> Array:
        """The distribution of the next token after two tokens [before, last, next]; two triggers never occur."""
        copies = self.trigger & ~self.trigger[:, None]
        return np.where(copies[..., None], np.eye(self.vocabulary)[:, None], self.table)

    @cached_property
    def contexts(self) -> Contexts:
        return suffixes([self.first[None], self.table, self._kernel.reshape(-1, self.vocabulary)])

    @cached_property
    def _marginals(self) -> list[Array]:
        """The best predictions from no token and from the last one, in a long sequence."""
        k = self.vocabulary
        law = self.contexts.law[-k * k :]  # of pairs of tokens: no shorter context comes again
        return marginals(self._kernel.reshape(-1, k), law)

    def unigram(self, example: Example) -> LogProbs:
        """Return the stationary distribution of the tokens."""
        law = jnp.asarray(log_of(self._marginals[0][0]))
        return self._opened(jnp.broadcast_to(law, (*example.tokens.shape, self.vocabulary)))

    def bigram(self, example: Example) -> LogProbs:
        """Return the stationary bigram distribution: after a trigger, that of the token before it."""
        return self._opened(jnp.asarray(log_of(self._marginals[1]))[example.tokens])

    def usual(self, example: Example) -> LogProbs:
        """The bigrams of the language, after triggers too."""
        return self._opened(jnp.asarray(log_of(self.table))[example.tokens])

    def _opened(self, later: Array) -> Array:
        return jnp.concatenate([jnp.asarray(log_of(self.first))[None], later])


SANDBOX = Entry(BackCopy, small={"vocabulary": 3, "triggers": 1, "length": 6})
