r"""Rows in which every symbol depends on earlier ones, its parents, that need not be its neighbours.

Where a parent is missing the table is asked for its last line: the law of roots. So bounds have one line more than
there are symbols: [symbols + 1, …, symbols - 1], with one axis for every parent.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.sandboxes._draws import invert


def descend(bounds: Array, parents: Array, u: Array) -> Array:
    r"""The row $x_t = \text{invert}(\text{bounds}[x_{\text{parents}[t, 1]}, \dots], u_t)$; no parent is -1.

    A CPU goes step by step. A GPU, where there is one parent each, has position $t$ hold the map from its parent's
    symbol to its own, and replaces parents by grandparents in $\log_2 T$ rounds.
    """
    one = parents.shape[1] == 1
    return jax.lax.platform_dependent(bounds, parents, u, default=_stepped, cuda=_composed if one else _stepped)


def _stepped(bounds: Array, parents: Array, u: Array) -> Array:
    length, none = len(u), bounds.shape[0] - 1

    def step(row: Array, now: tuple[Array, Array, Array]) -> tuple[Array, None]:
        t, before, u = now
        above = row[before]  # the parent -1 is the last cell, which is kept at `none`
        return row.at[t].set(invert(bounds[tuple(above)], u)), None

    row = jnp.full(length + 1, none, dtype=jnp.int32)
    return jax.lax.scan(step, row, (jnp.arange(length), parents, u))[0][:-1]


def _composed(bounds: Array, parents: Array, u: Array) -> Array:
    length, none = len(u), bounds.shape[0] - 1
    maps = invert(bounds[None], u[:, None])  # [t, symbol above or none] -> symbol
    maps = jnp.concatenate([maps, jnp.full((1, none + 1), none, dtype=jnp.int32)])  # of the root of all roots
    above = jnp.concatenate([jnp.where(parents[:, 0] < 0, length, parents[:, 0]), jnp.full(1, length)])
    for _ in range(length.bit_length()):
        maps = jnp.take_along_axis(maps, maps[above], axis=1)
        above = above[above]
    return maps[:-1, none]
