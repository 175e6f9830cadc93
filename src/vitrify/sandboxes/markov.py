r"""A binary Markov chain: it leaves 0 with probability $p$ and leaves 1 with probability $q$.

$P = \begin{pmatrix}1-p & p\\ q & 1-q\end{pmatrix}$ has the stationary distribution $\pi = (q, p)/(p+q)$, from which the
first symbol is drawn. The best prediction after $x_t$ is row $x_t$ of $P$, with the loss $H = \pi_0 h(p) + \pi_1 h(q)$;
whoever ignores the past pays $h(\pi_1)$. Source: Makkuva et al. 2024, arXiv 2402.04161.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from vitrify.sandboxes.catalogue import Array, Entry, Example, LogProbs, NextSymbol, Share, Within
from vitrify.sandboxes.kit.draws import invert, walk


@dataclass(frozen=True)
class Markov(NextSymbol):
    """Sequences of `length` bits of the chain, in its stationary state from the start."""

    PREDICTORS = ("unigram",)
    symbols = ("0", "1")
    TRACED = ("p", "q")

    p: Share = 0.2
    q: Share = 0.3
    length: Annotated[int, Within(2)] = 64

    def kernel(self) -> Array:
        """The transition probabilities [state, state]."""
        return jnp.array([[1 - self.p, self.p], [self.q, 1 - self.q]])

    def stationary(self) -> Array:
        """The distribution of every single symbol."""
        return jnp.array([self.q, self.p]) / (self.p + self.q)

    def draw(self, key: Array) -> Example:
        u = jax.random.uniform(key, (self.length,))
        first = invert(self.stationary()[:1], u[0])
        symbols = jnp.concatenate([first[None], walk(self.kernel()[:, :1], first, u[1:])])
        return Example(symbols[:-1], symbols, jnp.ones(self.length), {})

    def optimal(self, example: Example) -> LogProbs:
        return jnp.log(jnp.concatenate([self.stationary()[None], self.kernel()[example.tokens]]))

    def unigram(self, example: Example) -> LogProbs:
        """The stationary distribution, whatever came before."""
        return jnp.log(jnp.broadcast_to(self.stationary(), (*example.targets.shape, 2)))

    def floor(self) -> Array:
        first = _entropy(self.p / (self.p + self.q))
        return jnp.concatenate([jnp.full(1, first), jnp.full(self.length - 1, self._rate())])

    def rate(self) -> float:
        return float(self._rate())

    def _rate(self) -> Array:
        return (self.q * _entropy(self.p) + self.p * _entropy(self.q)) / (self.p + self.q)


def _entropy(p: Array | float) -> Array:
    """The entropy of a coin, in nats."""
    return jax.scipy.special.entr(jnp.asarray(p)) + jax.scipy.special.entr(1 - jnp.asarray(p))


SANDBOX = Entry(Markov, small={"length": 5})
