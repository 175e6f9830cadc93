r"""A binary Markov chain: it leaves 0 with probability $p$ and leaves 1 with probability $q$.

$P = \begin{pmatrix}1-p & p\\ q & 1-q\end{pmatrix}$ has the stationary distribution $\pi = (q, p)/(p+q)$, from which the
first symbol is drawn. The best prediction after $x_t$ is row $x_t$ of $P$, with the loss $H = \pi_0 h(p) + \pi_1 h(q)$;
whoever ignores the past pays $h(\pi_1)$. Source: Makkuva et al. 2024, arXiv 2402.04161.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import invert, walk
from vitrify.sandboxes.catalogue import Entry, Predictor, Row, Sandbox


@dataclass(frozen=True)
class Markov(Sandbox):
    """Rows of `length` bits of the chain, in its stationary state from the start."""

    TRACED: ClassVar[tuple[str, ...]] = ("p", "q")

    p: float = 0.2
    q: float = 0.3
    length: int = 64

    def problems(self) -> Iterator[str]:
        if not (0 < self.p <= 1 and 0 < self.q <= 1):
            yield f"p and q must lie in (0, 1], not {self.p:g} and {self.q:g}"
        if self.length < 2:
            yield f"length must be at least 2, not {self.length}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return ("0", "1")

    @property
    def tokens(self) -> int:
        return self.length - 1

    def kernel(self) -> Array:
        """The transition probabilities [state, state]."""
        return jnp.array([[1 - self.p, self.p], [self.q, 1 - self.q]])

    def stationary(self) -> Array:
        """The distribution of every single symbol."""
        return jnp.array([self.q, self.p]) / (self.p + self.q)

    def draw(self, key: Array) -> Row:
        u = jax.random.uniform(key, (self.length,))
        first = invert(self.stationary()[:1], u[0])
        symbols = jnp.concatenate([first[None], walk(self.kernel()[:, :1], first, u[1:])])
        return Row(symbols[:-1], symbols, jnp.ones(self.length), {})

    def optimal(self, row: Row) -> Array:
        return jnp.log(jnp.concatenate([self.stationary()[None], self.kernel()[row.tokens]]))

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "unigram": self.unigram}

    def unigram(self, row: Row) -> Array:
        """The stationary distribution, whatever came before."""
        return jnp.log(jnp.broadcast_to(self.stationary(), (*row.targets.shape, 2)))

    def floor(self) -> Array:
        first = _entropy(self.p / (self.p + self.q))
        return jnp.concatenate([jnp.full(1, first), jnp.full(self.length - 1, self._rate())])

    def rate(self) -> float:
        return float(self._rate())

    def _rate(self) -> Array:
        return (self.q * _entropy(self.p) + self.p * _entropy(self.q)) / (self.p + self.q)

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        leave = np.array([self.p, self.q])
        symbols = np.empty((count, self.length), dtype=np.int32)
        symbols[:, 0] = rng.random(count) < self.p / (self.p + self.q)
        for t in range(1, self.length):
            before = symbols[:, t - 1]
            symbols[:, t] = np.where(rng.random(count) < leave[before], 1 - before, before)
        return symbols[:, :-1], symbols


def _entropy(p: Array | float) -> Array:
    """The entropy of a coin, in nats."""
    return jax.scipy.special.entr(jnp.asarray(p)) + jax.scipy.special.entr(1 - jnp.asarray(p))


SANDBOX = Entry(Markov, small={"length": 5})
