"""The sum of the digits of a word, modulo the number of different digits: with two of them, parity.

Sources: Delétang et al. 2022, arXiv 2207.02098 (modular arithmetic); Huang et al. 2024, arXiv 2410.02140.
"""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.arrays import namespace
from vitrify.sandboxes.catalogue import Array, Entry
from vitrify.sandboxes.kit.counted import Letters


@dataclass(frozen=True)
class DigitSum(Letters):
    """The sum of digits below `states`, modulo `states`."""

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.states)))

    def answer(self, counts: Array) -> Array:
        return (counts * namespace(counts).arange(self.states)).sum(axis=-1) % self.states


SANDBOX = Entry(DigitSum, small={"states": 3, "longest": 4})
