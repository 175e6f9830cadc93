"""Parity: is the number of ones even or odd, at the end of a word of bits or all along?

How many ones there are can be set apart from how long the word is: which of the two makes it hard?
Sources: Zhou et al. 2023, arXiv 2310.16028; Huang et al. 2024, arXiv 2410.02140.
"""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.arrays import Array
from vitrify.sandboxes._bits import Bits
from vitrify.sandboxes.catalogue import Entry


@dataclass(frozen=True)
class Parity(Bits):
    """Whether the number of ones is odd."""

    @property
    def answers(self) -> tuple[str, ...]:
        return ("even", "odd")

    def answer(self, ones: Array, bits: Array) -> Array:
        del bits  # however many there are
        return ones % 2


SANDBOX = Entry(Parity, small={"shortest": 2, "longest": 6, "fewest": 1, "most": 4})
