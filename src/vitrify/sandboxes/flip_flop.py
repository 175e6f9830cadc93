r"""Flip-flop language modelling: the bit after a read is the bit that was written last.

A sequence is `length / 2` pairs of an instruction and a bit. The first instruction writes (w) and the last one reads
(r); all between ignore (i) with probability `ignore`, write with `write`, and read else. The bit after r is that of
the latest w, other bits are coins. FFL(p) has ignore = p and write = (1 - p) / 2: 0.8 in training, 0.98 for a sparse
tail and 0.1 for a dense one. `clean` asks only for the bits after reads; otherwise every symbol counts. A fraction
`tails` of all sequences is drawn from the tails, half from each; only reads are scored there. Source: Liu et al. 2023,
arXiv 2306.00946.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.sandboxes.catalogue import Array, Entry, Example, LogProbs, NextSymbol, Probability, Within
from vitrify.sandboxes.kit.draws import follow, logarithm

WRITE, READ, IGNORE, ZERO, ONE = range(5)
SPARSE, DENSE = 0.98, 0.1  # how likely an instruction is to ignore, in the tails


@dataclass(frozen=True)
class FlipFlop(NextSymbol):
    """Sequences of `length` symbols: instructions and bits in turn."""

    PREDICTORS = ("memoryless", "previous pair")
    symbols = ("w", "r", "i", "0", "1")
    TRACED = ("ignore", "write", "tails")

    length: Annotated[int, Within(4)] = 64
    ignore: Probability = 0.8
    write: Probability = 0.1
    clean: bool = True
    tails: Probability = 0.0

    @classmethod
    def ffl(cls, ignore: float, length: int) -> FlipFlop:
        """FFL(ignore), which writes as often as it reads."""
        return cls(length=length, ignore=ignore, write=(1 - ignore) / 2)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.length % 2:
            yield "length", f"must be even, not {self.length}"
        if self.ignore + self.write > 1:
            yield "ignore", f"+ write must be at most 1, not {self.ignore:g} + {self.write:g}"
        if self.tails and not self.clean:
            yield "tails", "must be 0 unless clean: in tail sequences only the bits after reads are scored"

    def draw(self, key: Array) -> Example:
        pairs = self.length // 2
        word = jax.random.bits(key, (pairs,))  # 24 of its bits for the instruction, another one for the coin
        u, coins = (word >> 8).astype(jnp.float32) * 2.0**-24, (word & 1).astype(jnp.int32)
        tail, rare = jnp.where(u[-1] < 0.5, SPARSE, DENSE), u[0] < self.tails  # these two are fixed
        least = jnp.where(rare, tail, jnp.float32(self.ignore))
        most = least + jnp.where(rare, (1 - tail) / 2, jnp.float32(self.write))
        inner = jnp.where(u < least, IGNORE, jnp.where(u < most, WRITE, READ))
        orders = inner.at[0].set(WRITE).at[-1].set(READ)
        stored = _stored(orders, coins)
        bits = jnp.where(orders == READ, stored, coins)
        symbols = jnp.stack([orders, ZERO + bits], axis=1).reshape(-1).astype(jnp.int32)
        weight = (
            jnp.stack([jnp.zeros(pairs), orders == READ], axis=1).reshape(-1) if self.clean else jnp.ones(len(symbols))
        )
        return Example(symbols[:-1], symbols, weight, {"stored": stored})

    def optimal(self, example: Example) -> LogProbs:
        orders, bits = example.tokens[::2], jnp.pad(example.tokens[1::2] - ZERO, (0, 1))
        return self._predicted(orders, jax.nn.one_hot(_stored(orders, bits), 2))

    def _predicted(self, orders: Array, stored: Array) -> Array:
        """The law, given the instructions and what is believed of the stored bit at each: [pair, bit]."""
        pairs = self.length // 2
        inner = jnp.stack([self.write, 1.0 - self.write - self.ignore, self.ignore, 0.0, 0.0])
        law = jnp.broadcast_to(jnp.maximum(inner, 0.0), (pairs, 5))
        one = jax.nn.one_hot(jnp.array([WRITE, READ]), 5)
        law = law.at[0].set(one[0]).at[-1].set(one[1])
        bits = jnp.pad(jnp.where((orders == READ)[:, None], stored, 0.5), ((0, 0), (3, 0)))
        return logarithm(jnp.stack([law, bits], axis=1).reshape(self.length, 5))

    def memoryless(self, example: Example) -> LogProbs:
        """Knows the instructions' law, and that bits are bits."""
        orders = example.tokens[::2]
        return self._predicted(orders, jnp.full((len(orders), 2), 0.5))

    def previous_pair(self, example: Example) -> LogProbs:
        """Looks back at one pair: a bit that was just written or read is known."""
        orders, bits = example.tokens[::2], example.tokens[1::2] - ZERO
        known = (orders[:-1] != IGNORE)[:, None]
        stored = jnp.where(known, jax.nn.one_hot(bits, 2), 0.5)
        return self._predicted(orders, jnp.pad(stored, ((1, 0), (0, 0)), constant_values=0.5))

    def floor(self) -> Array:
        if self.clean:
            return jnp.zeros(self.length)
        read = 1.0 - self.write - self.ignore
        order = jax.scipy.special.entr(jnp.stack([self.write, read, self.ignore])).sum()
        inner = jnp.tile(jnp.stack([order, (1 - read) * np.log(2)]), self.length // 2 - 2)
        return jnp.concatenate([jnp.array([0.0, np.log(2)]), inner, jnp.zeros(2)])


def _stored(orders: Array, bits: Array) -> Array:
    """The bit of the latest write at each pair, its own included."""
    return follow(lambda bit, pair: jnp.where(pair[0] == WRITE, pair[1], bit), 2, jnp.int32(0), (orders, bits))


SANDBOX = Entry(FlipFlop, small={"length": 8, "ignore": 0.3, "write": 0.4})
