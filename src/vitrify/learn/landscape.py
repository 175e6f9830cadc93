r"""The landscape of a loss: its exact value, gradient and Hessian, and what kind of point a point is.

On a small sandbox the loss that training estimates from sequences can be computed: all strings $x_1 \dots x_T$ are
listed, each with the probability $\prod_t P(x_t | x_1 \dots x_{t-1})$ that the optimal predictor gives it. Everything
is computed in float64, whatever the global setting of JAX is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from vitrify.arrays import Array, Float, Floats, Tree
from vitrify.errors import InputError
from vitrify.learn.measure import mean_loss
from vitrify.learn.models.catalogue import Family
from vitrify.sandboxes.catalogue import Example, Sandbox, examples

MAX_STRINGS = 1 << 16
TRIED = 256  # sequences that are drawn to see whether all have the same weights
SURE = 1e-5  # how far the probabilities of all strings may be from 1 in sum
STATIONARY = 1e-10  # the largest slope along a coordinate of a point that counts as stationary
FLAT = 1e-9  # the size, in parts of the largest, below which an eigenvalue counts as zero

Kind = Literal["minimum", "saddle", "maximum", "degenerate", "slope"]
Loss = Callable[[Tree, Tree], Array]  # parameters, data -> a number


def float64() -> AbstractContextManager[None]:
    """Within it JAX makes float64 numbers; outside nothing changes."""
    context: AbstractContextManager[None] = jax.enable_x64(True)
    return context


def doubled(tree: Tree) -> Tree:
    """The same tree with all real numbers in float64; to be called within `float64()`."""
    return jax.tree.map(
        lambda x: jnp.asarray(x, jnp.float64) if np.issubdtype(np.asarray(x).dtype, np.floating) else jnp.asarray(x),
        tree,
    )


def strings(sandbox: Sandbox) -> Example:
    """Return every sequence of a next-symbol sandbox, as NumPy arrays; weights are multiplied by its probability.

    So the mean loss over these sequences is the population loss, of a network as of any predictor. A sandbox whose
    tables are float32 has probabilities of that precision; they are scaled to a sum of 1.
    """
    count, length = len(sandbox.symbols), sandbox.tokens + 1
    some: Example = jax.tree.map(np.asarray, jax.jit(lambda: examples(sandbox, 0, "probe", 0, TRIED))())
    if sandbox.kind != "lm" or some.soft is not None or not np.array_equal(some.tokens, some.targets[:, :-1]):
        raise InputError(f"strings can be listed where the next symbol is asked for, and not for {sandbox.name}")
    if (some.weight != some.weight[0]).any():
        raise InputError(f"strings can be listed where all sequences have the same weights, and not for {sandbox.name}")
    if length * np.log(count) > np.log(MAX_STRINGS) + 1e-9:
        raise InputError(
            f"{count}^{length} strings are more than the {MAX_STRINGS} that are listed: make {sandbox.name} shorter"
        )
    symbols = np.indices((count,) * length, dtype=np.int32).reshape(length, -1).T
    with float64():
        weight = jnp.broadcast_to(jnp.asarray(some.weight[0], jnp.float64), symbols.shape)
        batch = Example(jnp.asarray(symbols[:, :-1]), jnp.asarray(symbols), weight, {})
        oracle = replace(sandbox)  # a copy: what one keeps for later must not change its type

        @jax.jit
        def chances(batch: Example) -> Array:
            logp = jax.vmap(oracle.optimal)(batch)
            return jnp.exp(jnp.take_along_axis(logp, batch.targets[..., None], axis=-1)[..., 0].sum(axis=-1))

        try:
            chance = chances(batch)
        except KeyError as latent:
            raise InputError(f"the oracle of {sandbox.name} asks for {latent}, which a string does not tell") from None
        total = float(chance.sum())
        if not abs(total - 1) <= SURE:
            raise InputError(f"the probabilities of all strings of {sandbox.name} sum up to {total:.12g}, not to 1")
        listed: Example = jax.tree.map(np.asarray, batch._replace(weight=weight * chance[:, None] / total))
    return listed


def population_loss(family: Family, sandbox: Sandbox) -> Loss:
    """The mean loss of a family of networks over listed strings, as a function of parameters and strings.

    The family's own penalties are left out: they are no means over sequences.
    """
    net = family.architecture(sandbox)

    def loss(parameters: Mapping[str, Array], batch: Example) -> Array:
        return mean_loss(family.logits(net, sandbox, family.arrays(net, parameters), batch), batch)

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
    data: Tree
    tree: Callable[[Float[Array, " number"]], Tree]  # from a vector to the parameters
    functions: tuple[Callable[..., Array], Callable[..., Array], Callable[..., Array]]  # loss, gradient, Hessian

    @classmethod
    def of(cls, loss: Loss, like: Tree, data: Tree = None) -> Landscape:
        """The landscape of any loss of parameters and data; `like` is a point of it, for its shape."""
        with float64():
            like, data = doubled(like), doubled(data)
            _, tree = ravel_pytree(like)

            def flat(vector: Float[Array, " number"], data: Tree) -> Array:
                return loss(tree(vector), data)

            compiled = (jax.jit(flat), jax.jit(jax.grad(flat)), jax.jit(jax.hessian(flat)))
        return cls(tuple(_names(like)), data, tree, compiled)

    def over(self, data: Tree) -> Landscape:
        """The same loss over other data of the same shape."""
        with float64():
            return replace(self, data=doubled(data))

    def vector(self, point: Tree) -> Float[np.ndarray, " number"]:
        """A point as a NumPy vector."""
        with float64():
            flat = np.asarray(ravel_pytree(doubled(point))[0])
        if flat.shape != (len(self.names),):
            raise InputError(f"a point has {len(self.names)} numbers, not {flat.size}")
        return flat

    def _of(self, which: int, point: Tree) -> Float[np.ndarray, "*number"]:
        vector = self.vector(point)
        with float64():
            return np.asarray(self.functions[which](vector, self.data))

    def loss(self, point: Tree) -> float:
        """The loss at a point."""
        return float(self._of(0, point))

    def gradient(self, point: Tree) -> Float[np.ndarray, " number"]:
        """The slope along every coordinate."""
        return self._of(1, point)

    def hessian(self, point: Tree) -> Float[np.ndarray, "number number"]:
        """The second derivatives, a symmetric matrix."""
        hessian: Floats = self._of(2, point)
        return (hessian + hessian.T) / 2

    def look(self, point: Tree) -> Point:
        """All that first and second derivatives say about a point."""
        slope = float(np.abs(self.gradient(point)).max())
        return Point(self.loss(point), slope, *np.linalg.eigh(self.hessian(point)))


@dataclass(frozen=True, eq=False)
class Point:
    """A point of a landscape: its loss, its largest slope, and the spectrum of its Hessian, from below."""

    loss: float
    slope: float
    values: Float[np.ndarray, " number"]
    vectors: Float[np.ndarray, "coordinate number"]

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """The numbers of negative, zero and positive eigenvalues."""
        least = FLAT * float(np.abs(self.values).max(initial=0.0))
        negative, positive = int((self.values < -least).sum()), int((self.values > least).sum())
        return negative, len(self.values) - negative - positive, positive

    @property
    def stationary(self) -> bool:
        """True if no coordinate of the gradient is larger than `STATIONARY`."""
        return self.slope <= STATIONARY

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
    def downhill(self) -> Float[np.ndarray, " coordinate"] | None:
        """The direction along which the loss curves down most, as a vector; None where it does not."""
        return self.vectors[:, 0] if self.counts[0] else None


def _names(like: Tree) -> list[str]:
    """A name for every number of a tree, in the order of its vector."""
    names = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(like):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        names += [f"{name}[{','.join(map(str, at))}]" if at else name for at in np.ndindex(np.shape(leaf))]
    return names
