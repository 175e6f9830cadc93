"""Majority: are there more ones than zeros, at the end of a word of bits or all along?

Sources: Zhou et al. 2023, arXiv 2310.16028; Huang et al. 2024, arXiv 2410.02140.
"""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.arrays import Array
from vitrify.sandboxes._bits import Bits
from vitrify.sandboxes.catalogue import Entry


@dataclass(frozen=True)
class Majority(Bits):
    """Whether more than half of the bits are ones."""

    @property
    def answers(self) -> tuple[str, ...]:
        return ("no", "yes")

    def answer(self, ones: Array, bits: Array) -> Array:
        return 1 * (2 * ones > bits)


SANDBOX = Entry(Majority, small={"shortest": 2, "longest": 6, "asked": "all"})
