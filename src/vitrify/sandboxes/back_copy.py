r"""Bigrams with back-copying: after some tokens comes again what stood before them, after the others any usual token.

One bigram law $\pi_b$ serves all rows, drawn once from a Dirichlet distribution with all parameters $\alpha$. The most
frequent tokens of its stationary law are triggers: $x_{t+1} = x_{t-1}$ where $x_t$ is one, and
$x_{t+1} \sim \pi_b(\cdot \mid x_t)$ otherwise. A row begins with a token that is no trigger, from the stationary law:
two triggers in a row would copy each other for ever, and after such a beginning there are none. Source: Guo et al.
2024, arXiv 2410.13835, where the bigrams are those of characters in a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._contexts import MOST_CELLS, Contexts, ContextSandbox, drawn, full, log_of, marginals, suffixes
from vitrify.sandboxes.catalogue import Entry, Predictor, Row


@dataclass(frozen=True)
class BackCopy(ContextSandbox):
    """Rows of `length` tokens out of `vocabulary`, of which `triggers` call for the token before them."""

    vocabulary: int = 64
    triggers: int = 3
    alpha: float = 1.0
    task: int = 0

    def problems(self) -> Iterator[str]:
        if self.vocabulary < 2:
            yield f"vocabulary must be at least 2, not {self.vocabulary}"
        elif self.vocabulary**3 > MOST_CELLS:
            yield f"vocabulary must be at most {int(MOST_CELLS ** (1 / 3))}, not {self.vocabulary}"
        if not 0 <= self.triggers < self.vocabulary:
            yield f"triggers must lie from 0 to below the vocabulary, {self.vocabulary}, not {self.triggers}"
        if self.length < 2:
            yield f"length must be at least 2, not {self.length}"
        if not self.alpha > 0:
            yield f"alpha must be positive, not {self.alpha:g}"
        if self.task < 0:
            yield f"task must not be negative, not {self.task}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(str(token) for token in range(self.vocabulary))

    @cached_property
    def table(self) -> Array:
        """The bigram law [token, next], float64."""
        return np.random.default_rng(self.task).dirichlet(np.full(self.vocabulary, self.alpha), self.vocabulary)

    @cached_property
    def trigger(self) -> Array:
        """Which tokens are triggers [token]."""
        law = full(self.table).law
        found: Array = np.argsort(np.argsort(-law, kind="stable"), kind="stable") < self.triggers
        return found

    @cached_property
    def first(self) -> Array:
        """The law of the first token of a row [token]."""
        law = np.where(self.trigger, 0.0, full(self.table).law)
        return law / law.sum()

    @cached_property
    def _kernel(self) -> Array:
        """What follows two tokens [before, last, next]; after two triggers, which never come, a usual token."""
        copies = self.trigger & ~self.trigger[:, None]
        return np.where(copies[..., None], np.eye(self.vocabulary)[:, None], self.table)

    @cached_property
    def contexts(self) -> Contexts:
        return suffixes([self.first[None], self.table, self._kernel.reshape(-1, self.vocabulary)])

    @cached_property
    def _marginals(self) -> list[Array]:
        """The best predictions from no token and from the last one, in a long row."""
        k = self.vocabulary
        law = self.contexts.law[-k * k :]  # of pairs of tokens: no shorter context comes again
        return marginals(self._kernel.reshape(-1, k), law)

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "unigram": self.unigram, "bigram": self.bigram, "usual": self.usual}

    def unigram(self, row: Row) -> Array:
        """How often tokens come in a long row, whatever came before."""
        law = jnp.asarray(log_of(self._marginals[0][0]))
        return self._opened(jnp.broadcast_to(law, (*row.tokens.shape, self.vocabulary)))

    def bigram(self, row: Row) -> Array:
        """What follows the last token in a long row: after a trigger, what mostly stands before it."""
        return self._opened(jnp.asarray(log_of(self._marginals[1]))[row.tokens])

    def usual(self, row: Row) -> Array:
        """The bigrams of the language, after triggers too."""
        return self._opened(jnp.asarray(log_of(self.table))[row.tokens])

    def _opened(self, later: Array) -> Array:
        return jnp.concatenate([jnp.asarray(log_of(self.first))[None], later])

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        symbols = np.empty((count, self.length), dtype=np.int32)
        symbols[:, 0] = rng.choice(self.vocabulary, size=count, p=self.first)
        for t in range(1, self.length):
            last = symbols[:, t - 1]
            usual = drawn(rng, self.table[last])
            symbols[:, t] = np.where(self.trigger[last], symbols[:, t - 2], usual) if t > 1 else usual
        return symbols[:, :-1], symbols


SANDBOX = Entry(BackCopy, small={"vocabulary": 3, "triggers": 1, "length": 6})
