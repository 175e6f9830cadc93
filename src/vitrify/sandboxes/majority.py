"""Majority: are there more ones than zeros, at the end of a word of bits or all along?

Sources: Zhou et al. 2023, arXiv 2310.16028; Huang et al. 2024, arXiv 2410.02140.
"""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.sandboxes.catalogue import Array, Entry
from vitrify.sandboxes.kit.counted import BitSandbox


@dataclass(frozen=True)
class Majority(BitSandbox):
    """Majority: the answer says whether more than half of the bits are ones."""

    answers = ("no", "yes")

    def answer(self, ones: Array, bits: Array) -> Array:
        return 1 * (2 * ones > bits)


SANDBOX = Entry(Majority, small={"shortest": 2, "longest": 6, "scored": "all"})
