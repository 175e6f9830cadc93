"""How symbols are drawn: by inverting a cumulative distribution with one uniform number each."""

from __future__ import annotations

from math import prod

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array


def cumulative(p: Array) -> Array:
    """The bounds between which a uniform number means each symbol: all but the last, so that none is left over.

    Symbols of probability zero are never drawn: rounding moves no bound past a neighbour's.
    """
    sums = jnp.cumsum(p, axis=-1)
    return (sums / sums[..., -1:])[..., :-1]


def invert(bounds: Array, u: Array) -> Array:
    """The symbol that a uniform number in [0, 1) means."""
    return (u[..., None] >= bounds).sum(axis=-1).astype(jnp.int32)


def below(count: int, word: Array) -> Array:
    """The number below `count` that a random word of 32 bits means: all alike but for one part in 2^32 / `count`."""
    return (word % np.uint32(count)).astype(jnp.int32)


def dirichlet(key: Array, alpha: float, shape: tuple[int, ...]) -> tuple[Array, Array]:
    r"""Bounds for `invert` and probabilities [..., symbol], drawn from a Dirichlet with all parameters `alpha`.

    With $\alpha = 1$ they are the gaps between uniform numbers, which themselves are the bounds, in any order: no
    logarithm and no division stands between the key and the symbols, so these are the same on every device.
    """
    if alpha == 1:
        bounds = jax.random.uniform(key, (prod(shape[:-1]) * (shape[-1] - 1),))  # four times as fast as with axes
        bounds = bounds.reshape(*shape[:-1], shape[-1] - 1)
        return bounds, jnp.diff(jnp.sort(bounds, axis=-1), axis=-1, prepend=0.0, append=1.0)
    p = jax.random.dirichlet(key, jnp.full(shape[-1], alpha), shape[:-1])
    return cumulative(p), p


def walk(bounds: Array, first: Array, u: Array) -> Array:
    r"""A chain $x_{t+1} = \text{invert}(\text{bounds}[x_t], u_t)$ after its first state: [len(u)].

    A CPU goes step by step. A GPU, where each step costs a launch, follows all states at once: position $t$ holds the
    map from the state before it to the state at it, and maps are composed in $\log_2 T$ rounds.
    """
    return jax.lax.platform_dependent(bounds, first, u, default=_stepped, cuda=_composed)


def _stepped(bounds: Array, first: Array, u: Array) -> Array:
    def step(state: Array, u: Array) -> tuple[Array, Array]:
        state = invert(bounds[state], u)
        return state, state

    return jax.lax.scan(step, first.astype(jnp.int32), u)[1]


def _composed(bounds: Array, first: Array, u: Array) -> Array:
    maps = invert(bounds[None], u[:, None])  # [t, state before] -> state
    return jax.lax.associative_scan(lambda a, b: jnp.take_along_axis(b, a, axis=-1), maps)[:, first]


def stationary(kernel: Array) -> Array:
    r"""The distribution with $\pi P = \pi$ of an irreducible kernel [state, state], by a linear solve."""
    states = kernel.shape[-1]
    system = jnp.concatenate([jnp.eye(states) - jnp.swapaxes(kernel, -1, -2), jnp.ones((1, states))])[1:]
    return jnp.linalg.solve(system, jnp.zeros(states).at[-1].set(1.0))
