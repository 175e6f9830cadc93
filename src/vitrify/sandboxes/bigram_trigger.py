r"""Bigrams with triggers: trigger tokens have successors of this sequence, all others follow one bigram law.

One bigram law $\pi_b$ serves all sequences, drawn once from a Dirichlet distribution with all parameters $\alpha$; the
first token comes from its stationary law. Some tokens are triggers: each sequence draws for every trigger $q$ an output
$o_q$, any token alike, and $o_q$ follows $q$ always. `fixed` triggers are the most frequent tokens of the stationary
law, the same in all sequences. `random` ones are drawn by the sequence: every token is a trigger with probability
triggers / tokens, apart from the others, and the reader must find them out.

What followed token $a$ so far tells all about $a$. If all $n$ successors were the same $b$, then $a$ is a trigger with
odds $\rho_a k^{-1} : (1 - \rho_a)\, \pi_b(b \mid a)^n$, for $\rho_a$ its prior probability; with two different ones it
is none. The best prediction is $b$ if it is one, any token if it is one that nothing has followed yet, and
$\pi_b(\cdot \mid a)$ if it is none. Source: Bietti et al. 2023, arXiv 2306.00802, where `random` triggers are a given
number of tokens; drawing each on its own keeps the optimum a product over tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.sandboxes.catalogue import Array, Count, Entry, Example, LogProbs, Natural, NextSymbol, Positive, Within
from vitrify.sandboxes.kit.contexts import Contexts, bounds_of, full, log_of
from vitrify.sandboxes.kit.draws import MAX_COMPOSED, below, follow, invert, logarithm

NEVER = -1e4  # the least logarithm of a bigram that is counted: a hundred of them still add up


@dataclass(frozen=True)
class BigramTrigger(NextSymbol):
    """Sequences of `length` tokens out of `vocabulary`; `scored` tells whether all count, or known outputs only."""

    SIZE = "vocabulary"
    PREDICTORS = ("unigram", "bigram", "induction")

    vocabulary: Annotated[int, Within(2)] = 64
    triggers: Count = 5
    length: Annotated[int, Within(2)] = 256
    choice: Literal["fixed", "random"] = "fixed"
    scored: Literal["all", "repeated"] = "all"
    alpha: Positive = 1.0
    task: Natural = 0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.triggers > self.vocabulary:
            yield "triggers", f"must be at most vocabulary = {self.vocabulary}, not {self.triggers}"
        if self.scored == "repeated" and self.choice == "random":
            yield "scored", "= repeated needs choice=fixed: else it would tell the reader which tokens are triggers"

    @cached_property
    def table(self) -> Array:
        """The bigram law [token, next], float64."""
        return np.random.default_rng(self.task).dirichlet(np.full(self.vocabulary, self.alpha), self.vocabulary)

    @cached_property
    def law(self) -> Array:
        """The stationary law of the bigrams: of the first token of a sequence."""
        return full(self.table).law

    @cached_property
    def prior(self) -> Array:
        """The prior probability that each token is a trigger [token]."""
        if self.choice == "random":
            return np.full(self.vocabulary, self.triggers / self.vocabulary)
        return (np.argsort(np.argsort(-self.law, kind="stable"), kind="stable") < self.triggers).astype(np.float64)

    def draw(self, key: Array) -> Example:
        chance, results, steps = jax.random.split(key, 3)
        k, bounds = self.vocabulary, jnp.asarray(bounds_of(self.table))
        trigger = jax.random.uniform(chance, (k,)) < jnp.asarray(self.prior.astype(np.float32))
        output = below(jax.random.bits(results, (k,)), k)
        u = jax.random.uniform(steps, (self.length,))
        first = invert(jnp.asarray(bounds_of(self.law)), u[0])
        decided = jnp.where(trigger, output, -1)

        def step(token: Array, u: Array) -> Array:
            return jnp.where(decided[token] >= 0, decided[token], invert(bounds[token], u))

        symbols = jnp.concatenate([first[None], follow(step, k, first, u[1:], MAX_COMPOSED)])
        return Example(symbols[:-1], symbols, self._weight(symbols[:-1]), {"trigger": trigger, "output": output})

    def _weight(self, tokens: Array) -> Array:
        if self.scored == "all":
            return jnp.ones(self.length)
        fixed = jnp.asarray(self.prior > 0)[tokens]
        again = jnp.tril(tokens[:, None] == tokens[None], -1).any(axis=1)
        return jnp.concatenate([jnp.zeros(1), fixed & again])

    def _followed(self, tokens: Array) -> Array:
        """Return the counts of successors of the last token so far [n, next], after 1, …, n tokens."""
        one = jax.nn.one_hot(tokens, self.vocabulary)
        matched = jnp.tril(tokens[:, None] == tokens[None], -1).astype(jnp.float32)
        return matched[:, :-1] @ one[1:]

    def optimal(self, example: Example) -> LogProbs:
        counts = self._followed(example.tokens)  # [n, next]
        times, different = counts.sum(axis=1), (counts > 0).sum(axis=1)
        with np.errstate(divide="ignore"):
            odds = np.log(self.prior) - np.log1p(-self.prior) - np.log(self.vocabulary)
            log = np.maximum(np.log(self.table), NEVER)
        log_p = jnp.asarray(log.astype(np.float32))[example.tokens]  # [n, next]
        usual = jnp.take_along_axis(log_p, counts.argmax(axis=1)[:, None], axis=1)[:, 0]
        prior = jnp.asarray(self.prior.astype(np.float32))[example.tokens]
        posterior = jax.nn.sigmoid(jnp.asarray(odds.astype(np.float32))[example.tokens] - times * usual)
        known = jnp.where(different > 1, 0.0, jnp.where(different == 1, posterior, prior))[:, None]
        output = jnp.where(times[:, None] > 0, (counts > 0).astype(jnp.float32), 1 / self.vocabulary)
        p = known * output + (1 - known) * jnp.exp(log_p)
        return self._opened(logarithm(p))

    def _opened(self, later: Array) -> Array:
        return jnp.concatenate([jnp.asarray(log_of(self.law))[None], later])

    @cached_property
    def _mean(self) -> Array:
        """The mean over sequences of what follows each token, where nothing is known of the sequence [token, next]."""
        return self.prior[:, None] / self.vocabulary + (1 - self.prior[:, None]) * self.table

    def unigram(self, example: Example) -> LogProbs:
        """The stationary law of the mean bigrams, whatever came before."""
        law = log_of(full(self._mean).law)
        return jnp.broadcast_to(jnp.asarray(law), (*example.targets.shape, self.vocabulary))

    def bigram(self, example: Example) -> LogProbs:
        """The mean bigrams: any token after a trigger."""
        rows = np.concatenate([self._mean, self.law[None]])
        mean = Contexts(rows, np.tile(np.arange(self.vocabulary), (len(rows), 1)), self.vocabulary)
        return mean.predict(example)

    def induction(self, example: Example) -> LogProbs:
        """Return the frequencies of successors of the same token so far, with a total pseudo-count of 1."""
        counts = self._followed(example.tokens) + 1 / self.vocabulary
        return self._opened(jnp.log(counts / counts.sum(axis=1, keepdims=True)))


SANDBOX = Entry(BigramTrigger, small={"vocabulary": 3, "triggers": 1, "length": 6, "choice": "random"})
