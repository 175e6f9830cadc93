"""Brackets as numbers: opening one `k` is 2k, and its closing one 2k + 1, as in `Dyck.of_kinds(…).vocabulary`."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from vitrify.arrays import Array


def tops(opens: Array, kind: Array, height: Array, depth: int, kinds: int) -> Array:
    """The kind of the last bracket that is open after each symbol, 0 where none is: [time].

    `height` is how many are open after each symbol, at most `depth`. A CPU keeps a stack; on a GPU the bracket that is
    open at a height is the last one that reached it by opening, at all places at once.
    """
    return jax.lax.platform_dependent(
        opens, kind, height, default=partial(_stacked, depth), cuda=partial(_latest, depth, kinds)
    )


def _stacked(depth: int, opens: Array, kind: Array, height: Array) -> Array:
    def step(stack: Array, given: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        opens, kind, height = given
        here = jnp.arange(1, depth + 1) == height
        stack = jnp.where(here & opens, kind, stack)
        return stack, (stack * here).sum()

    given = (opens, kind.astype(jnp.int32), height)
    return jax.lax.scan(step, jnp.zeros(depth, jnp.int32), given)[1].astype(jnp.int32)


def _latest(depth: int, kinds: int, opens: Array, kind: Array, height: Array) -> Array:
    reached = opens[:, None] & (height[:, None] == jnp.arange(1, depth + 1))  # [time, height - 1]
    stamped = jnp.where(reached, (jnp.arange(len(opens)) * kinds + kind)[:, None], -1)
    latest = jax.lax.cummax(stamped, axis=0)
    found = jnp.take_along_axis(latest, jnp.clip(height - 1, 0, depth - 1)[:, None], axis=1)[:, 0]
    return jnp.where(height > 0, found % kinds, 0).astype(jnp.int32)


def heights(brackets: Array) -> Array:
    """How many are open after 0, 1, …, n brackets: [n + 1]."""
    return jnp.pad(jnp.cumsum(1 - 2 * (brackets % 2)), (1, 0))
