"""Parity: is the number of ones even or odd, at the end of a word of bits or all along?

How many ones there are can be set apart from how long the word is: which of the two makes it hard?
Sources: Zhou et al. 2023, arXiv 2310.16028; Huang et al. 2024, arXiv 2410.02140.
"""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.sandboxes.catalogue import Array, Entry
from vitrify.sandboxes.kit.counted import BitSandbox


@dataclass(frozen=True)
class Parity(BitSandbox):
    """Parity: the answer says whether the number of ones is odd."""

    answers = ("even", "odd")

    def answer(self, ones: Array, bits: Array) -> Array:
        del bits  # however many there are
        return ones % 2


SANDBOX = Entry(Parity, small={"shortest": 2, "longest": 6, "min_ones": 1, "max_ones": 4})
