r"""What exact tasks share: whole numbers from random bits, the same on every device, and answers without doubt.

Nothing here is a rounded real number whose last bit a compiler could change.
"""

from __future__ import annotations

from abc import abstractmethod

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below
from vitrify.sandboxes.catalogue import LEAST_LOG, Row, Sandbox

MOST = 1 << 16  # the largest number of symbols that is of any use
FINE = 24  # bits behind the point of a waiting time
FEW = 128  # numbers are shuffled by their first 25 bits at least: one list in 4,000 has two that agree in these
CELLS = 12  # bits of a number by which a table of logarithms is looked up


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
    last = (
        jnp.zeros(events, jnp.int32)
        .at[event]
        .set(jnp.where(again, jnp.roll(event, 1).astype(jnp.int32) // 2, -1), unique_indices=True)
    )
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
    if count > FEW:
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


class Exact(Sandbox):
    """A sandbox in which the reader can know every answer that is asked for."""

    kind = "class"

    @abstractmethod
    def right(self, tokens: Array) -> Array:
        """The right answers [question], from the tokens alone; anything where none is asked for."""

    def optimal(self, row: Row) -> Array:
        """Sure of the right answer where one is asked for; else all are alike."""
        sure = jnp.where(self.right(row.tokens)[:, None] == jnp.arange(len(self.answers)), 0.0, LEAST_LOG)
        return jnp.where((row.weight > 0)[:, None], sure, self.uniform(row))

    def floor(self) -> Array:
        return jnp.zeros(self.tokens + 1)


def logs(p: Array) -> Array:
    """The logarithms of probabilities; that of zero is as low as a finite number should be."""
    return jnp.where(p > 0, jnp.log(jnp.where(p > 0, p, 1.0)), LEAST_LOG)
