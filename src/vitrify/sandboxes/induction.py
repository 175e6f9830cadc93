"""Induction: in a random word, what followed the last time that this symbol was read?

It is asked wherever a symbol was read before, and the answer is certain: one hop of `k_hop`, without the questions that
have no answer. Source: Olsson et al. 2022, arXiv 2209.11895.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import jax.numpy as jnp

from vitrify.sandboxes.catalogue import Array, Entry
from vitrify.sandboxes.k_hop import KHopSandbox


@dataclass(frozen=True)
class Induction(KHopSandbox):
    """Words of `length` uniform symbols, with a question at each that is not new."""

    hops: int = field(default=1, init=False)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        if self.length <= self.states:
            yield "length", f"must be above states = {self.states}, so that some symbol comes twice, not {self.length}"

    @property
    def answers(self) -> tuple[str, ...]:
        return self.symbols

    def weight(self, ends: Array) -> Array:
        """One for every symbol that was read before."""
        return jnp.pad((ends[-1] > 0).astype(jnp.float32), (1, 0))


SANDBOX = Entry(Induction, small={"states": 3, "length": 7})
