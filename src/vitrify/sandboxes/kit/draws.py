"""Sampling of symbols, by inverting a cumulative distribution with one uniform number each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Tree
from vitrify.sandboxes.catalogue import LEAST_LOG

MAX_CHOICE_ROWS = 4  # of a table that is read by comparisons and not by a gather
FINE = 24  # bits behind the point of a waiting time
SORTED = 128  # numbers are shuffled by their first 25 bits at least: one list in 4,000 has two that agree in these
CELLS = 12  # bits of a number by which a table of logarithms is looked up
MAX_COMPOSED = 64  # states whose maps a GPU composes where that is told to `follow`
Step: TypeAlias = Callable[[Array, Tree], Array]


def cumulative(p: Array) -> Array:
    """The bounds between which a uniform number means each symbol: all but the last, so that none is left over.

    Symbols of probability zero are never drawn: rounding moves no bound past a neighbour's.
    """
    sums = jnp.cumsum(p, axis=-1)
    return (sums / sums[..., -1:])[..., :-1]


def invert(bounds: Array, u: Array) -> Array:
    """The symbol that a uniform number in [0, 1) means."""
    return (u[..., None] >= bounds).sum(axis=-1).astype(jnp.int32)


def integer_below(u: Array, count: Array | int) -> Array:
    """Return floor(u · count) for uniform u in [0, 1): the same on every device, as one product is rounded."""
    return (u * count).astype(jnp.int32)


def below(bits: Array, bound: Array | int) -> Array:
    r"""A number from 0 to `bound` - 1 for every word of 32 random bits $b$.

    It is $\lfloor b n / 2^{32} \rfloor$ for the bound $n$, by products of half words: each number has probability $1/n$
    up to $2^{-32}$.
    """
    n = jnp.asarray(bound).astype(jnp.uint32)
    high, low, above, under = bits >> 16, bits & 0xFFFF, n >> 16, n & 0xFFFF
    carried = ((low * under) >> 16) + ((high * under) & 0xFFFF) + ((low * above) & 0xFFFF)
    scaled = high * above + ((high * under) >> 16) + ((low * above) >> 16) + (carried >> 16)
    return scaled.astype(jnp.int32)


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
    if table.shape[0] > MAX_CHOICE_ROWS:
        return table[index]
    chosen = table[0]
    for number in range(1, table.shape[0]):
        chosen = jnp.where((index == number)[..., None], table[number], chosen)
    return chosen


def follow(step: Step, states: int, first: Array, inputs: Tree, most: int | None = None) -> Array:
    r"""The states after each of some inputs (arrays with the time in front): `step` takes any states and one input.

    A CPU goes step by step. A GPU, where each step costs a launch, follows all states at once: position $t$ holds the
    map from the state before it to the state at it, and maps are composed in $\log_2 T$ rounds. With more than `most`
    states it goes step by step too.
    """
    stepped, composed = partial(_stepped, step), partial(_composed, step, states)
    many = most is not None and states > most
    return jax.lax.platform_dependent(first, inputs, default=stepped, cuda=stepped if many else composed)


def _stepped(step: Step, first: Array, inputs: Tree) -> Array:
    def one(state: Array, now: Tree) -> tuple[Array, Array]:
        state = step(state, now).astype(jnp.int32)
        return state, state

    return jax.lax.scan(one, first.astype(jnp.int32), inputs)[1]


def _composed(step: Step, states: int, first: Array, inputs: Tree) -> Array:
    maps = jax.vmap(lambda now: step(jnp.arange(states), now).astype(jnp.int32))(inputs)  # [t, state before]
    return jax.lax.associative_scan(lambda a, b: jnp.take_along_axis(b, a, axis=-1), maps)[:, first]


def descend(bounds: Array, parents: Array, u: Array) -> Array:
    r"""The sequence $x_t = \text{invert}(\text{bounds}[x_{\text{parents}[t, 1]}, \dots], u_t)$; no parent is -1.

    Where a parent is missing the table is asked for its last line, the law of roots: bounds have one line more than
    there are symbols, [symbols + 1, …, symbols - 1], with one axis for every parent.

    A CPU goes step by step. A GPU, where there is one parent each, has position $t$ hold the map from its parent's
    symbol to its own, and replaces parents by grandparents in $\log_2 T$ rounds.
    """
    one = parents.shape[1] == 1
    return jax.lax.platform_dependent(bounds, parents, u, default=_descended, cuda=_doubled if one else _descended)


def _descended(bounds: Array, parents: Array, u: Array) -> Array:
    length, none = len(u), bounds.shape[0] - 1

    def step(row: Array, now: tuple[Array, Array, Array]) -> tuple[Array, None]:
        t, before, u = now
        above = row[before]  # the parent -1 is the last cell, which is kept at `none`
        return row.at[t].set(invert(bounds[tuple(above)], u)), None

    row = jnp.full(length + 1, none, dtype=jnp.int32)
    return jax.lax.scan(step, row, (jnp.arange(length), parents, u))[0][:-1]


def _doubled(bounds: Array, parents: Array, u: Array) -> Array:
    length, none = len(u), bounds.shape[0] - 1
    maps = invert(bounds[None], u[:, None])  # [t, symbol above or none] -> symbol
    maps = jnp.concatenate([maps, jnp.full((1, none + 1), none, dtype=jnp.int32)])  # of the root of all roots
    above = jnp.concatenate([jnp.where(parents[:, 0] < 0, length, parents[:, 0]), jnp.full(1, length)])
    for _ in range(length.bit_length()):
        maps = jnp.take_along_axis(maps, maps[above], axis=1)
        above = above[above]
    return maps[:-1, none]


# Whole numbers from random bits: nothing here is a rounded real number whose last bit a compiler could change


def distinct(bits: Array, bound: int) -> Array:
    r"""As many different numbers below `bound` as there are words of bits, every such list equally likely.

    Step $i$ of a shuffle of $0, \dots, n-1$ trades places $i$ and $j_i$, with $j_i$ uniform from $i$ on. Only places
    that were traded before hold anything but their own number: place $p$ holds what was at $i'$ when the last step
    $i' < i$ with $j_{i'} = p$ came, and so on, which is followed for all places at once by doubling. That step is found
    by sorting looks (event $2i$: at place $i$) and choices (event $2i + 1$: of place $j_i$) by place and time. There
    may be at most $2^{15}$ words.
    """
    count = len(bits)
    events, step = 2 * count, jnp.arange(count, dtype=jnp.int32)
    chosen = step + below(bits, bound - step)
    number = jnp.arange(events, dtype=jnp.uint32).reshape(count, 2)
    codes = jnp.stack([step, chosen], axis=1).astype(jnp.uint32) * events + number
    place, event = jnp.divmod(jnp.sort(codes.reshape(-1)), np.uint32(events))
    again = (place == jnp.roll(place, 1)) & (jnp.arange(events) > 0)
    earlier = jnp.where(again, jnp.roll(event, 1).astype(jnp.int32) // 2, -1)
    last = jnp.zeros(events, jnp.int32).at[event].set(earlier, unique_indices=True)
    looked, traded = last[::2], last[1::2]
    root = jnp.where(looked < 0, step, looked)
    for _ in range(max(count - 1, 1).bit_length()):
        root = root[root]
    return jnp.where(traded < 0, chosen, root[traded])


def shuffled(bits: Array) -> Array:
    """The numbers below `len(bits)` in a random order.

    Where they are few they are sorted as the last bits of the random words, which is four times as fast.
    """
    count = len(bits)
    if count > SORTED:
        return jnp.argsort(bits).astype(jnp.int32)
    low = np.uint32((1 << (count - 1).bit_length()) - 1)
    return (jnp.sort((bits & ~low) | jnp.arange(count, dtype=jnp.uint32)) & low).astype(jnp.int32)


def waits(bits: Array) -> Array:
    r"""Exponential waiting times, $-2^{24} \log_2 u$ for uniform numbers $u$, by a table and whole numbers.

    Whoever has the $k$ least of $w_i / p_i$ has drawn $k$ things one after the other without putting them back, each
    with probabilities proportional to $p$ among those that were left.
    """
    table = np.round(np.log2(1 + np.arange((1 << CELLS) + 1) / (1 << CELLS)) * (1 << FINE)).astype(np.uint32)
    zeros = jax.lax.clz(bits)
    fraction = (bits << zeros) << 1  # behind the leading one
    cell, rest = fraction >> (32 - CELLS), (fraction >> (16 - CELLS)) & 0xFFFF
    low, step = jnp.asarray(table[:-1])[cell], jnp.asarray(np.diff(table))[cell]
    return ((zeros + 1) << FINE) - low - ((step * rest) >> 16)
