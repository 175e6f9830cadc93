r"""Flip-flop language modelling: the bit after a read is the bit that was written last.

A row is `length / 2` pairs of an instruction and a bit. The first instruction writes (w) and the last one reads (r);
all between ignore (i) with probability `ignore`, write with `write`, and read else. The bit after r is that of the
latest w, other bits are coins. FFL(p) has ignore = p and write = (1 - p) / 2: 0.8 in training, 0.98 for a sparse tail
and 0.1 for a dense one. `clean` asks only for the bits after reads; otherwise every symbol counts. The part `tails` of
all rows are drawn from the tails instead, half of them from each, where only reads are asked for.
Source: Liu et al. 2023, arXiv 2306.00946.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import follow, logarithm
from vitrify.sandboxes.catalogue import Entry, Predictor, Row, Sandbox

WRITE, READ, IGNORE, ZERO, ONE = range(5)
SPARSE, DENSE = 0.98, 0.1  # how likely an instruction is to ignore, in the tails


@dataclass(frozen=True)
class FlipFlop(Sandbox):
    """Rows of `length` symbols: instructions and bits in turn."""

    TRACED: ClassVar[tuple[str, ...]] = ("ignore", "write", "tails")

    length: int = 64
    ignore: float = 0.8
    write: float = 0.1
    clean: bool = True
    tails: float = 0.0

    @classmethod
    def ffl(cls, ignore: float, length: int) -> FlipFlop:
        """FFL(ignore), which writes as often as it reads."""
        return cls(length=length, ignore=ignore, write=(1 - ignore) / 2)

    def problems(self) -> Iterator[str]:
        if self.length < 4 or self.length % 2:
            yield f"length must be even and at least 4, not {self.length}"
        if not (self.ignore >= 0 and self.write >= 0 and self.ignore + self.write <= 1):
            yield f"ignore and write must be probabilities of sum at most 1, not {self.ignore:g} and {self.write:g}"
        if not 0 <= self.tails <= 1:
            yield f"tails must be a part of the rows from 0 to 1, not {self.tails:g}"
        if self.tails and not self.clean:
            yield "rows of the tails among others are asked for reads only: set clean, or leave tails at 0"

    @property
    def symbols(self) -> tuple[str, ...]:
        return ("w", "r", "i", "0", "1")

    @property
    def tokens(self) -> int:
        return self.length - 1

    def draw(self, key: Array) -> Row:
        pairs = self.length // 2
        word = jax.random.bits(key, (pairs,))  # 24 of its bits for the instruction, another one for the coin
        u, coins = (word >> 8).astype(jnp.float32) * 2.0**-24, (word & 1).astype(jnp.int32)
        tail, rare = jnp.where(u[-1] < 0.5, SPARSE, DENSE), u[0] < self.tails  # the ends need no chance of their own
        least = jnp.where(rare, tail, jnp.float32(self.ignore))
        most = least + jnp.where(rare, (1 - tail) / 2, jnp.float32(self.write))
        inner = jnp.where(u < least, IGNORE, jnp.where(u < most, WRITE, READ))
        orders = inner.at[0].set(WRITE).at[-1].set(READ)
        stored = _stored(orders, coins)
        bits = jnp.where(orders == READ, stored, coins)
        symbols = jnp.stack([orders, ZERO + bits], axis=1).reshape(-1).astype(jnp.int32)
        asked = (
            jnp.stack([jnp.zeros(pairs), orders == READ], axis=1).reshape(-1) if self.clean else jnp.ones(len(symbols))
        )
        return Row(symbols[:-1], symbols, asked, {"stored": stored})

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        symbols, stored = np.empty((count, self.length), dtype=np.int32), np.zeros(count, dtype=np.int32)
        laws = np.array([[self.write, 1 - self.write - self.ignore, self.ignore], *map(_law, (SPARSE, DENSE))])
        kinds = rng.choice(3, p=[1 - self.tails, self.tails / 2, self.tails / 2], size=count)
        for t in range(0, self.length, 2):
            ends = t in (0, self.length - 2)
            law = np.eye(3)[np.full(count, READ if t else WRITE)] if ends else laws[kinds]
            orders = (rng.random((count, 1)) >= np.cumsum(law, axis=1)[:, :-1]).sum(axis=1)
            bits = rng.integers(2, size=count)
            stored = np.where(orders == WRITE, bits, stored)
            symbols[:, t], symbols[:, t + 1] = orders, ZERO + np.where(orders == READ, stored, bits)
        return symbols[:, :-1], symbols

    def optimal(self, row: Row) -> Array:
        orders, bits = row.tokens[::2], jnp.pad(row.tokens[1::2] - ZERO, (0, 1))
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

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "memoryless": self.memoryless, "previous pair": self.previous_pair}

    def memoryless(self, row: Row) -> Array:
        """Knows the instructions' law, and that bits are bits."""
        orders = row.tokens[::2]
        return self._predicted(orders, jnp.full((len(orders), 2), 0.5))

    def previous_pair(self, row: Row) -> Array:
        """Looks back at one pair: a bit that was just written or read is known."""
        orders, bits = row.tokens[::2], row.tokens[1::2] - ZERO
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


def _law(ignore: float) -> list[float]:
    """How likely an instruction writes, reads and ignores."""
    return [(1 - ignore) / 2, (1 - ignore) / 2, ignore]


def _stored(orders: Array, bits: Array) -> Array:
    """The bit of the latest write at each pair, its own included."""
    return follow(lambda bit, pair: jnp.where(pair[0] == WRITE, pair[1], bit), 2, jnp.int32(0), (orders, bits))


SANDBOX = Entry(FlipFlop, small={"length": 8, "ignore": 0.3, "write": 0.4})
