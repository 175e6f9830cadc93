r"""Sources whose next symbol depends on a context, one of finitely many, that the symbols themselves move.

Context $c$ gives symbol $x$ the probability $p_{cx}$, and leads to the context `follow[c, x]` when $x$ comes. Chains of
any order, n-gram models with back-off and all of their marginals are such tables, so all of them are drawn, predicted
and integrated alike. Tables are made by NumPy in float64, hence the same wherever the rows are drawn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse
from scipy.special import entr

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.sandboxes._draws import invert
from vitrify.sandboxes.catalogue import LEAST_LOG, Row, Sandbox

FEW = 64  # up to so many contexts are followed all at once on a GPU
MOST_CELLS = 1 << 24  # a table of more probabilities is refused
SOLVED = 256  # stationary laws of more contexts are iterated and not solved for
SETTLED = 1e-14


@dataclass(frozen=True, eq=False)
class Contexts:
    """Probabilities and successors of all contexts, as NumPy arrays."""

    p: Array  # [context, symbol] float64
    follow: Array  # [context, symbol] int
    start: int = 0

    @cached_property
    def law(self) -> Array:
        """How often each context comes in a long row; an InputError where that depends on the beginning."""
        size = len(self.p)
        places = (np.repeat(np.arange(size), self.p.shape[1]), self.follow.ravel())
        step: Any = sparse.csr_array((self.p.ravel(), places), shape=(size, size))
        if size <= SOLVED:
            system = np.concatenate([step.T.toarray() - np.eye(size), np.ones((1, size))])
            found, _, rank, _ = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0))
            if rank < size:
                raise InputError("the chain falls into parts, so there is more than one stationary law")
        else:
            found, before = np.full(size, 1 / size), np.zeros(size)
            for _ in range(100_000):
                if np.abs(found - before).sum() < SETTLED:
                    break
                found, before = (found + step.T @ found) / 2, found
        found = np.where(found > SETTLED, found, 0.0)
        return found / found.sum()

    def losses(self, count: int) -> Array:
        """The expected loss of the best predictor at each of `count` symbols [count], in nats."""
        now: Array = np.zeros(len(self.p))
        now[self.start] = 1.0
        entropy, found = entr(self.p).sum(axis=1), np.empty(count)
        for t in range(count):
            found[t] = now @ entropy
            now = np.bincount(self.follow.ravel(), (now[:, None] * self.p).ravel(), minlength=len(self.p))
        return found

    def rate(self) -> float:
        """The entropy rate in nats per symbol."""
        return float(self.law @ entr(self.p).sum(axis=1))

    def draw(self, u: Array) -> tuple[Array, Array]:
        """A row and the contexts before its symbols, [len(u)] each, from uniform numbers."""
        bounds, follow = jnp.asarray(bounds_of(self.p)), jnp.asarray(self.follow, dtype=jnp.int32)

        def stepped(u: Array) -> tuple[Array, Array]:
            def step(context: Array, u: Array) -> tuple[Array, tuple[Array, Array]]:
                symbol = invert(bounds[context], u)
                return follow[context, symbol], (symbol, context)

            found: tuple[Array, Array] = jax.lax.scan(step, jnp.int32(self.start), u)[1]
            return found

        def composed(u: Array) -> tuple[Array, Array]:
            maps = follow[jnp.arange(len(self.p)), invert(bounds[None], u[:, None])]
            contexts = self._before(jax.lax.associative_scan(_then, maps)[:-1, self.start])
            return invert(bounds[contexts], u), contexts

        many = len(self.p) > FEW
        found: tuple[Array, Array] = jax.lax.platform_dependent(u, default=stepped, cuda=stepped if many else composed)
        return found

    def read(self, tokens: Array) -> Array:
        """The contexts before each token and after the last [n + 1]."""
        follow = jnp.asarray(self.follow, dtype=jnp.int32)

        def stepped(tokens: Array) -> Array:
            def step(context: Array, token: Array) -> tuple[Array, Array]:
                context = follow[context, token]
                return context, context

            return self._before(jax.lax.scan(step, jnp.int32(self.start), tokens)[1])

        def composed(tokens: Array) -> Array:
            return self._before(jax.lax.associative_scan(_then, follow.T[tokens])[:, self.start])

        many = len(self.p) > FEW
        return jax.lax.platform_dependent(tokens, default=stepped, cuda=stepped if many else composed)

    def _before(self, later: Array) -> Array:
        return jnp.concatenate([jnp.full(1, self.start, dtype=jnp.int32), later])

    def predict(self, row: Row) -> Array:
        """The log-probabilities [n + 1, symbol] for one row."""
        return jnp.asarray(log_of(self.p))[self.read(row.tokens)]


def _then(one: Array, two: Array) -> Array:
    return jnp.take_along_axis(two, one, axis=-1)


def bounds_of(p: Array) -> Array:
    """The bounds of `invert` for probabilities [..., symbol] that are known beforehand, float32."""
    sums = np.cumsum(np.asarray(p, dtype=np.float64), axis=-1)
    return (sums / sums[..., -1:])[..., :-1].astype(np.float32)


def log_of(p: Array) -> Array:
    """The logarithms of probabilities that are known beforehand, float32."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(p), LEAST_LOG).astype(np.float32)


def suffixes(tables: Sequence[Array]) -> Contexts:
    r"""The contexts are the last $m$ symbols, or all of them where there are less: table $j$ is $[k^j, k]$.

    The rows of a table stand in the order of their symbols read as digits, the oldest first.
    """
    symbols, longest = tables[0].shape[1], len(tables) - 1
    first = np.cumsum([0, *(len(table) for table in tables)])
    follow = []
    for j, table in enumerate(tables):
        code = np.arange(table.size).reshape(table.shape)
        follow.append(first[j + 1] + code if j < longest else first[j] + code % symbols**longest)
    return Contexts(np.concatenate(tables), np.concatenate(follow))


def full(kernel: Array) -> Contexts:
    """The contexts that are exactly the last symbols: a chain with the kernel [contexts, symbol]."""
    return Contexts(kernel, np.arange(kernel.size).reshape(kernel.shape) % len(kernel))


def marginals(kernel: Array, law: Array) -> list[Array]:
    r"""The best predictions from the last $0, 1, \dots, m$ symbols of a chain of order $m$ in its stationary state."""
    joint, symbols, found = law[:, None] * kernel, kernel.shape[1], [kernel]
    while len(found[0]) > 1:
        joint = joint.reshape(symbols, -1, symbols).sum(axis=0)
        total = joint.sum(axis=1, keepdims=True)
        found.insert(0, np.where(total > 0, joint / np.where(total > 0, total, 1.0), 1 / symbols))
    return found


ORDERS = ("unigram", "bigram", "trigram")


def order_name(order: int) -> str:
    """What a predictor is called that looks at so many symbols."""
    return ORDERS[order] if order < len(ORDERS) else f"{order + 1}-gram"


@dataclass(frozen=True)
class ContextSandbox(Sandbox):
    """A sandbox that is a table of contexts, which `contexts` gives; every symbol of a row of `length` counts."""

    length: int = 64

    @property
    @abstractmethod
    def contexts(self) -> Contexts:
        """The source; kept, as it is made from the parameters with some work."""

    @property
    def tokens(self) -> int:
        return self.length - 1

    def draw(self, key: Array) -> Row:
        symbols, contexts = self.contexts.draw(jax.random.uniform(key, (self.length,)))
        return Row(symbols[:-1], symbols, jnp.ones(self.length), {"context": contexts})

    def optimal(self, row: Row) -> Array:
        return self.contexts.predict(row)

    def floor(self) -> Array:
        return self.contexts.losses(self.length)

    def rate(self) -> float | None:
        return self.contexts.rate()


def drawn(rng: np.random.Generator, p: Array) -> Any:
    """One symbol per row of probabilities [row, symbol], by plain NumPy."""
    return (rng.random((len(p), 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
