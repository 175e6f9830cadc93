r"""Masked prediction where a document is one of finitely many laws of words: all that topic models here share.

A document draws its law $q_a$ with probability $\pi_a$ and then every word from it, apart from the others. Then each
place is chosen with probability $p_m$; a chosen word stays with probability $p_c$, becomes any of the $W$ words with
probability $p_r$, and the mask otherwise. What stood at the chosen places is asked for; at least one place is chosen,
which tells nothing more at a place that is asked.

With $\kappa = 1 - (1 - p_c)\,p_m$, a token $z$ that is no mask has the probability $\kappa\, q_a(z) + p_m p_r / W$, and
masks are as probable under every law. So the posterior of the law given all tokens but one is a product, under it the
word $y$ at the place left out has the probability $q(y)$, and its own token then weighs it with
$p_c [y = z] + p_r / W$.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.parameters import Count, Probability, Share
from vitrify.sandboxes.catalogue import Example, LogProbs, Sandbox
from vitrify.sandboxes.kit.contexts import log_of
from vitrify.sandboxes.kit.draws import below, invert, logarithm

MAX_LAWS = 20_000
SMALL = {"length": 3, "masked": 0.7, "unchanged": 0.4, "replaced": 0.3}  # documents that can be enumerated
IMPOSSIBLE = -1e4  # the logarithm of what a law rules out: a thousand of them still add up


@dataclass(frozen=True)
class Masked(Sandbox):
    """Documents of `length` words; token 0 is the mask, and the answers are the words."""

    PREDICTORS = ("unigram", "frequencies")
    bidirectional = True
    TRACED = ("unchanged", "replaced")
    kind = "class"

    length: Count = 100
    masked: Share = 0.15
    unchanged: Probability = 0.1
    replaced: Probability = 0.1

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.unchanged + self.replaced > 1:
            yield "unchanged", f"+ replaced must be at most 1, not {self.unchanged:g} + {self.replaced:g}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return ("[mask]", *self.answers)

    @property
    @abstractmethod
    def laws(self) -> tuple[Array, Array]:
        """The probabilities of the laws [law], and the laws themselves [law, word], float64."""

    @abstractmethod
    def write(self, key: Array) -> tuple[Array, dict[str, Array]]:
        """The words of one document, and what it was made from."""

    def draw(self, key: Array) -> Example:
        document, places, fates, others = jax.random.split(key, 4)
        words, latent = self.write(document)
        u = jax.random.uniform(places, (self.length + 1,))
        none = (1 - self.masked) ** np.arange(1, self.length + 1)  # that none of the first 1, 2, … places is chosen
        first = invert(jnp.asarray(((1 - none[:-1]) / (1 - none[-1])).astype(np.float32)), u[0])
        place = jnp.arange(self.length)
        chosen = (place == first) | ((place > first) & (u[1:] < np.float32(self.masked)))
        fate = jax.random.uniform(fates, (self.length,))
        other = below(jax.random.bits(others, (self.length,)), len(self.answers))
        changed = jnp.where(fate < self.unchanged + self.replaced, other + 1, 0)
        tokens = jnp.where(chosen & (fate >= self.unchanged), changed, words + 1).astype(jnp.int32)
        zero = jnp.zeros(1, dtype=jnp.int32)
        targets = jnp.concatenate([zero, words.astype(jnp.int32)])
        return Example(tokens, targets, jnp.concatenate([zero, chosen]).astype(jnp.float32), latent)

    def optimal(self, example: Example) -> LogProbs:
        prior, laws = self.laws
        q = jnp.asarray(laws.astype(np.float32))
        words, seen = q.shape[1], example.tokens > 0
        word = jnp.maximum(example.tokens - 1, 0)
        p = (1 - (1 - self.unchanged) * self.masked) * q + self.masked * self.replaced / words  # of a visible word
        each = jnp.where(p > 0, jnp.log(jnp.where(p > 0, p, 1.0)), IMPOSSIBLE).T[word]  # [place, law]
        each = jnp.where(seen[:, None], each, 0.0)
        others = each.sum(axis=0) - each + jnp.asarray(log_of(prior))
        return self._answered(example, jax.nn.softmax(others, axis=1) @ q)

    def _answered(self, example: Example, q: Array) -> LogProbs:
        """Weigh what is expected at each place [place, word] with the token that stands there."""
        words = q.shape[1]
        own = self.unchanged * jax.nn.one_hot(example.tokens - 1, words) + self.replaced / words
        p = q * jnp.where((example.tokens > 0)[:, None], own, 1.0)
        total = p.sum(axis=1, keepdims=True)
        p = jnp.where(total > 0, p / jnp.where(total > 0, total, 1.0), 1 / words)  # never asked: nothing was kept
        log = logarithm(p)
        return jnp.concatenate([jnp.full((1, words), -np.log(words)), log])

    def unigram(self, example: Example) -> LogProbs:
        """The mean law of all documents, and what its own token says of a place."""
        prior, laws = self.laws
        mean = jnp.asarray((prior @ laws).astype(np.float32))
        return self._answered(example, jnp.broadcast_to(mean, (self.length, len(self.answers))))

    def frequencies(self, example: Example) -> LogProbs:
        """Return the add-one frequencies of words at the other positions, combined with the token at this one."""
        one = jax.nn.one_hot(example.tokens - 1, len(self.answers))
        counts = one.sum(axis=0) - one + 1.0
        return self._answered(example, counts / counts.sum(axis=1, keepdims=True))

    def best_linear(self, places: int | None = None, ridge: float = 0.0) -> Array:
        r"""The matrix $W$ [word, token] with the least $\mathbb E\,|e_y - W\bar x|^2$, the mask being token 0.

        $\bar x$ is the mean of the one-hot tokens at all `places` (without a limit, if none are given), which is what
        a head sees that looks everywhere alike, and $y$ the word that is asked for at one of them. Of several such
        matrices it is the least one, or the best under a penalty `ridge` $|W|^2$.
        """
        prior, q = self.laws
        words, chosen = q.shape[1], self.masked * (1 - self.unchanged - self.replaced)
        p = (1 - (1 - self.unchanged) * self.masked) * q + self.masked * self.replaced / words
        p = np.concatenate([np.full((len(q), 1), chosen), p], axis=1)  # of a token at another place [law, token]
        cross, square = (q.T * prior) @ p, (p.T * prior) @ p
        if places is not None:  # the place itself is one of them, and the others are a sample
            n, mean = places, prior @ q
            hidden = np.full((words, 1), 1 - self.unchanged - self.replaced)
            shown = self.unchanged * np.eye(words) + self.replaced / words
            own = np.concatenate([hidden, shown], axis=1)  # the token where a word was [word, token]
            both = ((q @ own).T * prior) @ p
            cross = ((n - 1) * cross + mean[:, None] * own) / n
            square = (n - 1) * ((n - 2) * square + np.diag(prior @ p) + both + both.T) + np.diag(mean @ own)
            square = square / n**2
        return cross @ np.linalg.pinv(square + ridge * np.eye(words + 1), rcond=1e-12, hermitian=True)
