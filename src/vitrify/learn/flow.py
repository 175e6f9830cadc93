r"""Gradient flow $\dot\theta = -\nabla L(\theta)$, many starts at once, with what it conserves; and phase portraits.

It is computed in float64 by an adaptive method of fifth order, from diffrax, an optional dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from vitrify.arrays import Array, Bool, Float, Num, Tree
from vitrify.errors import InputError
from vitrify.learn.landscape import Loss, doubled, float64
from vitrify.optional import need

Quantity = Callable[[Tree], Array]  # of the parameters: a number, or several

RTOL, ATOL = 1e-9, 1e-12  # of one step
REST = 1e-8  # the norm of the gradient at which the flow has come to rest
MAX_STEPS = 100_000
NOTHING: Mapping[str, Quantity] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Flow:
    """Trajectories from several starts; all arrays have the starts first, and those of the way then the times.

    `times` go up to the one at which a trajectory came to rest or its time was over; its later points are the last one
    again.
    """

    times: Float[np.ndarray, "start time"]
    points: Tree  # the tree of parameters, each [start, time, …]
    losses: Float[np.ndarray, "start time"]
    conserved: Mapping[str, Array]  # [start, time, …]
    slopes: Float[np.ndarray, " start"]  # the norm of the gradient at the end

    @property
    def ends(self) -> Tree:
        """The last points, each array [start, …]."""
        return jax.tree.map(lambda x: x[:, -1], self.points)

    @property
    def resting(self) -> Bool[np.ndarray, " start"]:
        """True for trajectories whose gradient norm fell to `REST` [start]."""
        return self.slopes <= REST

    @property
    def drift(self) -> dict[str, float]:
        """The largest deviation of each conserved quantity from its initial value, over all times and trajectories."""
        return {name: float(np.abs(value - value[:, :1]).max()) for name, value in self.conserved.items()}


def flow(
    loss: Loss,
    starts: Tree,
    data: Tree = None,
    *,
    until: float = 1e4,
    conserved: Mapping[str, Quantity] = NOTHING,
    saves: int = 100,
) -> Flow:
    """Follow the gradient flow of `loss(parameters, data)` from starts along the first axis of every array.

    If data is given its arrays too have the starts along their first axis. A trajectory ends when the norm of its
    gradient is at most `REST`, and in any case at the time `until`. It is kept at 0 and at `saves` later times, evenly
    spaced on a logarithmic scale from `until`/10⁶, and at its end.
    """
    diffrax = need("diffrax", "flow")
    with float64():
        starts, data = doubled(starts), doubled(data)
        moments = jnp.concatenate([jnp.zeros(1), until * jnp.logspace(-6, 0, saves)])

        def fall(_: Array, point: Tree, data: Tree) -> Tree:
            return jax.tree.map(jnp.negative, jax.grad(loss)(point, data))

        def steep(point: Tree, data: Tree) -> Array:
            return jnp.linalg.norm(ravel_pytree(fall(moments[0], point, data))[0])

        def resting(_: Array, point: Tree, data: Tree, **__: object) -> Array:
            return steep(point, data) <= REST

        def one(start: Tree, data: Tree) -> tuple[Tree, ...]:
            solution = diffrax.diffeqsolve(
                diffrax.ODETerm(fall),
                diffrax.Tsit5(),
                t0=0.0,
                t1=until,
                dt0=None,
                y0=start,
                args=data,
                saveat=diffrax.SaveAt(ts=moments, t1=True),
                stepsize_controller=diffrax.PIDController(rtol=RTOL, atol=ATOL),
                event=diffrax.Event(resting),
                max_steps=MAX_STEPS,
                throw=False,
            )
            end = jnp.isfinite(solution.ts).sum() - 1  # after it there is nothing more
            at = jnp.minimum(jnp.arange(len(moments) + 1), end)
            points = jax.tree.map(lambda x: x[at], solution.ys)
            quantities = {name: jax.vmap(quantity)(points) for name, quantity in conserved.items()}
            losses = jax.vmap(lambda point: loss(point, data))(points)
            last = jax.tree.map(lambda x: x[-1], points)
            finished = diffrax.is_okay(solution.result)
            return solution.ts[at], points, losses, quantities, steep(last, data), finished

        solution = jax.jit(jax.vmap(one, in_axes=(0, None if data is None else 0)))(starts, data)
        times, points, losses, quantities, slopes, finished = jax.tree.map(np.asarray, solution)
    if not finished.all():
        lost = ", ".join(map(str, np.flatnonzero(~finished)[:5]))
        raise InputError(f"the flow from start {lost} takes more than {MAX_STEPS} steps: follow it to an earlier time")
    return Flow(times, points, losses, quantities, slopes)


@dataclass(frozen=True, eq=False)
class Slice:
    """A plane through the parameters: an origin and two directions, all trees of the same shape."""

    origin: Tree
    across: Tree
    up: Tree

    def at(self, x: Array, y: Array) -> Tree:
        """The parameters at a point of the plane."""
        return jax.tree.map(lambda o, a, u: o + x * a + y * u, self.origin, self.across, self.up)

    def coordinates(self, point: Tree, direction: bool = False) -> Array:
        """Where the plane is nearest to a point, or along which of its directions a direction goes: [2]."""
        (across, _), (up, _) = ravel_pytree(self.across), ravel_pytree(self.up)
        flat = ravel_pytree(point)[0] - (0.0 if direction else ravel_pytree(self.origin)[0])
        basis = jnp.stack([across, up])
        return jnp.linalg.solve(basis @ basis.T, basis @ flat)


@dataclass(frozen=True, eq=False)
class Portrait:
    """A phase portrait over a slice: the loss and the flow on a grid [y, x], and trajectories, as plain arrays.

    `leaving` is the part of the flow, by its norm, that points out of the slice: 0 where the picture is all there is.
    """

    x: Num[np.ndarray, " x"]
    y: Num[np.ndarray, " y"]
    loss: Float[np.ndarray, "y x"]
    flow: Float[np.ndarray, "y x 2"]  # along the two directions of the slice
    leaving: Float[np.ndarray, "y x"]
    paths: Float[np.ndarray, "start time 2"]
    ends: Float[np.ndarray, " start"]  # the loss at the end of each path


def portrait(
    loss: Loss,
    plane: Slice,
    x: Sequence[float],
    y: Sequence[float],
    starts: Sequence[tuple[float, float]] = (),
    data: Tree = None,
    *,
    until: float = 1e4,
) -> Portrait:
    """The phase portrait of a loss over the grid of `x` and `y`, with the trajectories from some points of it."""
    with float64():
        plane, data = Slice(*(doubled(tree) for tree in (plane.origin, plane.across, plane.up))), doubled(data)

        def here(x: Array, y: Array) -> tuple[Array, Array, Array]:
            value, gradient = jax.value_and_grad(loss)(plane.at(x, y), data)
            along = -plane.coordinates(gradient, direction=True)
            within = jax.tree.map(lambda a, u: along[0] * a + along[1] * u, plane.across, plane.up)
            out = ravel_pytree(jax.tree.map(jnp.add, gradient, within))[0]
            norm = jnp.linalg.norm(ravel_pytree(gradient)[0])
            return value, along, jnp.linalg.norm(out) / jnp.where(norm > 0, norm, 1.0)

        grid = jnp.meshgrid(jnp.asarray(x, jnp.float64), jnp.asarray(y, jnp.float64))
        height, field, leaving = jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.vmap(here)))(*grid))
        points = np.asarray(starts, dtype=float).reshape(-1, 2)
        paths, ends = np.zeros((0, 1, 2)), np.zeros(0)
        if len(points):
            first = jax.vmap(plane.at)(*jnp.asarray(points.T))
            many = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(points), *leaf.shape)), data)
            followed = flow(loss, first, many, until=until)
            paths = np.asarray(jax.vmap(jax.vmap(plane.coordinates))(jax.tree.map(jnp.asarray, followed.points)))
            ends = followed.losses[:, -1]
    return Portrait(np.asarray(x), np.asarray(y), height, field, leaving, paths, ends)
