r"""The landscape of a loss: its exact value, gradient and Hessian, and what kind of point a point is.

On a small sandbox the loss that training estimates from rows can be computed: all strings $x_1 \dots x_T$ are listed,
each with the probability $\prod_t P(x_t | x_1 \dots x_{t-1})$ that the optimal predictor gives it. Everything is
computed in float64, whatever the global setting of JAX is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn.measure import mean_loss, means, sums
from vitrify.learn.models.catalogue import Family
from vitrify.sandboxes.catalogue import Row, Sandbox, rows

MOST_STRINGS = 1 << 16
TRIED = 256  # rows that are drawn to see whether all have the same weights
SURE = 1e-5  # how far the probabilities of all strings may be from 1 in sum
STATIONARY = 1e-10  # the largest slope along a coordinate of a point that counts as stationary
FLAT = 1e-9  # the size, in parts of the largest, below which an eigenvalue counts as zero

Kind = Literal["minimum", "saddle", "maximum", "degenerate", "slope"]
Loss = Callable[[Any, Any], Array]  # parameters, data -> a number


def float64() -> AbstractContextManager[None]:
    """Within it JAX makes numbers of eight bytes; outside nothing changes."""
    context: AbstractContextManager[None] = jax.enable_x64(True)
    return context


def doubled(tree: Any) -> Any:
    """The same tree with all real numbers in float64; to be called within `float64()`."""
    return jax.tree.map(
        lambda x: jnp.asarray(x, jnp.float64) if np.issubdtype(np.asarray(x).dtype, np.floating) else jnp.asarray(x),
        tree,
    )


def strings(sandbox: Sandbox) -> Row:
    """Every row that a sandbox of next symbols can draw, in NumPy arrays; weights are multiplied by its probability.

    So the mean loss over these rows is the population loss, of a network as of any predictor. A sandbox whose tables
    are numbers of four bytes has probabilities of that precision; they are scaled to a sum of 1.
    """
    count, length = len(sandbox.symbols), sandbox.tokens + 1
    some: Row = jax.tree.map(np.asarray, jax.jit(lambda: rows(sandbox, 0, "probe", 0, TRIED))())
    if sandbox.kind != "lm" or some.soft is not None or not np.array_equal(some.tokens, some.targets[:, :-1]):
        raise InputError(f"strings can be listed where the next symbol is asked for, and not for {sandbox.name}")
    if (some.weight != some.weight[0]).any():
        raise InputError(f"strings can be listed where all rows have the same weights, and not for {sandbox.name}")
    if length * np.log(count) > np.log(MOST_STRINGS) + 1e-9:
        raise InputError(
            f"{count}^{length} strings are more than the {MOST_STRINGS} that are listed: make {sandbox.name} shorter"
        )
    symbols = np.indices((count,) * length, dtype=np.int32).reshape(length, -1).T
    with float64():
        weight = jnp.broadcast_to(jnp.asarray(some.weight[0], jnp.float64), symbols.shape)
        row = Row(jnp.asarray(symbols[:, :-1]), jnp.asarray(symbols), weight, {})
        try:
            logp = jax.vmap(replace(sandbox).optimal)(row)  # a copy: what one keeps for later must not change its type
        except KeyError as latent:
            raise InputError(f"the oracle of {sandbox.name} asks for {latent}, which a string does not tell") from None
        chance = jnp.exp(jnp.take_along_axis(logp, row.targets[..., None], axis=-1)[..., 0].sum(axis=-1))
        total = float(chance.sum())
        if not abs(total - 1) <= SURE:
            raise InputError(f"the probabilities of all strings of {sandbox.name} sum up to {total:.12g}, not to 1")
        listed: Row = jax.tree.map(np.asarray, row._replace(weight=weight * chance[:, None] / total))
    return listed


def exact_means(sandbox: Sandbox, logits: Array, listed: Row) -> dict[str, float]:
    """Population values, over listed strings, of all that is measured in training: `loss`, `floor`, `kl`, …"""
    with float64():
        return {
            name: float(value) for name, value in means(sums(replace(sandbox), jnp.asarray(logits), listed)).items()
        }


def population_loss(family: Family, sandbox: Sandbox) -> Loss:
    """The mean loss of a family of networks over listed strings, as a function of parameters and strings.

    The family's own penalties are left out: they are no means over rows.
    """
    net = family.architecture(sandbox)

    def loss(parameters: Mapping[str, Array], row: Row) -> Array:
        return mean_loss(family.logits(net, sandbox, family.arrays(net, parameters), row), row)

    return loss


def population(family: Family, sandbox: Sandbox) -> Landscape:
    """The landscape of a family of networks over all strings of a sandbox.

    `over` moves it to strings of other probabilities, as of a chain with other parameters, without compiling again.
    """
    net = family.architecture(sandbox)
    shapes = jax.eval_shape(lambda key: family.first(net, key), jax.random.key(0))
    like = jax.tree.map(lambda leaf: np.zeros(leaf.shape), shapes)
    return Landscape.of(population_loss(family, sandbox), like, strings(sandbox))


@dataclass(frozen=True, eq=False)
class Landscape:
    """A loss over a vector of parameters, each with a name such as `embed.W_E[0,3]`.

    Points are given as the tree of parameters that the loss takes, or as vectors.
    """

    names: tuple[str, ...]
    data: Any
    tree: Callable[[Array], Any]  # from a vector to the parameters
    functions: tuple[Callable[..., Array], Callable[..., Array], Callable[..., Array]]  # loss, gradient, Hessian

    @classmethod
    def of(cls, loss: Loss, like: Any, data: Any = None) -> Landscape:
        """The landscape of any loss of parameters and data; `like` is a point of it, for its shape."""
        with float64():
            like, data = doubled(like), doubled(data)
            _, tree = ravel_pytree(like)

            def flat(vector: Array, data: Any) -> Array:
                return loss(tree(vector), data)

            compiled = (jax.jit(flat), jax.jit(jax.grad(flat)), jax.jit(jax.hessian(flat)))
        return cls(tuple(_names(like)), data, tree, compiled)

    def over(self, data: Any) -> Landscape:
        """The same loss over other data of the same shape."""
        with float64():
            return replace(self, data=doubled(data))

    def vector(self, point: Any) -> Any:
        """A point as a NumPy vector."""
        with float64():
            found = np.asarray(ravel_pytree(doubled(point))[0])
        if found.shape != (len(self.names),):
            raise InputError(f"a point has {len(self.names)} numbers, not {found.size}")
        return found

    def parameters(self, point: Any) -> Any:
        """A point as the tree of parameters that the loss takes, in NumPy arrays."""
        with float64():
            return jax.tree.map(np.asarray, self.tree(jnp.asarray(self.vector(point))))

    def _of(self, which: int, point: Any) -> Any:
        vector = self.vector(point)
        with float64():
            return np.asarray(self.functions[which](vector, self.data))

    def loss(self, point: Any) -> float:
        """The loss at a point."""
        return float(self._of(0, point))

    def gradient(self, point: Any) -> Any:
        """The slope along every coordinate."""
        return self._of(1, point)

    def hessian(self, point: Any) -> Any:
        """The second derivatives, a symmetric matrix."""
        found = self._of(2, point)
        return (found + found.T) / 2

    def stationary(self, point: Any, tol: float = STATIONARY) -> bool:
        """Whether no coordinate has a slope of more than `tol`."""
        return bool(np.abs(self.gradient(point)).max() <= tol)

    def look(self, point: Any, *, tol: float = STATIONARY, flat: float = FLAT) -> Point:
        """All that first and second derivatives say about a point."""
        values, vectors = np.linalg.eigh(self.hessian(point))
        slope = float(np.abs(self.gradient(point)).max())
        return Point(self.loss(point), slope, tol, values, vectors, flat, self.names)


@dataclass(frozen=True, eq=False)
class Point:
    """A point of a landscape: its loss, its largest slope, and the spectrum of its Hessian, from below.

    A coordinate whose slope is at most `tol` is flat to first order, an eigenvalue of at most `flat` parts of the
    largest is zero.
    """

    loss: float
    slope: float
    tol: float
    values: Any  # [number]
    vectors: Any  # [coordinate, number]
    flat: float
    names: tuple[str, ...]

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """How many eigenvalues are negative, zero and positive."""
        least = self.flat * float(np.abs(self.values).max(initial=0.0))
        negative, positive = int((self.values < -least).sum()), int((self.values > least).sum())
        return negative, len(self.values) - negative - positive, positive

    @property
    def stationary(self) -> bool:
        """Whether no coordinate has a slope of more than `tol`."""
        return self.slope <= self.tol

    @property
    def kind(self) -> Kind:
        """What the derivatives decide: a minimum, a maximum, a saddle; nothing where a direction without curvature
        is left (`degenerate`: the rest curves one way only); a `slope` where it is not stationary.
        """
        negative, zero, positive = self.counts
        if not self.stationary:
            return "slope"
        if negative and positive:
            return "saddle"
        if zero:
            return "degenerate"
        return "maximum" if negative else "minimum"

    @property
    def downhill(self) -> Any | None:
        """The direction along which the loss curves down most, as a vector; None where it does not."""
        return self.vectors[:, 0] if self.counts[0] else None

    def weights(self, direction: Any, least: float = 0.1) -> dict[str, float]:
        """The coordinates with the greatest part in a direction, by name, those above `least` of its length."""
        order = np.argsort(-np.abs(direction), kind="stable")
        bound = least * np.linalg.norm(direction)
        return {self.names[at]: float(direction[at]) for at in order if abs(direction[at]) > bound}


def _names(like: Any) -> list[str]:
    """A name for every number of a tree, in the order of its vector."""
    found = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(like):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        found += [f"{name}[{','.join(map(str, at))}]" if at else name for at in np.ndindex(np.shape(leaf))]
    return found
