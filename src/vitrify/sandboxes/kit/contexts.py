r"""Sources whose next symbol depends on one of finitely many contexts; context and symbol determine the next context.

Context $c$ gives symbol $x$ the probability $p_{cx}$, and symbol $x$ leads from it to the context `follow[c, x]`.
Chains of any order, n-gram models with back-off and all of their marginals are such tables, so all of them are drawn,
predicted and integrated alike. Tables are made by NumPy in float64, hence the same wherever the sequences are drawn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse
from scipy.special import entr

from vitrify.arrays import Array, Matrix
from vitrify.errors import InputError
from vitrify.parameters import Within
from vitrify.sandboxes.catalogue import LEAST_LOG, Example, LogProbs, NextSymbol, Predictor
from vitrify.sandboxes.kit.draws import MAX_COMPOSED, Step, follow, invert

MAX_CELLS = 1 << 24  # a table of more probabilities is refused
MAX_SOLVED_CONTEXTS = 256  # stationary distributions of more contexts are iterated and not solved for
LAW_TOLERANCE = 1e-14


@dataclass(frozen=True, eq=False)
class Contexts:
    """Probabilities and successors of all contexts, as NumPy arrays."""

    p: Array  # [context, symbol] float64
    follow: Array  # [context, symbol] int
    start: int = 0

    @cached_property
    def law(self) -> Array:
        """The stationary distribution of the contexts; an InputError if it depends on the start."""
        size = len(self.p)
        places = (np.repeat(np.arange(size), self.p.shape[1]), self.follow.ravel())
        step: Matrix = sparse.csr_array((self.p.ravel(), places), shape=(size, size))
        if size <= MAX_SOLVED_CONTEXTS:
            system = np.concatenate([step.T.toarray() - np.eye(size), np.ones((1, size))])
            law, _, rank, _ = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0))
            unique = rank == size
        else:
            unique = _closed_classes(step) == 1
            law, before = np.full(size, 1 / size), np.zeros(size)
            for _ in range(100_000):
                if np.abs(law - before).sum() < LAW_TOLERANCE:
                    break
                law, before = (law + step.T @ law) / 2, law
        if not unique:
            raise InputError("the chain falls into parts, so there is more than one stationary law")
        law = np.where(law > LAW_TOLERANCE, law, 0.0)
        return law / law.sum()

    def losses(self, count: int, end: int | None = None) -> Array:
        """The expected loss of the best predictor at each of `count` symbols [count], in nats.

        With an `end`, it is the mean over sequences in which this symbol has not come yet.
        """
        now: Array = np.zeros(len(self.p))
        now[self.start] = 1.0
        entropy, losses, going = entr(self.p).sum(axis=1), np.empty(count), np.arange(self.p.shape[1]) != end
        after = self.follow[:, going].ravel()
        for t in range(count):
            losses[t] = now @ entropy / (1.0 if end is None else max(now.sum(), 1e-300))
            now = np.bincount(after, (now[:, None] * self.p)[:, going].ravel(), minlength=len(self.p))
        return losses

    def rate(self) -> float:
        """The entropy rate in nats per symbol."""
        return float(self.law @ entr(self.p).sum(axis=1))

    def draw(self, u: Array) -> tuple[Array, Array]:
        """A sequence and the contexts before its symbols, [len(u)] each, from uniform numbers."""
        bounds, table = jnp.asarray(bounds_of(self.p)), jnp.asarray(self.follow, dtype=jnp.int32)

        def stepped(u: Array) -> tuple[Array, Array]:  # inverts once per symbol: cheaper when there are many contexts
            def step(context: Array, u: Array) -> tuple[Array, tuple[Array, Array]]:
                symbol = invert(bounds[context], u)
                return table[context, symbol], (symbol, context)

            drawn: tuple[Array, Array] = jax.lax.scan(step, jnp.int32(self.start), u)[1]
            return drawn

        def composed(u: Array) -> tuple[Array, Array]:
            contexts = self._visited(lambda context, u: table[context, invert(bounds[context], u)], u[:-1])
            return invert(bounds[contexts], u), contexts

        many = len(self.p) > MAX_COMPOSED
        drawn: tuple[Array, Array] = jax.lax.platform_dependent(u, default=stepped, cuda=stepped if many else composed)
        return drawn

    def read(self, tokens: Array) -> Array:
        """The contexts before each token and after the last [n + 1]."""
        table = jnp.asarray(self.follow, dtype=jnp.int32)
        return self._visited(lambda context, token: table[context, token], tokens)

    def _visited(self, step: Step, inputs: Array) -> Array:
        first = jnp.int32(self.start)
        return jnp.concatenate([first[None], follow(step, len(self.p), first, inputs, MAX_COMPOSED)])

    def predict(self, example: Example) -> LogProbs:
        """The log-probabilities [n + 1, symbol] for one sequence."""
        return jnp.asarray(log_of(self.p))[self.read(example.tokens)]


def _closed_classes(step: Matrix) -> int:
    """Return the number of classes of contexts that no transition leaves: each has a stationary distribution."""
    from scipy.sparse.csgraph import connected_components

    possible = step > 0  # without stored zeros
    before, after = possible.nonzero()
    count, label = connected_components(possible, connection="strong")
    return int(count - len(np.unique(label[before][label[before] != label[after]])))


def bounds_of(p: Array) -> Array:
    """The bounds of `invert` for probabilities [..., symbol] that are known beforehand, float32."""
    sums = np.cumsum(np.asarray(p, dtype=np.float64), axis=-1)
    return (sums / sums[..., -1:])[..., :-1].astype(np.float32)


def log_of(p: Array) -> Array:
    """The logarithms of probabilities that are known beforehand, float32."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(p), LEAST_LOG).astype(np.float32)


def suffixes(tables: Sequence[Array]) -> Contexts:
    r"""Return the contexts that are the last $m$ of $k$ symbols, or all of them where there are fewer.

    Table $j$ has the probabilities $[k^j, k]$ after $j$ symbols, and $m$ is the number of tables minus 1. The rows of a
    table stand in the order of their symbols read as digits, the oldest first.
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
    joint, symbols, tables = law[:, None] * kernel, kernel.shape[1], [kernel]
    while len(tables[0]) > 1:
        joint = joint.reshape(symbols, -1, symbols).sum(axis=0)
        total = joint.sum(axis=1, keepdims=True)
        tables.insert(0, np.where(total > 0, joint / np.where(total > 0, total, 1.0), 1 / symbols))
    return tables


ORDERS = ("unigram", "bigram", "trigram")


def order_name(order: int) -> str:
    """Return the name of the predictor that conditions on `order` symbols."""
    return ORDERS[order] if order < len(ORDERS) else f"{order + 1}-gram"


@dataclass(frozen=True)
class ContextSandbox(NextSymbol):
    """A sandbox that is a table of contexts, which `contexts` gives; every symbol of a sequence of `length` counts."""

    length: Annotated[int, Within(2)] = 64

    @property
    @abstractmethod
    def contexts(self) -> Contexts:
        """The source; kept, as it is made from the parameters with some work."""

    def draw(self, key: Array) -> Example:
        symbols, contexts = self.contexts.draw(jax.random.uniform(key, (self.length,)))
        return Example(symbols[:-1], symbols, jnp.ones(self.length), {"context": contexts})

    def optimal(self, example: Example) -> LogProbs:
        return self.contexts.predict(example)

    def floor(self) -> Array:
        return self.contexts.losses(self.length)

    def rate(self) -> float | None:
        return self.contexts.rate()


class OrderSandbox(ContextSandbox):
    """A chain of a fixed order: `tables` are the probabilities after 0, 1, … symbols, [contexts, state] each."""

    @property
    @abstractmethod
    def tables(self) -> list[Array]:
        """The probabilities; those of the last table hold for ever."""

    @cached_property
    def contexts(self) -> Contexts:
        return suffixes(self.tables)

    @cached_property
    def stationary(self) -> Contexts:
        """The contexts of full length, which a long sequence stays in."""
        return full(self.tables[-1])

    def rate(self) -> float:
        return self.stationary.rate()

    def predictors(self) -> Mapping[str, Predictor]:
        """Return the optimal predictors from fewer symbols: the conditionals of the stationary distribution."""
        tables = marginals(self.tables[-1], self.stationary.law)
        orders = {order_name(j): suffixes(tables[: j + 1]).predict for j in range(len(tables) - 1)}
        return {"uniform": self.uniform, **orders}
