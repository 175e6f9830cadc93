"""How symbols are drawn: by inverting a cumulative distribution with one uniform number each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.sandboxes.catalogue import LEAST_LOG

FEW = 4  # rows
Step: TypeAlias = Callable[[Array, Any], Array]


def cumulative(p: Array) -> Array:
    """The bounds between which a uniform number means each symbol: all but the last, so that none is left over.

    Symbols of probability zero are never drawn: rounding moves no bound past a neighbour's.
    """
    sums = jnp.cumsum(p, axis=-1)
    return (sums / sums[..., -1:])[..., :-1]


def invert(bounds: Array, u: Array) -> Array:
    """The symbol that a uniform number in [0, 1) means."""
    return (u[..., None] >= bounds).sum(axis=-1).astype(jnp.int32)


def whole(u: Array, count: Array | int) -> Array:
    """A uniform number in [0, 1) as one of 0, …, count - 1: the same on every device, as one product is rounded."""
    return (u * count).astype(jnp.int32)


def below(bits: Array, bound: Array | int) -> Array:
    r"""A number from 0 to `bound` - 1 for every word of 32 random bits $b$.

    It is $\lfloor b n / 2^{32} \rfloor$ for the bound $n$, by products of half words: each number has probability $1/n$
    up to $2^{-32}$.
    """
    n = jnp.asarray(bound).astype(jnp.uint32)
    high, low, above, under = bits >> 16, bits & 0xFFFF, n >> 16, n & 0xFFFF
    carried = ((low * under) >> 16) + ((high * under) & 0xFFFF) + ((low * above) & 0xFFFF)
    found = high * above + ((high * under) >> 16) + ((low * above) >> 16) + (carried >> 16)
    return found.astype(jnp.int32)


def logarithm(p: Array) -> Array:
    """Log-probabilities, with `LEAST_LOG` for what is impossible."""
    return jnp.where(p > 0, jnp.log(jnp.where(p > 0, p, 1.0)), LEAST_LOG)


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
    r"""A chain $x_{t+1} = \text{invert}(\text{bounds}[x_t], u_t)$ after its first state: [len(u)]."""
    return follow(lambda state, u: invert(_row(bounds, state), u), bounds.shape[0], first, u)


def _row(table: Array, index: Array) -> Array:
    """Rows of a table; among few rows a choice is quicker than a look-up."""
    if table.shape[0] > FEW:
        return table[index]
    found = table[0]
    for number in range(1, table.shape[0]):
        found = jnp.where((index == number)[..., None], table[number], found)
    return found


def follow(step: Step, states: int, first: Array, inputs: Any) -> Array:
    r"""The states after each of some inputs (arrays with the time in front): `step` takes any states and one input.

    A CPU goes step by step. A GPU, where each step costs a launch, follows all states at once: position $t$ holds the
    map from the state before it to the state at it, and maps are composed in $\log_2 T$ rounds.
    """
    return jax.lax.platform_dependent(
        first, inputs, default=partial(_stepped, step), cuda=partial(_composed, step, states)
    )


def _stepped(step: Step, first: Array, inputs: Any) -> Array:
    def one(state: Array, given: Any) -> tuple[Array, Array]:
        state = step(state, given).astype(jnp.int32)
        return state, state

    return jax.lax.scan(one, first.astype(jnp.int32), inputs)[1]


def _composed(step: Step, states: int, first: Array, inputs: Any) -> Array:
    maps = jax.vmap(lambda given: step(jnp.arange(states), given).astype(jnp.int32))(inputs)  # [t, state before]
    return jax.lax.associative_scan(lambda a, b: jnp.take_along_axis(b, a, axis=-1), maps)[:, first]


def stationary(kernel: Array) -> Array:
    r"""The distribution with $\pi P = \pi$ of an irreducible kernel [state, state], by a linear solve."""
    states = kernel.shape[-1]
    system = jnp.concatenate([jnp.eye(states) - jnp.swapaxes(kernel, -1, -2), jnp.ones((1, states))])[1:]
    return jnp.linalg.solve(system, jnp.zeros(states).at[-1].set(1.0))
